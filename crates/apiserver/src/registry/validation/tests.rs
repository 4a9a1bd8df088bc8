use serde_json::Value;

use crate::registry::{Object, Registry};

/// One object a line with what is wrong with it, in the words of the original.
const REFUSED: &str = include_str!("refused.jsonl");

#[test]
fn what_the_original_refuses_is_refused_in_its_words() {
    let registry = Registry::built_in();
    for line in REFUSED.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (api, plural) = (text(&row["object"]["apiVersion"]), text(&row["plural"]));
        let (group, version) = api.split_once('/').unwrap_or(("", &api));
        let resource = registry.find(group, version, &plural).unwrap();
        let mut object = Object::new(row["object"].clone()).unwrap();
        resource.default(&mut object);
        (resource.rules.prepare)(&mut object);
        let found: Vec<String> = (resource.rules.validate)(&object).iter().map(|fault| fault.text()).collect();
        let wanted: Vec<String> = row["faults"].as_array().unwrap().iter().map(text).collect();
        assert_eq!(found, wanted, "{plural}: {}", row["object"]);
    }
}
