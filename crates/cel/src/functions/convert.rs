//! Conversions between types, and sizes.

use std::sync::Arc;

use super::{Native, no_overload};
use crate::meter::Meter;
use crate::value::{Eval, Timestamp, Value, error, format_g, format_seconds, parse_double, parse_duration};

pub(super) fn native(function: &str) -> Option<Native> {
    Some(match function {
        "size" => size,
        "type" => |_, _, args| Ok(Value::Type(args.first().map_or("dyn", Value::type_name).into())),
        "dyn" => |_, _, args| Ok(args.first().cloned().unwrap_or(Value::Null)),
        "bool" => to_bool,
        "bytes" => to_bytes,
        "double" => to_double,
        "duration" => to_duration,
        "int" => to_int,
        "string" => to_string,
        "timestamp" => to_timestamp,
        "uint" => to_uint,
        _ => return None,
    })
}

/// Returns whether a call with a constant argument is evaluated once, when the program is made.
pub(crate) fn is_conversion(function: &str) -> bool {
    let names = ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];
    names.contains(&function)
}

fn size<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    match args {
        [value @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))] => {
            Ok(Value::Int(i64::try_from(value.size()).unwrap_or(i64::MAX)))
        }
        _ => error("no such overload: size"),
    }
}

fn invalid<'a>(from: &str, to: &str) -> Eval<'a> {
    error(format!("type conversion error from '{from}' to '{to}'"))
}

fn to_bool<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    match args {
        [Value::Bool(b)] => Ok(Value::Bool(*b)),
        [Value::String(text)] => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => invalid("string", "bool"),
        },
        _ => no_overload("bool", args),
    }
}

fn to_bytes<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    match args {
        [Value::Bytes(bytes)] => Ok(Value::Bytes(Arc::clone(bytes))),
        [Value::String(text)] => Ok(Value::Bytes(text.as_bytes().into())),
        _ => no_overload("bytes", args),
    }
}

fn to_double<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    match args {
        [Value::Double(d)] => Ok(Value::Double(*d)),
        [Value::Int(n)] => Ok(Value::Double(*n as f64)),
        [Value::Uint(n)] => Ok(Value::Double(*n as f64)),
        [Value::String(text)] => match parse_double(text) {
            Some(d) => Ok(Value::Double(d)),
            None => invalid("string", "double"),
        },
        _ => no_overload("double", args),
    }
}

fn to_duration<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    match args {
        [Value::Duration(d)] => Ok(Value::Duration(*d)),
        [Value::Int(_)] => invalid("int", "google.protobuf.Duration"),
        [Value::String(text)] => match parse_duration(text) {
            Some(d) => Ok(Value::Duration(d)),
            None => invalid("string", "google.protobuf.Duration"),
        },
        _ => no_overload("duration", args),
    }
}

fn to_int<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    match args {
        [Value::Int(n) | Value::Duration(n)] => Ok(Value::Int(*n)),
        [Value::Uint(n)] => match i64::try_from(*n) {
            Ok(n) => Ok(Value::Int(n)),
            Err(_) => error("integer overflow"),
        },
        // Both bounds are excluded: the nearest doubles of the largest integers are out of range.
        [Value::Double(d)] if *d > i64::MIN as f64 && *d < i64::MAX as f64 => Ok(Value::Int(*d as i64)),
        [Value::Double(_)] => error("integer overflow"),
        [Value::Timestamp(t)] => Ok(Value::Int(t.unix())),
        [Value::String(text)] => match text.parse() {
            Ok(n) => Ok(Value::Int(n)),
            Err(_) => invalid("string", "int"),
        },
        _ => no_overload("int", args),
    }
}

fn to_uint<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    match args {
        [Value::Uint(n)] => Ok(Value::Uint(*n)),
        [Value::Int(n)] => match u64::try_from(*n) {
            Ok(n) => Ok(Value::Uint(n)),
            Err(_) => error("unsigned integer overflow"),
        },
        [Value::Double(d)] if *d >= 0.0 && *d < u64::MAX as f64 => Ok(Value::Uint(*d as u64)),
        [Value::Double(_)] => error("unsigned integer overflow"),
        [Value::String(text)] => match text.parse().ok().filter(|_| !text.starts_with('+')) {
            Some(n) => Ok(Value::Uint(n)),
            None => invalid("string", "uint"),
        },
        _ => no_overload("uint", args),
    }
}

fn to_string<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let [value] = args else { return no_overload("string", args) };
    match text_of(value) {
        Some(Ok(text)) => Ok(text),
        Some(Err(why)) => error(why),
        None => no_overload("string", args),
    }
}

/// Returns the conversion of a value to a string, if its type has one.
pub(super) fn text_of<'a>(value: &Value<'a>) -> Option<Result<Value<'a>, &'static str>> {
    Some(Ok(match value {
        Value::String(text) => Value::String(text.clone()),
        Value::Bool(b) => Value::string(b.to_string()),
        Value::Int(n) => Value::string(n.to_string()),
        Value::Uint(n) => Value::string(n.to_string()),
        Value::Double(d) => Value::string(format_g(*d)),
        Value::Duration(d) => Value::string(format_seconds(*d)),
        Value::Timestamp(t) => Value::string(t.to_string()),
        Value::Ip(ip) => Value::string(ip.to_string()),
        Value::Cidr(cidr) => Value::string(cidr.to_string()),
        Value::Type(name) => Value::string(Arc::clone(name)),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::string(text),
            Err(_) => return Some(Err("invalid UTF-8 in bytes, cannot convert to string")),
        },
        _ => return None,
    }))
}

fn to_timestamp<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    match args {
        [Value::Timestamp(t)] => Ok(Value::Timestamp(*t)),
        [Value::Int(n)] => match Timestamp::from_unix(*n) {
            Some(t) => Ok(Value::Timestamp(t)),
            None => error("timestamp overflow"),
        },
        [Value::String(text)] => match Timestamp::parse(text) {
            Some(Some(t)) => Ok(Value::Timestamp(t)),
            Some(None) => error("timestamp overflow"),
            None => invalid("string", "google.protobuf.Timestamp"),
        },
        _ => no_overload("timestamp", args),
    }
}
