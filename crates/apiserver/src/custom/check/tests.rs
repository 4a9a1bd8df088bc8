use serde_json::json;

use super::*;

fn definition(version: Value) -> Object {
    let mut object = Object::new(json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    }))
    .unwrap();
    let first = &mut object.section_mut("spec")["versions"][0];
    for (field, value) in version.as_object().cloned().unwrap_or_default() {
        first[field] = value;
    }
    object
}

fn with_schema(schema: Value) -> Object {
    definition(json!({"schema": {"openAPIV3Schema": schema}}))
}

fn with_field(field: Value) -> Object {
    with_schema(json!({"type": "object", "properties": {"f": field}}))
}

fn messages(object: &Object) -> Vec<String> {
    validate(object).iter().map(FieldError::text).collect()
}

const FIELD: &str = "spec.validation.openAPIV3Schema.properties[f]";

#[test]
fn a_plain_definition_is_valid() {
    assert_eq!(messages(&definition(json!({}))), Vec::<String>::new());
}

#[test]
fn names_and_group_are_checked() {
    let mut object = definition(json!({}));
    object.set_meta("name", Some("others.example.com"));
    assert_eq!(
        messages(&object),
        ["metadata.name: Invalid value: \"others.example.com\": must be spec.names.plural+\".\"+spec.group"]
    );
    let mut object = definition(json!({}));
    object.section_mut("spec")["group"] = "example".into();
    object.set_meta("name", Some("widgets.example"));
    assert_eq!(
        messages(&object),
        ["spec.group: Invalid value: \"example\": should be a domain with at least one dot"]
    );
    let mut object = definition(json!({}));
    object.section_mut("spec")["names"]["listKind"] = "Widget".into();
    object.section_mut("spec")["scope"] = "Galaxy".into();
    assert_eq!(
        messages(&object),
        [
            "spec.scope: Unsupported value: \"Galaxy\": supported values: \"Cluster\", \"Namespaced\"",
            "spec.names.listKind: Invalid value: \"Widget\": kind and listKind may not be the same"
        ]
    );
}

#[test]
fn protected_groups_require_approval() {
    let mut object = definition(json!({}));
    object.section_mut("spec")["group"] = "things.k8s.io".into();
    object.set_meta("name", Some("widgets.things.k8s.io"));
    assert!(
        messages(&object)[0].starts_with("metadata.annotations[api-approved.kubernetes.io]: Required value")
    );
    object.metadata_mut().insert("annotations".to_owned(), json!({APPROVAL: "https://example.com/pull/1"}));
    assert_eq!(messages(&object), Vec::<String>::new());
}

#[test]
fn versions_are_unique_and_one_is_stored() {
    let mut object = definition(json!({"storage": false}));
    let versions = object.section_mut("spec")["versions"].as_array_mut().unwrap();
    versions.push(versions[0].clone());
    let found = messages(&object);
    assert!(found[0].ends_with("must contain unique version names"), "{found:?}");
    assert!(found[1].ends_with("must have exactly one version marked as storage version"), "{found:?}");
    let mut object = definition(json!({}));
    object.section_mut("spec")["versions"][0]["schema"] = json!({});
    assert_eq!(messages(&object), ["spec.versions[0].schema.openAPIV3Schema: Required value"]);
}

#[test]
fn schemas_must_be_structural() {
    for (schema, message) in [
        (json!({}), ".type: Required value: must not be empty for specified object fields"),
        (json!({"type": "array"}), ".items: Required value: must be specified"),
        (
            json!({"type": "array", "items": {}}),
            ".items.type: Required value: must not be empty for specified array items",
        ),
        (
            json!({"type": "object", "anyOf": [{"type": "object"}]}),
            ".anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            json!({"type": "object", "not": {"properties": {"a": {"minimum": 1}}}}),
            ".properties[a]: Required value: because it is defined in \
             spec.validation.openAPIV3Schema.properties[f].not.properties[a]",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            ".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            ".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        (json!({"$ref": "#/x", "type": "object"}), ".$ref: Forbidden: $ref is not supported"),
        (
            json!({"type": "string", "x-kubernetes-int-or-string": true}),
            ".type: Forbidden: must be empty if x-kubernetes-int-or-string is true",
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true}),
            ".properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without \
             x-kubernetes-preserve-unknown-fields",
        ),
        (
            json!({"type": "integer", "default": "x"}),
            ".default: Invalid value: \"string\": in body must be of type integer: \"string\"",
        ),
        (
            json!({"type": "object", "properties": {}, "default": {"a": 1}}),
            ".default: Invalid value: {\"a\":1}: must not have unknown fields: a",
        ),
    ] {
        assert_eq!(messages(&with_field(schema)), [format!("{FIELD}{message}")]);
    }
    let pattern = messages(&with_field(json!({"type": "string", "pattern": "["})));
    assert!(pattern[0].contains("must be a valid regular expression, but isn't: "), "{pattern:?}");
}

#[test]
fn the_root_must_be_an_object_with_default_metadata() {
    let root = "spec.validation.openAPIV3Schema";
    assert_eq!(
        messages(&with_schema(json!({"type": "array", "items": {"type": "string"}}))),
        [format!("{root}.type: Invalid value: \"array\": must be object at the root")]
    );
    let metadata = json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}});
    assert_eq!(
        messages(&with_schema(metadata)),
        [format!(
            "{root}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata \
             is implicitly specified"
        )]
    );
    let name = json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}}}});
    assert_eq!(messages(&with_schema(name)), Vec::<String>::new());
}

#[test]
fn int_or_string_may_be_written_as_any_of() {
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    for schema in [
        json!({"x-kubernetes-int-or-string": true, "anyOf": either}),
        json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": either}, {"pattern": "^a"}]}),
        json!({"x-kubernetes-int-or-string": true, "default": "50%"}),
    ] {
        assert_eq!(messages(&with_field(schema)), Vec::<String>::new());
    }
}

#[test]
fn lists_of_type_map_require_keys() {
    let list = |keys: Value, items: Value| json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": items});
    let item = json!({"type": "object", "properties": {"k": {"type": "string"}}});
    assert_eq!(
        messages(&with_field(list(json!([]), item.clone()))),
        [format!(
            "{FIELD}.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"
        )]
    );
    assert_eq!(
        messages(&with_field(list(json!(["k"]), item))),
        [format!(
            "{FIELD}.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must \
             have a default or be a required property"
        )]
    );
    let item = json!({"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}});
    assert_eq!(messages(&with_field(list(json!(["k"]), item))), Vec::<String>::new());
}

#[test]
fn columns_scale_and_selectable_fields_are_checked() {
    let object = definition(json!({
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "color": {"type": "string"}, "deep": {"type": "object"}}}}}},
        "additionalPrinterColumns": [{"name": "A", "type": "colour", "jsonPath": "spec"}],
        "subresources": {"scale": {"specReplicasPath": ".status.n", "statusReplicasPath": ""}},
        "selectableFields": [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.color"}, {"jsonPath": ".spec.deep"}, {"jsonPath": ".spec.x"}],
    }));
    let at = "spec";
    assert_eq!(
        messages(&object),
        [
            format!("{at}.selectableFields[1].jsonPath: Duplicate value: \".spec.color\""),
            format!(
                "{at}.selectableFields[2].jsonPath: Invalid value: \".spec.deep\": must point to a field of type string, boolean \
                 or integer. Enum string fields and strings with formats are allowed."
            ),
            format!(
                "{at}.selectableFields[3].jsonPath: Invalid value: \".spec.x\": is an invalid path: does not refer to a valid field"
            ),
            format!(
                "{at}.subresources.scale.specReplicasPath: Invalid value: \".status.n\": should be a json path under .spec"
            ),
            format!("{at}.subresources.scale.statusReplicasPath: Required value"),
            format!(
                "{at}.additionalPrinterColumns[0].type: Invalid value: \"colour\": must be one of boolean,date,integer,number,string"
            ),
            format!(
                "{at}.additionalPrinterColumns[0].JSONPath: Invalid value: \"spec\": must be a simple json path starting with ."
            ),
        ]
    );
}

#[test]
fn conversion_webhooks_are_rejected() {
    let mut object = definition(json!({}));
    object.section_mut("spec").insert("conversion".to_owned(), json!({"strategy": "Webhook", "webhook": {}}));
    assert_eq!(messages(&object), Vec::<String>::new(), "one version needs no conversion");
    let versions = object.section_mut("spec")["versions"].as_array_mut().unwrap();
    versions.push(json!({"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}}));
    assert!(
        messages(&object)[0].starts_with("spec.conversion.strategy: Invalid value: \"Webhook\": this server")
    );
}

#[test]
fn stored_versions_must_stay_and_immutable_fields_must_not_change() {
    let mut old = definition(json!({}));
    old.section_mut("status").insert("storedVersions".to_owned(), json!(["v1"]));
    old.section_mut("status")
        .insert("conditions".to_owned(), json!([{"type": "Established", "status": "True"}]));
    let mut new = old.clone();
    new.section_mut("spec")["versions"][0]["name"] = "v2".into();
    new.section_mut("spec")["scope"] = "Cluster".into();
    let texts: Vec<String> = validate_update(&new, &old).iter().map(FieldError::text).collect();
    assert_eq!(texts[0], "spec.scope: Invalid value: \"Cluster\": field is immutable");
    assert!(
        texts[1].starts_with("status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions;")
    );
}

#[test]
fn keywords_that_are_not_enforced_are_rejected() {
    for (keyword, value) in [
        ("$ref", json!("#/x")),
        ("additionalItems", json!(false)),
        ("definitions", json!({"a": {"type": "string"}})),
        ("dependencies", json!({"a": ["b"]})),
        ("id", json!("x")),
        ("patternProperties", json!({"^a": {"type": "string"}})),
        ("uniqueItems", json!(true)),
    ] {
        let mut schema = json!({"type": "array", "items": {"type": "string"}});
        schema[keyword] = value;
        let found = messages(&with_field(schema));
        assert!(
            found.len() == 1 && found[0].starts_with(&format!("{FIELD}.{keyword}: Forbidden")),
            "{found:?}"
        );
    }
    let mut object = definition(json!({}));
    object.section_mut("spec").insert("preserveUnknownFields".to_owned(), true.into());
    let found = messages(&object);
    assert!(
        found.iter().any(|error| error.starts_with("spec.preserveUnknownFields: Invalid value: true")),
        "{found:?}"
    );
}
