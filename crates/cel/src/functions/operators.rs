//! Operators.

use std::cmp::Ordering;

use super::Native;
use crate::meter::Meter;
use crate::value::{Eval, Value, compare, error};

pub(super) fn native(function: &str) -> Option<Native> {
    Some(match function {
        "_+_" => add,
        "_-_" => subtract,
        "_*_" => multiply,
        "_/_" => divide,
        "_%_" => modulo,
        "-_" => negate,
        "!_" => not,
        "_<_" => |_, _, args| ordered("_<_", args, Ordering::is_lt),
        "_<=_" => |_, _, args| ordered("_<=_", args, Ordering::is_le),
        "_>_" => |_, _, args| ordered("_>_", args, Ordering::is_gt),
        "_>=_" => |_, _, args| ordered("_>=_", args, Ordering::is_ge),
        "@in" => contained,
        "cel.@mapInsert" => map_insert,
        _ => return None,
    })
}

/// The error if the operand has the operator for other types, or not at all.
fn mismatch<'a>(operator: &str, supported: bool) -> Eval<'a> {
    if supported { error("no such overload") } else { error(format!("no such overload: {operator}")) }
}

fn int<'a>(n: Option<i64>) -> Eval<'a> {
    n.map_or_else(|| error("integer overflow"), |n| Ok(Value::Int(n)))
}

fn uint<'a>(n: Option<u64>) -> Eval<'a> {
    n.map_or_else(|| error("unsigned integer overflow"), |n| Ok(Value::Uint(n)))
}

fn duration<'a>(n: Option<i64>) -> Eval<'a> {
    n.map_or_else(|| error("integer overflow"), |n| Ok(Value::Duration(n)))
}

pub(super) fn add<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    use Value::{Bytes, Double, Duration, Int, List, String, Timestamp, Uint};
    match args {
        [Int(a), Int(b)] => int(a.checked_add(*b)),
        [Uint(a), Uint(b)] => uint(a.checked_add(*b)),
        [Double(a), Double(b)] => Ok(Double(a + b)),
        [String(a), String(b)] => {
            meter.work((a.len() + b.len()) as u64 / 64)?;
            Ok(Value::string([&**a, &**b].concat()))
        }
        [Bytes(a), Bytes(b)] => {
            meter.work((a.len() + b.len()) as u64 / 64)?;
            Ok(Bytes([&**a, &**b].concat().into()))
        }
        [List(a), List(b)] => Ok(List(a.concat(b, meter)?)),
        [Duration(a), Duration(b)] => duration(a.checked_add(*b)),
        [Timestamp(t), Duration(d)] | [Duration(d), Timestamp(t)] => match t.add(*d) {
            Some(t) => Ok(Timestamp(t)),
            None => error("timestamp overflow"),
        },
        [Int(_) | Uint(_) | Double(_) | String(_) | Bytes(_) | List(_) | Duration(_) | Timestamp(_), _] => {
            mismatch("_+_", true)
        }
        _ => mismatch("_+_", false),
    }
}

fn subtract<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    use Value::{Double, Duration, Int, Timestamp, Uint};
    match args {
        [Int(a), Int(b)] => int(a.checked_sub(*b)),
        [Uint(a), Uint(b)] => uint(a.checked_sub(*b)),
        [Double(a), Double(b)] => Ok(Double(a - b)),
        [Duration(a), Duration(b)] => duration(a.checked_sub(*b)),
        [Timestamp(a), Timestamp(b)] => duration(a.since(b)),
        [Timestamp(t), Duration(d)] => match d.checked_neg().map(|d| t.add(d)) {
            Some(Some(t)) => Ok(Timestamp(t)),
            Some(None) => error("timestamp overflow"),
            None => error("integer overflow"),
        },
        [Int(_) | Uint(_) | Double(_) | Duration(_) | Timestamp(_), _] => mismatch("_-_", true),
        _ => mismatch("_-_", false),
    }
}

fn multiply<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    use Value::{Double, Int, Uint};
    match args {
        [Int(a), Int(b)] => int(a.checked_mul(*b)),
        [Uint(a), Uint(b)] => uint(a.checked_mul(*b)),
        [Double(a), Double(b)] => Ok(Double(a * b)),
        [Int(_) | Uint(_) | Double(_), _] => mismatch("_*_", true),
        _ => mismatch("_*_", false),
    }
}

fn divide<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    use Value::{Double, Int, Uint};
    match args {
        [Int(_), Int(0)] | [Uint(_), Uint(0)] => error("division by zero"),
        [Int(a), Int(b)] => int(a.checked_div(*b)),
        [Uint(a), Uint(b)] => uint(a.checked_div(*b)),
        [Double(a), Double(b)] => Ok(Double(a / b)),
        [Int(_) | Uint(_) | Double(_), _] => mismatch("_/_", true),
        _ => mismatch("_/_", false),
    }
}

fn modulo<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    use Value::{Int, Uint};
    match args {
        [Int(_), Int(0)] | [Uint(_), Uint(0)] => error("modulus by zero"),
        [Int(a), Int(b)] => int(a.checked_rem(*b)),
        [Uint(a), Uint(b)] => uint(a.checked_rem(*b)),
        [Int(_) | Uint(_), _] => mismatch("_%_", true),
        _ => mismatch("_%_", false),
    }
}

fn negate<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    match args {
        [Value::Int(n)] => int(n.checked_neg()),
        [Value::Double(d)] => Ok(Value::Double(-d)),
        [Value::Duration(d)] => duration(d.checked_neg()),
        _ => mismatch("-_", false),
    }
}

fn not<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    match args {
        [Value::Bool(b)] => Ok(Value::Bool(!b)),
        _ => mismatch("!_", false),
    }
}

fn ordered<'a>(operator: &str, args: &[Value<'a>], holds: fn(Ordering) -> bool) -> Eval<'a> {
    use Value::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    match args {
        [
            a @ (Bool(_) | Int(_) | Uint(_) | Double(_) | String(_) | Bytes(_) | Duration(_) | Timestamp(_)),
            b,
        ] => Ok(Bool(holds(compare(a, b)?))),
        _ => mismatch(operator, false),
    }
}

fn contained<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    match args {
        [value, Value::List(list)] => Ok(Value::Bool(list.contains(value, meter)?)),
        [key, Value::Map(map)] => Ok(Value::Bool(map.find(key)?.is_some())),
        _ => error("no such overload"),
    }
}

fn map_insert<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    match args {
        [Value::Map(map), key, value] => Ok(Value::Map(map.clone().insert(key, value.clone(), meter)?)),
        [Value::Map(map), Value::Map(more)] => Ok(Value::Map(map.clone().insert_all(more, meter)?)),
        _ => mismatch("cel.@mapInsert", false),
    }
}
