use serde_json::json;

use super::super::tests::schema;
use super::*;

/// The error messages of `value` as a property `x` with this schema.
fn messages(s: Value, value: Value) -> Vec<String> {
    let s = schema(json!({"type": "object", "properties": {"x": s}}));
    validate(&s, &json!({"x": value}), None).iter().map(FieldError::text).collect()
}

#[test]
fn types_are_checked() {
    for (kind, good, bad, found) in [
        ("integer", json!(1.0), json!(1.5), "number"),
        ("number", json!(1.5), json!("1"), "string"),
        ("string", json!("a"), json!(1), "integer"),
        ("boolean", json!(true), json!(null), "null"),
        ("object", json!({}), json!([]), "array"),
    ] {
        assert_eq!(messages(json!({"type": kind}), good), Vec::<String>::new());
        assert_eq!(
            messages(json!({"type": kind}), bad),
            [format!("x: Invalid value: {found:?}: x in body must be of type {kind}: {found:?}")]
        );
    }
    assert!(messages(json!({"type": "string", "nullable": true}), json!(null)).is_empty());
    let either = json!({"x-kubernetes-int-or-string": true});
    assert!(
        messages(either.clone(), json!(1)).is_empty() && messages(either.clone(), json!("50%")).is_empty()
    );
    assert!(!messages(either, json!(true)).is_empty());
}

#[test]
fn numbers_are_checked() {
    let s =
        json!({"type": "number", "minimum": 1.0, "maximum": 9, "exclusiveMaximum": true, "multipleOf": 0.5});
    assert!(messages(s.clone(), json!(8.5)).is_empty());
    assert_eq!(
        messages(s.clone(), json!(0)),
        ["x: Invalid value: 0: x in body should be greater than or equal to 1"]
    );
    assert_eq!(messages(s.clone(), json!(9)), ["x: Invalid value: 9: x in body should be less than 9"]);
    assert_eq!(messages(s, json!(1.2)), ["x: Invalid value: 1.2: x in body should be a multiple of 0.5"]);
    let big = json!({"type": "integer", "maximum": 9_007_199_254_740_992u64});
    assert_eq!(messages(big, json!(9_007_199_254_740_993u64)).len(), 1, "integers are exact");
}

#[test]
fn strings_are_checked() {
    let s = json!({"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^a"});
    assert!(messages(s.clone(), json!("aéé")).is_empty(), "characters count, not bytes");
    assert_eq!(messages(s.clone(), json!("aaaa")), ["x: Too long: may not be more than 3 bytes"]);
    assert_eq!(
        messages(s, json!("b")),
        [
            "x: Invalid value: \"b\": x in body should be at least 2 chars long",
            "x: Invalid value: \"b\": x in body should match '^a'"
        ]
    );
    assert_eq!(
        messages(json!({"type": "string", "format": "ipv4"}), json!("::1")),
        ["x: Invalid value: \"::1\": x in body must be of type ipv4: \"::1\""]
    );
    assert!(messages(json!({"type": "string", "format": "made-up"}), json!("?")).is_empty());
}

#[test]
fn counts_are_checked() {
    let s = json!({"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer"}});
    assert_eq!(
        messages(s.clone(), json!([])),
        ["x: Invalid value: 0: x in body should have at least 1 items"]
    );
    assert_eq!(messages(s.clone(), json!([1, 2, 3])), ["x: Too many: 3: must have at most 2 items"]);
    assert_eq!(
        messages(s, json!([1, "a"])),
        ["x[1]: Invalid value: \"string\": x[1] in body must be of type integer: \"string\""]
    );
    let s = json!({"type": "object", "minProperties": 1, "required": ["a"], "additionalProperties": {"type": "integer"}});
    assert_eq!(
        messages(s, json!({})),
        ["x: Invalid value: 0: x in body should have at least 1 properties", "x.a: Required value"]
    );
}

#[test]
fn enums_are_checked() {
    let s = json!({"type": "string", "enum": ["a", "b"]});
    assert_eq!(messages(s, json!("c")), ["x: Unsupported value: \"c\": supported values: \"a\", \"b\""]);
    let s = json!({"type": "integer", "enum": [1, 2]});
    assert!(messages(s.clone(), json!(1.0)).is_empty());
    assert_eq!(messages(s, json!(3)), ["x: Unsupported value: 3: supported values: \"1\", \"2\""]);
}

#[test]
fn combined_schemas_are_checked() {
    let spec = |keyword: &str, alternatives: Value| json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, keyword: alternatives});
    let either = json!([{"required": ["a"]}, {"required": ["b"]}]);
    assert!(messages(spec("anyOf", either.clone()), json!({"a": 1, "b": 1})).is_empty());
    assert_eq!(
        messages(spec("anyOf", either.clone()), json!({})),
        [
            "<nil>: Invalid value: \"\": \"x\" must validate at least one schema (anyOf)",
            "x.a: Required value"
        ]
    );
    assert_eq!(
        messages(spec("oneOf", either.clone()), json!({"a": 1, "b": 1})),
        [
            "<nil>: Invalid value: \"\": \"x\" must validate one and only one schema (oneOf). Found 2 valid alternatives"
        ]
    );
    assert_eq!(
        messages(spec("allOf", either), json!({"a": 1})),
        ["<nil>: Invalid value: \"\": \"x\" must validate all the schemas (allOf)", "x.b: Required value"]
    );
    assert_eq!(
        messages(spec("not", json!({"required": ["a"]})), json!({"a": 1})),
        ["<nil>: Invalid value: \"\": \"x\" must not validate the schema (not)"]
    );
    let bounded = spec("allOf", json!([{"properties": {"a": {"minimum": 5}}}]));
    assert!(messages(bounded.clone(), json!({"a": 5})).is_empty());
    assert!(!messages(bounded, json!({"a": 4})).is_empty());
}

#[test]
fn embedded_objects_have_a_type() {
    let s = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    assert!(messages(s.clone(), json!({"apiVersion": "v1", "kind": "Pod"})).is_empty());
    assert_eq!(messages(s, json!({"apiVersion": "v1"})), ["x.kind: Required value"]);
}

#[test]
fn a_list_of_faults_ends_and_the_check_with_it() {
    let required: Vec<String> = (0..100).map(|n| format!("f{n}")).collect();
    let s = schema(json!({"type": "object", "properties": {"x": {"type": "array",
        "items": {"type": "object", "required": required}}}}));
    let found = validate(&s, &json!({"x": vec![json!({}); 100_000]}), None);
    assert!(found.is_full() && found.len() < 1100, "{}", found.len());
}

/// With a text for every place, this would write 20 GB.
#[test]
fn long_keys_above_many_values_cost_nothing() {
    let inner =
        json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}});
    let s = schema(json!({"type": "object", "additionalProperties": inner}));
    let key = "k".repeat(1_000_000);
    let object = json!({key: vec![json!({"a": 1}); 10_000]});
    assert!(validate(&s, &object, None).is_empty());
}
