//! JSON with a schema as values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use super::{Eval, List, Map, Text, Timestamp, Value, error, parse_duration};
use crate::schema::{Kind, Schema};

/// Returns the value of JSON, or an error if it is not valid for the schema.
pub(crate) fn to_value<'a>(json: &'a Json, schema: &'a Schema) -> Eval<'a> {
    if json.is_null() {
        if schema.nullable {
            return Ok(Value::Null);
        }
        return error("invalid data, got null for schema with nullable=false");
    }
    if schema.int_or_string {
        return match json {
            Json::String(text) => Ok(Value::String(Text::Borrowed(text))),
            json => match integer(json) {
                Some(n) => Ok(Value::Int(n)),
                None => error("invalid data, expected XIntOrString value to be either a string or integer"),
            },
        };
    }
    match schema.kind {
        Some(Kind::Object) => match json {
            Json::Object(fields) => Ok(Value::Map(Map::Json(fields, schema))),
            _ => error("invalid data, expected a map for the provided schema with type=object"),
        },
        Some(Kind::Array) => match (json, &schema.items) {
            (Json::Array(items), Some(element)) => Ok(Value::List(List::json(items, element, &schema.list))),
            (Json::Array(_), None) => error("invalid array type, expected Items with a non-empty Schema"),
            _ => error("invalid data, expected an array for the provided schema with type=array"),
        },
        Some(Kind::String) => match json {
            Json::String(text) => string(text, &schema.format),
            other => error(format!("invalid data, expected string, got {}", go_type(other))),
        },
        Some(Kind::Number) => match json.as_f64() {
            Some(f) => Ok(Value::Double(f)),
            None => error(format!("invalid data, expected float, got {}", go_type(json))),
        },
        Some(Kind::Integer) => match integer(json) {
            Some(n) => Ok(Value::Int(n)),
            None => error(format!("invalid data, expected int, got {}", go_type(json))),
        },
        Some(Kind::Boolean) => match json {
            Json::Bool(b) => Ok(Value::Bool(*b)),
            other => error(format!("invalid data, expected bool, got {}", go_type(other))),
        },
        None if schema.preserve => Ok(Value::Preserved(json)),
        None => error(
            "invalid type, expected object, array, number, integer, boolean or string, or no type with \
             x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got ",
        ),
    }
}

/// `1.0` is an integer in a schema.
fn integer(json: &Json) -> Option<i64> {
    let whole = |f: f64| (f.fract() == 0.0 && f.abs() < 9.2e18).then_some(f as i64);
    json.as_i64().or_else(|| json.as_f64().and_then(whole))
}

fn go_type(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(n) if n.is_f64() => "float64",
        Json::Number(_) => "int64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}

fn string<'a>(text: &'a str, format: &str) -> Eval<'a> {
    match format {
        "duration" => match parse_duration(text).or_else(|| parse_long_duration(text)) {
            Some(nanos) => Ok(Value::Duration(nanos)),
            None => error(format!("Invalid duration {text}: unable to parse {text} as duration")),
        },
        "date" => match Timestamp::parse_date(text) {
            Some(date) => Ok(Value::Timestamp(date)),
            None => error(format!("Invalid date formatted string {text}")),
        },
        "date-time" => match Timestamp::parse_date_time(text) {
            Some(time) => Ok(Value::Timestamp(time)),
            None => error(format!("Invalid date-time formatted string {text}")),
        },
        "byte" => match STANDARD.decode(text) {
            Ok(bytes) => Ok(Value::Bytes(bytes.into())),
            Err(_) => error(format!("Invalid byte formatted string {text}")),
        },
        _ => Ok(Value::String(Text::Borrowed(text))),
    }
}

/// Parses the longer units that the format `duration` has, such as `2 weeks 1 day`.
fn parse_long_duration(text: &str) -> Option<i64> {
    let mut total: i64 = 0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let number: f64 = rest.get(..digits)?.parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit: f64 = match rest[..letters].to_ascii_lowercase().as_str() {
            "ns" | "nano" | "nanos" | "nanosecond" | "nanoseconds" => 1.0,
            "us" | "micro" | "micros" | "microsecond" | "microseconds" => 1e3,
            "ms" | "milli" | "millis" | "millisecond" | "milliseconds" => 1e6,
            "s" | "sec" | "secs" | "second" | "seconds" => 1e9,
            "m" | "min" | "mins" | "minute" | "minutes" => 60e9,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600e9,
            "d" | "day" | "days" => 86_400e9,
            "w" | "wk" | "week" | "weeks" => 604_800e9,
            _ => return None,
        };
        let nanos = number * unit;
        if nanos.is_nan() || nanos.abs() >= 9.2e18 {
            return None;
        }
        total = total.checked_add(nanos as i64)?;
        rest = rest[letters..].trim_start();
    }
    Some(total)
}
