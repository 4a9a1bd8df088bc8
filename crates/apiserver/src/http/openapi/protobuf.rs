//! OpenAPI v2 as protobuf: the messages of `openapi.v2.Document` in gnostic-models, which Go clients decode.
//!
//! 1. Every field that our documents have is encoded. A field that the messages do not have is dropped.
//! 2. Maps keep their order. Values of any type (`enum`, `default`, extensions) are YAML, of which JSON is a part.

use kube_informer_types::protobuf::write::{self, nested};
use serde_json::Value;

/// The media type that Go clients accept.
pub(super) const ACCEPTED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// The same as the type of a response: `@` is not valid there.
pub(super) const CONTENT_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Encodes a document.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let mut encoded = Vec::new();
    let out = &mut encoded;
    for (name, value) in members(document) {
        match name {
            "swagger" => text(out, 1, value),
            "info" => nested(out, 2, |out| info(out, value)),
            "paths" => nested(out, 8, |out| map(out, 2, value, path)),
            "definitions" => nested(out, 9, |out| map(out, 1, value, schema)),
            _ => {}
        }
    }
    encoded
}

fn info(out: &mut Vec<u8>, info: &Value) {
    for (name, value) in members(info) {
        match name {
            "title" => text(out, 1, value),
            "version" => text(out, 2, value),
            _ => {}
        }
    }
}

fn path(out: &mut Vec<u8>, item: &Value) {
    for (name, value) in members(item) {
        match name {
            "get" => nested(out, 2, |out| operation(out, value)),
            "put" => nested(out, 3, |out| operation(out, value)),
            "post" => nested(out, 4, |out| operation(out, value)),
            "delete" => nested(out, 5, |out| operation(out, value)),
            "patch" => nested(out, 8, |out| operation(out, value)),
            "parameters" => each(out, 9, value, parameter),
            _ => extension(out, 10, name, value),
        }
    }
}

fn operation(out: &mut Vec<u8>, operation: &Value) {
    for (name, value) in members(operation) {
        match name {
            "tags" => texts(out, 1, value),
            "description" => text(out, 3, value),
            "operationId" => text(out, 5, value),
            "produces" => texts(out, 6, value),
            "consumes" => texts(out, 7, value),
            "parameters" => each(out, 8, value, parameter),
            "responses" => nested(out, 9, |out| map(out, 1, value, response)),
            "schemes" => texts(out, 10, value),
            _ => extension(out, 13, name, value),
        }
    }
}

/// `ParametersItem` → `Parameter` → `BodyParameter`, or `NonBodyParameter` → its kind.
fn parameter(out: &mut Vec<u8>, parameter: &Value) {
    nested(out, 1, |out| match parameter["in"].as_str() {
        Some("body") => nested(out, 1, |out| body_parameter(out, parameter)),
        Some("path") => nested(out, 2, |out| nested(out, 4, |out| simple_parameter(out, parameter, 5, 20))),
        _ => nested(out, 2, |out| nested(out, 3, |out| simple_parameter(out, parameter, 6, 21))),
    });
}

fn body_parameter(out: &mut Vec<u8>, parameter: &Value) {
    for (name, value) in members(parameter) {
        match name {
            "description" => text(out, 1, value),
            "name" => text(out, 2, value),
            "in" => text(out, 3, value),
            "required" => flag(out, 4, value),
            "schema" => nested(out, 5, |out| schema(out, value)),
            _ => {}
        }
    }
}

/// A parameter in the path or the query, with the numbers of `type` and `uniqueItems`, in which these differ.
fn simple_parameter(out: &mut Vec<u8>, parameter: &Value, kind: u32, unique: u32) {
    for (name, value) in members(parameter) {
        match name {
            "required" => flag(out, 1, value),
            "in" => text(out, 2, value),
            "description" => text(out, 3, value),
            "name" => text(out, 4, value),
            "type" => text(out, kind, value),
            "uniqueItems" => flag(out, unique, value),
            _ => {}
        }
    }
}

/// `ResponseValue` → `Response`.
fn response(out: &mut Vec<u8>, response: &Value) {
    nested(out, 1, |out| {
        for (name, value) in members(response) {
            match name {
                "description" => text(out, 1, value),
                "schema" => nested(out, 2, |out| nested(out, 1, |out| schema(out, value))),
                _ => {}
            }
        }
    });
}

fn schema(out: &mut Vec<u8>, schema: &Value) {
    for (name, value) in members(schema) {
        match name {
            "$ref" => text(out, 1, value),
            "format" => text(out, 2, value),
            "title" => text(out, 3, value),
            "description" => text(out, 4, value),
            "default" => nested(out, 5, |out| any(out, value)),
            "multipleOf" => double(out, 6, value),
            "maximum" => double(out, 7, value),
            "exclusiveMaximum" => flag(out, 8, value),
            "minimum" => double(out, 9, value),
            "exclusiveMinimum" => flag(out, 10, value),
            "maxLength" => integer(out, 11, value),
            "minLength" => integer(out, 12, value),
            "pattern" => text(out, 13, value),
            "maxItems" => integer(out, 14, value),
            "minItems" => integer(out, 15, value),
            "uniqueItems" => flag(out, 16, value),
            "maxProperties" => integer(out, 17, value),
            "minProperties" => integer(out, 18, value),
            "required" => texts(out, 19, value),
            "enum" => each(out, 20, value, any),
            "additionalProperties" => nested(out, 21, |out| additional(out, value)),
            "type" => nested(out, 22, |out| text(out, 1, value)),
            "items" => nested(out, 23, |out| nested(out, 1, |out| self::schema(out, value))),
            "properties" => nested(out, 25, |out| map(out, 1, value, self::schema)),
            "example" => nested(out, 30, |out| any(out, value)),
            _ => extension(out, 31, name, value),
        }
    }
}

/// `AdditionalPropertiesItem`: a schema or a Boolean.
fn additional(out: &mut Vec<u8>, value: &Value) {
    match value {
        // A member of a `oneof` is encoded even if it is false.
        Value::Bool(allowed) => write::integer(out, 2, (*allowed).into()),
        _ => nested(out, 1, |out| schema(out, value)),
    }
}

fn any(out: &mut Vec<u8>, value: &Value) {
    write::text(out, 2, &value.to_string());
}

// A value of another type than its field has is left out.

/// The members of an object.
fn members(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    object.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

/// A map: entries with a name and a value.
fn map(out: &mut Vec<u8>, number: u32, map: &Value, encode: fn(&mut Vec<u8>, &Value)) {
    members(map).for_each(|(name, value)| entry(out, number, name, value, encode));
}

fn entry(out: &mut Vec<u8>, number: u32, name: &str, value: &Value, encode: fn(&mut Vec<u8>, &Value)) {
    nested(out, number, |out| {
        write::text(out, 1, name);
        nested(out, 2, |out| encode(out, value));
    });
}

fn extension(out: &mut Vec<u8>, number: u32, name: &str, value: &Value) {
    if name.starts_with("x-") {
        entry(out, number, name, value, any);
    }
}

fn each(out: &mut Vec<u8>, number: u32, values: &Value, encode: fn(&mut Vec<u8>, &Value)) {
    for value in values.as_array().into_iter().flatten() {
        nested(out, number, |out| encode(out, value));
    }
}

fn texts(out: &mut Vec<u8>, number: u32, values: &Value) {
    values.as_array().into_iter().flatten().for_each(|value| text(out, number, value));
}

fn text(out: &mut Vec<u8>, number: u32, value: &Value) {
    if let Some(value) = value.as_str() {
        write::text(out, number, value);
    }
}

fn flag(out: &mut Vec<u8>, number: u32, value: &Value) {
    if value == true {
        write::integer(out, number, 1);
    }
}

fn integer(out: &mut Vec<u8>, number: u32, value: &Value) {
    if let Some(value) = value.as_i64() {
        write::integer(out, number, value);
    }
}

fn double(out: &mut Vec<u8>, number: u32, value: &Value) {
    if let Some(value) = value.as_f64() {
        write::double(out, number, value);
    }
}
