//! Lists as sets.

use super::{Native, no_overload};
use crate::meter::Meter;
use crate::value::{Failure, List, Value};

pub(super) fn native(function: &str) -> Option<Native> {
    Some(match function {
        "sets.contains" => |meter, _, args| match args {
            [Value::List(a), Value::List(b)] => contains(meter, a, b).map(Value::Bool),
            _ => no_overload("sets.contains", args),
        },
        "sets.equivalent" => |meter, _, args| match args {
            [Value::List(a), Value::List(b)] => {
                Ok(Value::Bool(contains(meter, a, b)? && contains(meter, b, a)?))
            }
            _ => no_overload("sets.equivalent", args),
        },
        "sets.intersects" => |meter, _, args| match args {
            [Value::List(a), Value::List(b)] => intersects(meter, a, b).map(Value::Bool),
            _ => no_overload("sets.intersects", args),
        },
        _ => return None,
    })
}

fn contains<'a>(meter: &mut Meter, list: &List<'a>, sublist: &List<'a>) -> Result<bool, Failure> {
    for item in sublist.iter() {
        if !list.contains(&item?, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects<'a>(meter: &mut Meter, a: &List<'a>, b: &List<'a>) -> Result<bool, Failure> {
    for item in a.iter() {
        match b.contains(&item?, meter) {
            Ok(true) => return Ok(true),
            Err(Failure::Exceeded) => return Err(Failure::Exceeded),
            _ => {}
        }
    }
    Ok(false)
}
