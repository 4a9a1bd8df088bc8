//! Optional values.

use super::{Native, no_overload};
use crate::meter::Meter;
use crate::value::{Eval, Value, error};

pub(super) fn native(function: &str) -> Option<Native> {
    Some(match function {
        "optional.of" => |_, _, args| match args {
            [value] => Ok(Value::some(value.clone())),
            _ => no_overload("optional.of", args),
        },
        "optional.ofNonZeroValue" => |_, _, args| match args {
            [value] if value.is_zero() => Ok(Value::Optional(None)),
            [value] => Ok(Value::some(value.clone())),
            _ => no_overload("optional.ofNonZeroValue", args),
        },
        "optional.none" => |_, _, _| Ok(Value::Optional(None)),
        "value" => |_, _, args| match args {
            [Value::Optional(Some(value))] => Ok(value.as_ref().clone()),
            [Value::Optional(None)] => error("optional.none() dereference"),
            _ => no_overload("value", args),
        },
        "hasValue" => |_, _, args| match args {
            [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
            _ => no_overload("hasValue", args),
        },
        "first" => |_, _, args| match args {
            [Value::List(list)] => {
                list.get(0).map_or(Ok(Value::Optional(None)), |item| item.map(Value::some))
            }
            _ => no_overload("first", args),
        },
        "last" => |_, _, args| match args {
            [Value::List(list)] => {
                let last = list.len().checked_sub(1).and_then(|last| list.get(last));
                last.map_or(Ok(Value::Optional(None)), |item| item.map(Value::some))
            }
            _ => no_overload("last", args),
        },
        "optional.unwrap" | "unwrapOpt" => unwrap,
        _ => return None,
    })
}

fn unwrap<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let [Value::List(list)] = args else { return no_overload("optional.unwrap", args) };
    meter.work(list.len() as u64)?;
    let mut out = Vec::new();
    for item in list.iter() {
        match item? {
            Value::Optional(Some(value)) => out.push(value.as_ref().clone()),
            Value::Optional(None) => {}
            other => return error(format!("value {other} is not optional")),
        }
    }
    Ok(Value::list(out))
}
