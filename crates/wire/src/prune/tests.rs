use super::*;
use crate::{
    FieldStep,
    fields::tests::any_path,
    json::tests::{any_damage, any_value, damaged, written},
};
use proptest::prelude::*;
use serde_json::Value;

fn pruned(paths: &[&str], json: &str) -> String {
    let prune = Prune::new(paths.iter().map(|path| path.parse().unwrap()));
    let bytes = prune.apply(&Bytes::copy_from_slice(json.as_bytes())).unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Takes what the paths name out of a decoded value.
fn remove(paths: &[Vec<FieldStep>], value: &mut Value) {
    let rest = |step: &FieldStep| -> Vec<Vec<FieldStep>> {
        let leads = |first: &FieldStep| {
            first == step || *first == FieldStep::Every && matches!(step, FieldStep::Index(_))
        };
        paths.iter().filter(|path| leads(&path[0])).map(|path| path[1..].to_vec()).collect()
    };
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let rest = rest(&FieldStep::Name(name.clone()));
            let stays = !rest.iter().any(Vec::is_empty);
            if stays {
                remove(&rest, value);
            }
            stays
        }),
        Value::Array(elements) => {
            let mut index = 0;
            elements.retain_mut(|value| {
                let rest = rest(&FieldStep::Index(index));
                index += 1;
                let stays = !rest.iter().any(Vec::is_empty);
                if stays {
                    remove(&rest, value);
                }
                stays
            });
        }
        _ => {}
    }
}

#[test]
fn commas_go_with_their_fields() {
    let json = r#"{"a":1,"b":{"x":[1,2,3]},"c":"d"}"#;
    for (paths, wanted) in [
        (&["a"][..], r#"{"b":{"x":[1,2,3]},"c":"d"}"#),
        (&["b"], r#"{"a":1,"c":"d"}"#),
        (&["c"], r#"{"a":1,"b":{"x":[1,2,3]}}"#),
        (&["a", "b"], r#"{"c":"d"}"#),
        (&["a", "c"], r#"{"b":{"x":[1,2,3]}}"#),
        (&["b", "c"], r#"{"a":1}"#),
        (&["a", "b", "c"], "{}"),
        (&["b.x"], r#"{"a":1,"b":{},"c":"d"}"#),
        (&["b.x[0]"], r#"{"a":1,"b":{"x":[2,3]},"c":"d"}"#),
        (&["b.x[1]", "b.x[2]"], r#"{"a":1,"b":{"x":[1]},"c":"d"}"#),
        (&["b.x[*]"], r#"{"a":1,"b":{"x":[]},"c":"d"}"#),
        (&["b.x[*]", "b"], r#"{"a":1,"c":"d"}"#),
        (&["d", "a.b", "b[0]", "c.x"], json),
    ] {
        assert_eq!(pruned(paths, json), wanted, "{paths:?}");
    }
    assert_eq!(pruned(&["a", "b"], "{ \"a\" : 1 , \"b\" : 2\n, \"c\" : 3 }"), "{ \"c\" : 3 }");
    assert_eq!(pruned(&["a"], r#"{"a":1,"\u0061":2,"b":3,"a":4}"#), r#"{"b":3}"#);
}

#[test]
fn paths_through_one_element_and_through_all() {
    let json = r#"{"l":[{"a":1,"b":2,"c":3},{"a":1,"b":2,"c":3}]}"#;
    assert_eq!(pruned(&["l[*].a", "l[0].b"], json), r#"{"l":[{"c":3},{"b":2,"c":3}]}"#);
}

#[test]
fn without_the_fields_nothing_is_copied() {
    let json = Bytes::from_static(br#"{"metadata":{"name":"a"}}"#);
    let prune = Prune::new(["metadata.managedFields".parse().unwrap()]);
    assert_eq!(prune.apply(&json).unwrap().as_ptr(), json.as_ptr());
}

proptest! {
    #[test]
    fn pruning_is_removing_from_the_decoded_value(
        value in any_value(),
        paths in prop::collection::vec(any_path(), 0..5),
        pretty: bool,
    ) {
        let json = written(&value, pretty);
        let mut wanted: Value = serde_json::from_str(&json).unwrap();
        remove(&paths.iter().map(|path| path.steps().to_vec()).collect::<Vec<_>>(), &mut wanted);
        let pruned = Prune::new(paths).apply(&Bytes::from(json)).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Value>(&pruned).unwrap(), wanted);
    }

    #[test]
    fn doubled_keys_are_pruned_alike(
        one in any_value(),
        two in any_value(),
        paths in prop::collection::vec(any_path(), 0..5),
    ) {
        let json = format!(r#"{{"a":{one},"b":{{"a":{two},"a":{one}}},"a":{two}}}"#);
        let mut wanted: Value = serde_json::from_str(&json).unwrap();
        remove(&paths.iter().map(|path| path.steps().to_vec()).collect::<Vec<_>>(), &mut wanted);
        let pruned = Prune::new(paths).apply(&Bytes::from(json)).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Value>(&pruned).unwrap(), wanted);
    }

    #[test]
    fn no_bytes_make_it_panic(value in any_value(), damage in any_damage(), path in any_path()) {
        let _ = Prune::new([path]).apply(&Bytes::from(damaged(&value.to_string(), &damage)));
    }
}
