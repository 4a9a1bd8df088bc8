use super::*;
use crate::{
    FieldStep,
    json::tests::{any_damage, any_value, damaged, written},
};
use proptest::prelude::*;
use serde_json::json;

fn set(paths: &[&str]) -> FieldPaths {
    FieldPaths::new(paths.iter().map(|path| path.parse().unwrap()))
}

fn read(paths: &[&str], json: &str) -> Vec<Vec<Value>> {
    set(paths).read(json.as_bytes()).unwrap()
}

/// Paths over the few names that occur in arbitrary values.
pub(crate) fn any_path() -> impl Strategy<Value = FieldPath> {
    let name = prop_oneof!["a", "b", "metadata", "name", "items"];
    let step = prop_oneof![
        4 => name.clone().prop_map(FieldStep::Name),
        1 => (0..3usize).prop_map(FieldStep::Index),
        1 => Just(FieldStep::Every),
    ];
    prop::collection::vec(step, 1..4).prop_map(|steps| {
        let text: String = steps
            .iter()
            .map(|step| match step {
                FieldStep::Name(name) => format!(".{name}"),
                FieldStep::Index(index) => format!("[{index}]"),
                FieldStep::Every => "[*]".to_owned(),
            })
            .collect();
        text.parse().unwrap()
    })
}

/// What a path finds in a decoded value.
fn expected(steps: &[FieldStep], value: &Value) -> Vec<Value> {
    let Some((step, rest)) = steps.split_first() else { return vec![value.clone()] };
    match (step, value) {
        (FieldStep::Name(name), Value::Object(fields)) => {
            fields.get(name).map_or(vec![], |value| expected(rest, value))
        }
        (FieldStep::Index(index), Value::Array(elements)) => {
            elements.get(*index).map_or(vec![], |value| expected(rest, value))
        }
        (FieldStep::Every, Value::Array(elements)) => {
            elements.iter().flat_map(|value| expected(rest, value)).collect()
        }
        _ => vec![],
    }
}

#[test]
fn values_of_all_types() {
    let json = r#" { "s" : "x\n" , "n" : 1.5, "t":true, "z" :null, "o":{"a":[1]}, "l":[ 1 , "2" ] } "#;
    let found = read(
        &["s", "n", "t", "z", "o", "l", "l[*]", "l[1]", "o.a[0]", "missing", "s.x", "l.x", "o[0]"],
        json,
    );
    let none: Vec<Value> = vec![];
    let wanted = [
        vec![json!("x\n")],
        vec![json!(1.5)],
        vec![json!(true)],
        vec![json!(null)],
        vec![json!({"a": [1]})],
        vec![json!([1, "2"])],
        vec![json!(1), json!("2")],
        vec![json!("2")],
        vec![json!(1)],
    ];
    assert_eq!(found[..9], wanted);
    assert!(found[9..].iter().all(|values| *values == none));
}

#[test]
fn the_last_of_doubled_keys_counts() {
    assert_eq!(read(&["a.b"], r#"{"a":{"b":1,"b":2}}"#), [vec![json!(2)]]);
    assert_eq!(read(&["a.b"], r#"{"a":{"b":1},"a":{}}"#), [vec![json!(null); 0]]);
}

#[test]
fn the_same_path_twice_and_no_path_at_all() {
    assert_eq!(read(&["a", "a"], r#"{"a":1}"#), [vec![json!(1)], vec![json!(1)]]);
    assert_eq!(read(&[], "{}"), [[json!(null); 0]; 0]);
    assert!(set(&[]).is_empty() && set(&["a"]).len() == 1);
}

#[test]
fn an_error_says_nothing_of_the_content() {
    for json in [r#"{"a":hunter2}"#, r#"{"hunter2""#, r#"{"a":{"x":hunter2}}"#, "hunter2"] {
        let error = set(&["a", "a.b"]).read(json.as_bytes()).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

proptest! {
    #[test]
    fn reading_agrees_with_decoding(
        value in any_value(),
        paths in prop::collection::vec(any_path(), 0..5),
        pretty: bool,
    ) {
        let json = written(&value, pretty);
        let value: Value = serde_json::from_str(&json).unwrap();
        let wanted: Vec<Vec<Value>> = paths.iter().map(|path| expected(path.steps(), &value)).collect();
        prop_assert_eq!(FieldPaths::new(paths).read(json.as_bytes()).unwrap(), wanted);
    }

    #[test]
    fn doubled_keys_read_as_decoding_shows(
        one in any_value(),
        two in any_value(),
        paths in prop::collection::vec(any_path(), 0..5),
    ) {
        let json = format!(r#"{{"a":{one},"b":{{"a":{two},"a":{one}}},"a":{two}}}"#);
        let value: Value = serde_json::from_str(&json).unwrap();
        let wanted: Vec<Vec<Value>> = paths.iter().map(|path| expected(path.steps(), &value)).collect();
        prop_assert_eq!(FieldPaths::new(paths).read(json.as_bytes()).unwrap(), wanted);
    }

    #[test]
    fn no_bytes_make_it_panic(value in any_value(), damage in any_damage(), path in any_path()) {
        let _ = FieldPaths::new([path]).read(&damaged(&value.to_string(), &damage));
    }
}
