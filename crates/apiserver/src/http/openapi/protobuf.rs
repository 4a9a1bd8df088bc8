//! OpenAPI v2 as protobuf: the messages of `openapi.v2.Document` in gnostic-models, which Go clients decode.
//!
//! 1. Every field that our documents have is encoded. A field that the messages do not have is dropped.
//! 2. Maps keep their order. Values of any type (`enum`, `default`, extensions) are YAML, of which JSON is a part.

use serde_json::{Map, Value};

/// The media type that Go clients accept.
pub(super) const ACCEPTED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// The same as the type of a response: `@` is not valid there.
pub(super) const CONTENT_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Encodes a document.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    message(document, |out, name, value| match name {
        "swagger" => out.text(1, value),
        "info" => out.bytes(2, &info(value)),
        "paths" => out.bytes(8, &named(2, value, path)),
        "definitions" => out.bytes(9, &named(1, value, schema)),
        _ => {}
    })
}

fn info(info: &Value) -> Vec<u8> {
    message(info, |out, name, value| match name {
        "title" => out.text(1, value),
        "version" => out.text(2, value),
        _ => {}
    })
}

fn path(item: &Value) -> Vec<u8> {
    message(item, |out, name, value| match name {
        "get" => out.bytes(2, &operation(value)),
        "put" => out.bytes(3, &operation(value)),
        "post" => out.bytes(4, &operation(value)),
        "delete" => out.bytes(5, &operation(value)),
        "patch" => out.bytes(8, &operation(value)),
        "parameters" => out.each(9, value, parameter),
        _ => out.extension(10, name, value),
    })
}

fn operation(operation: &Value) -> Vec<u8> {
    message(operation, |out, name, value| match name {
        "tags" => out.texts(1, value),
        "description" => out.text(3, value),
        "operationId" => out.text(5, value),
        "produces" => out.texts(6, value),
        "consumes" => out.texts(7, value),
        "parameters" => out.each(8, value, parameter),
        "responses" => out.bytes(9, &named(1, value, response)),
        "schemes" => out.texts(10, value),
        _ => out.extension(13, name, value),
    })
}

/// `ParametersItem` → `Parameter` → `BodyParameter`, or `NonBodyParameter` → its kind.
fn parameter(parameter: &Value) -> Vec<u8> {
    let wrapped = |number, inner: Vec<u8>| {
        let mut out = Output::default();
        out.bytes(number, &inner);
        out.0
    };
    let parameter = match parameter["in"].as_str() {
        Some("body") => wrapped(1, body_parameter(parameter)),
        Some("path") => wrapped(2, wrapped(4, simple_parameter(parameter, 5, 20))),
        _ => wrapped(2, wrapped(3, simple_parameter(parameter, 6, 21))),
    };
    wrapped(1, parameter)
}

fn body_parameter(parameter: &Value) -> Vec<u8> {
    message(parameter, |out, name, value| match name {
        "description" => out.text(1, value),
        "name" => out.text(2, value),
        "in" => out.text(3, value),
        "required" => out.flag(4, value),
        "schema" => out.bytes(5, &schema(value)),
        _ => {}
    })
}

/// A parameter in the path or the query, with the numbers of `type` and `uniqueItems`, in which these differ.
fn simple_parameter(parameter: &Value, kind: u32, unique: u32) -> Vec<u8> {
    message(parameter, |out, name, value| match name {
        "required" => out.flag(1, value),
        "in" => out.text(2, value),
        "description" => out.text(3, value),
        "name" => out.text(4, value),
        "type" => out.text(kind, value),
        "uniqueItems" => out.flag(unique, value),
        _ => {}
    })
}

/// `ResponseValue` → `Response`.
fn response(response: &Value) -> Vec<u8> {
    let mut out = Output::default();
    let inner = message(response, |out, name, value| match name {
        "description" => out.text(1, value),
        "schema" => {
            let mut item = Output::default();
            item.bytes(1, &schema(value));
            out.bytes(2, &item.0);
        }
        _ => {}
    });
    out.bytes(1, &inner);
    out.0
}

fn schema(value: &Value) -> Vec<u8> {
    message(value, |out, name, value| match name {
        "$ref" => out.text(1, value),
        "format" => out.text(2, value),
        "title" => out.text(3, value),
        "description" => out.text(4, value),
        "default" => out.bytes(5, &any(value)),
        "multipleOf" => out.double(6, value),
        "maximum" => out.double(7, value),
        "exclusiveMaximum" => out.flag(8, value),
        "minimum" => out.double(9, value),
        "exclusiveMinimum" => out.flag(10, value),
        "maxLength" => out.integer(11, value),
        "minLength" => out.integer(12, value),
        "pattern" => out.text(13, value),
        "maxItems" => out.integer(14, value),
        "minItems" => out.integer(15, value),
        "uniqueItems" => out.flag(16, value),
        "maxProperties" => out.integer(17, value),
        "minProperties" => out.integer(18, value),
        "required" => out.texts(19, value),
        "enum" => out.each(20, value, any),
        "additionalProperties" => out.bytes(21, &additional(value)),
        "type" => {
            let mut kind = Output::default();
            kind.text(1, value);
            out.bytes(22, &kind.0);
        }
        "items" => {
            let mut items = Output::default();
            items.bytes(1, &schema(value));
            out.bytes(23, &items.0);
        }
        "properties" => out.bytes(25, &named(1, value, schema)),
        "example" => out.bytes(30, &any(value)),
        _ => out.extension(31, name, value),
    })
}

/// `AdditionalPropertiesItem`: a schema or a Boolean.
fn additional(value: &Value) -> Vec<u8> {
    let mut out = Output::default();
    match value {
        // A member of a `oneof` is encoded even if it is false.
        Value::Bool(allowed) => out.varint(2, u64::from(*allowed)),
        _ => out.bytes(1, &schema(value)),
    }
    out.0
}

fn any(value: &Value) -> Vec<u8> {
    let mut out = Output::default();
    out.bytes(2, value.to_string().as_bytes());
    out.0
}

/// A map: entries with a name and a value.
fn named(number: u32, map: &Value, encode: fn(&Value) -> Vec<u8>) -> Vec<u8> {
    let mut out = Output::default();
    for (name, value) in map.as_object().into_iter().flatten() {
        out.bytes(number, &entry(name, &encode(value)));
    }
    out.0
}

fn entry(name: &str, value: &[u8]) -> Vec<u8> {
    let mut out = Output::default();
    out.bytes(1, name.as_bytes());
    out.bytes(2, value);
    out.0
}

/// Encodes the fields of an object, one at a time.
fn message(object: &Value, field: impl Fn(&mut Output, &str, &Value)) -> Vec<u8> {
    let mut out = Output::default();
    for (name, value) in object.as_object().unwrap_or(&Map::new()) {
        field(&mut out, name, value);
    }
    out.0
}

/// The fields of a message. A value of another type than its field has is left out.
#[derive(Default)]
struct Output(Vec<u8>);

impl Output {
    fn text(&mut self, number: u32, value: &Value) {
        value.as_str().into_iter().for_each(|text| self.bytes(number, text.as_bytes()));
    }

    fn texts(&mut self, number: u32, values: &Value) {
        values.as_array().into_iter().flatten().for_each(|value| self.text(number, value));
    }

    fn each(&mut self, number: u32, values: &Value, encode: fn(&Value) -> Vec<u8>) {
        values.as_array().into_iter().flatten().for_each(|value| self.bytes(number, &encode(value)));
    }

    fn extension(&mut self, number: u32, name: &str, value: &Value) {
        if name.starts_with("x-") {
            self.bytes(number, &entry(name, &any(value)));
        }
    }

    fn flag(&mut self, number: u32, value: &Value) {
        if value == true {
            self.varint(number, 1);
        }
    }

    fn integer(&mut self, number: u32, value: &Value) {
        value.as_i64().into_iter().for_each(|value| self.varint(number, value.cast_unsigned()));
    }

    fn double(&mut self, number: u32, value: &Value) {
        if let Some(value) = value.as_f64() {
            self.key(number, 1);
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    fn varint(&mut self, number: u32, value: u64) {
        self.key(number, 0);
        self.number(value);
    }

    fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.key(number, 2);
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn key(&mut self, number: u32, wire_type: u64) {
        self.number(u64::from(number) << 3 | wire_type);
    }

    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}
