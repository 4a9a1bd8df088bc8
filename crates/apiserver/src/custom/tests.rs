use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::json_path::JsonPath;
use super::path::Path;
use super::pattern::Patterns;
use super::props::Props;
use super::*;
use crate::budget::Budget;
use crate::registry::Object;
use crate::status::FieldErrors;

/// Compiles a schema.
pub(super) fn schema(schema: Value) -> Structural {
    let props = Props::deserialize(schema).expect("a schema");
    Structural::compile(&props, &mut Patterns::default()).expect("patterns compile")
}

const FIELDS: [&str; 3] = ["a", "b", "c"];

/// Structural schemas, with defaults that may be invalid.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<Option<i8>>()
            .prop_map(|d| with_default(json!({"type": "integer", "minimum": 0}), d.map(Value::from))),
        any::<Option<bool>>().prop_map(|d| with_default(json!({"type": "boolean"}), d.map(Value::from))),
        Just(json!({"type": "string", "pattern": "^[a-c]*$", "nullable": true})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let fields = prop::collection::btree_map(prop::sample::select(&FIELDS[..]), inner.clone(), 0..3);
        prop_oneof![
            inner.clone().prop_map(|s| json!({"type": "array", "items": s})),
            inner.prop_map(|s| json!({"type": "object", "additionalProperties": s})),
            (fields, any::<bool>()).prop_map(|(fields, has_default)| {
                let default = has_default.then(|| json!({}));
                with_default(json!({"type": "object", "properties": fields}), default)
            }),
        ]
    })
}

fn with_default(mut schema: Value, default: Option<Value>) -> Value {
    if let Some(default) = default {
        schema["default"] = default;
    }
    schema
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        "[a-e]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    /// Pruning and defaulting are idempotent, so that writing the result again changes nothing.
    #[test]
    fn coercion_is_idempotent(s in schemas(), value in values()) {
        let schema = schema(json!({"type": "object", "properties": {"x": s}}));
        let mut object = json!({"x": value}).as_object().cloned().unwrap_or_default();
        prune(&schema, &mut object);
        apply_defaults(&schema, &mut object, &mut Budget::new(1 << 20)).unwrap();
        let once = object.clone();
        prop_assert_eq!(prune(&schema, &mut object), Vec::<String>::new());
        apply_defaults(&schema, &mut object, &mut Budget::new(1 << 20)).unwrap();
        prop_assert_eq!(once, object);
    }

    /// A value that satisfies a schema satisfies `allOf` of it and does not satisfy `not` of it.
    #[test]
    fn combined_schemas_agree_with_their_parts(s in schemas(), value in values()) {
        let plain = schema(s.clone());
        let all = schema(json!({"allOf": [s]}));
        let not = schema(json!({"not": s}));
        let accepts = |schema: &Structural| {
            let mut errors = FieldErrors::new();
            validate::check(schema, &value, Path::ROOT.field("x"), &mut errors);
            errors.is_empty()
        };
        prop_assert_eq!(accepts(&plain), accepts(&all));
        prop_assert_eq!(accepts(&plain), !accepts(&not));
    }

    #[test]
    fn malformed_definitions_do_not_panic(spec in values(), s in values()) {
        let mut definition = Object::new(json!({"metadata": {"name": "x"}, "spec": spec})).expect("an object");
        default_definition(&mut definition);
        prepare_definition(&mut definition);
        validate_definition(&definition);
        let schema = json!({"openAPIV3Schema": s});
        let spec = json!({"versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]});
        definition.root_mut().insert("spec".to_owned(), spec);
        definition.section_mut("status").insert("conditions".to_owned(), json!([{"type": "Established", "status": "True"}]));
        validate_definition(&definition);
        let _ = Installed::read(&definition);
    }

    #[test]
    fn malformed_paths_do_not_panic(text in "[.\\[\\]()?@*'\"=a\\\\0-9 -]{0,20}", value in values()) {
        if let Ok(path) = JsonPath::parse(&text) {
            path.find(&value);
        }
    }

    #[test]
    fn malformed_patterns_do_not_panic(text in "[\\[\\]\\\\^$.a-c:&~|(){}0-9dwsWb-]{0,24}") {
        let _ = Patterns::default().get(&text);
    }
}
