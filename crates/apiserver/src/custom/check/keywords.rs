//! Schema keywords that are not supported, or not in combination.

use std::collections::BTreeSet;

use serde_json::json;

use super::super::props::{Props, SchemaOrBool, SchemaOrList};
use crate::status::{FieldError, FieldErrors};

const SCALARS: [&str; 4] = ["string", "number", "integer", "boolean"];

pub(super) fn check(props: &Props, at: &str, errors: &mut FieldErrors) {
    check_supported(props, at, errors);
    if matches!(&props.additional_properties, Some(SchemaOrBool::Schema(_) | SchemaOrBool::Bool(false)))
        && !props.properties.is_empty()
    {
        let why = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(format!("{at}.additionalProperties"), why));
    }
    if props.preserve_unknown == Some(false) {
        let field = format!("{at}.x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(field, false, "must be true or undefined"));
    }
    if props.int_or_string && !props.r#type.is_empty() {
        let why = "must be empty if x-kubernetes-int-or-string is true";
        errors.push(FieldError::forbidden(format!("{at}.type"), why));
    }
    check_list(props, at, errors);
    check_map(props, at, errors);
    for (name, inner) in &props.properties {
        check(inner, &format!("{at}.properties[{name}]"), errors);
    }
    if let Some(inner) = props.additional() {
        check(inner, &format!("{at}.additionalProperties"), errors);
    }
    if let Some(inner) = props.items() {
        check(inner, &format!("{at}.items"), errors);
    }
    for (keyword, list) in [("allOf", &props.all_of), ("anyOf", &props.any_of), ("oneOf", &props.one_of)] {
        for (i, inner) in list.iter().enumerate() {
            check(inner, &format!("{at}.{keyword}[{i}]"), errors);
        }
    }
    if let Some(inner) = &props.not {
        check(inner, &format!("{at}.not"), errors);
    }
}

fn check_supported(props: &Props, at: &str, errors: &mut FieldErrors) {
    let unsupported = [
        ("id", !props.id.is_empty()),
        ("additionalItems", props.additional_items.is_some()),
        ("patternProperties", !props.pattern_properties.is_empty()),
        ("definitions", !props.definitions.is_empty()),
        ("dependencies", !props.dependencies.is_empty()),
        ("$ref", props.reference.is_some()),
    ];
    for (keyword, _) in unsupported.iter().filter(|(_, used)| *used) {
        errors.push(FieldError::forbidden(format!("{at}.{keyword}"), format!("{keyword} is not supported")));
    }
    match props.r#type.as_str() {
        "null" => {
            errors.push(FieldError::forbidden(
                format!("{at}.type"),
                "type cannot be set to null, use nullable as an alternative",
            ));
        }
        "" | "array" | "object" => {}
        scalar if SCALARS.contains(&scalar) => {}
        other => {
            let known = ["array", "boolean", "integer", "number", "object", "string"];
            errors.push(FieldError::not_supported(format!("{at}.type"), other, &known));
        }
    }
    if let Some(SchemaOrList::List(list)) = &props.items {
        let why = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(format!("{at}.items"), why));
        for (i, inner) in list.iter().enumerate() {
            check(inner, &format!("{at}.items[{i}]"), errors);
        }
    }
    if props.unique_items {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(format!("{at}.uniqueItems"), why));
    }
}

fn check_list(props: &Props, at: &str, errors: &mut FieldErrors) {
    let type_at = format!("{at}.type");
    let list_at = format!("{at}.x-kubernetes-list-type");
    let keys_at = format!("{at}.x-kubernetes-list-map-keys");
    if let Some(kind) = props.list_type.as_deref() {
        if !["atomic", "set", "map"].contains(&kind) {
            errors.push(FieldError::not_supported(&list_at, kind, &["atomic", "set", "map"]));
        }
        let why = "must be array if x-kubernetes-list-type is specified";
        match props.r#type.as_str() {
            "array" => {}
            "" => errors.push(FieldError::required(type_at, why)),
            other => errors.push(FieldError::invalid(type_at, other, why)),
        }
    }
    if props.list_type.as_deref() != Some("map") {
        if !props.list_map_keys.is_empty() {
            let why = "must be map if x-kubernetes-list-map-keys is non-empty";
            errors.push(match props.list_type.as_deref() {
                None => FieldError::required(list_at, why),
                Some(other) => FieldError::invalid(list_at, other, why),
            });
        }
        return;
    }
    if props.list_map_keys.is_empty() {
        errors.push(FieldError::required(&keys_at, "must not be empty if x-kubernetes-list-type is map"));
    }
    let Some(items) = props.items() else {
        let why = "must have a schema if x-kubernetes-list-type is map";
        return errors.push(FieldError::required(format!("{at}.items"), why));
    };
    if items.r#type != "object" {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(format!("{at}.items.type"), &items.r#type, why));
    }
    check_keys(props, items, at, errors);
}

fn check_keys(props: &Props, items: &Props, at: &str, errors: &mut FieldErrors) {
    let keys_at = format!("{at}.x-kubernetes-list-map-keys");
    let mut seen = BTreeSet::new();
    for key in &props.list_map_keys {
        if !seen.insert(key) {
            errors.push(FieldError::duplicate(&keys_at, key));
        }
        let Some(property) = items.properties.get(key) else {
            let why = "entries must all be names of item properties";
            errors.push(FieldError::invalid(&keys_at, json!(props.list_map_keys), why));
            continue;
        };
        let property_at = format!("{at}.items.properties[{key}]");
        if !SCALARS.contains(&property.r#type.as_str()) {
            let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            errors.push(FieldError::invalid(format!("{property_at}.type"), &property.r#type, why));
        }
        if !items.required.contains(key) && property.default.is_none() {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(format!("{property_at}.default"), why));
        }
    }
}

fn check_map(props: &Props, at: &str, errors: &mut FieldErrors) {
    let Some(kind) = props.map_type.as_deref() else { return };
    if !["atomic", "granular"].contains(&kind) {
        let field = format!("{at}.x-kubernetes-map-type");
        errors.push(FieldError::not_supported(field, kind, &["atomic", "granular"]));
    }
    let why = "must be object if x-kubernetes-map-type is specified";
    match props.r#type.as_str() {
        "object" => {}
        "" => errors.push(FieldError::required(format!("{at}.type"), why)),
        other => errors.push(FieldError::invalid(format!("{at}.type"), other, why)),
    }
}
