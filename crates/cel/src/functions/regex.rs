//! Regular expressions.

use super::{Native, no_overload};
use crate::meter::Meter;
use crate::value::{Eval, Value, error};

pub(super) fn native(function: &str) -> Option<Native> {
    Some(match function {
        "matches" => matches,
        "find" => find,
        "findAll" => find_all,
        _ => return None,
    })
}

/// Returns the place of the pattern among the receiver and the arguments.
pub(crate) fn pattern_argument(function: &str) -> Option<usize> {
    matches!(function, "matches" | "find" | "findAll").then_some(1)
}

fn matches<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let [Value::String(text), Value::String(pattern)] = args else { return error("no such overload") };
    let regex = meter.regex(pattern)?;
    meter.work(text.len() as u64 / 16)?;
    Ok(Value::Bool(regex.is_match(text)))
}

fn find<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let [Value::String(text), Value::String(pattern)] = args else { return no_overload("find", args) };
    let regex = meter.regex(pattern)?;
    meter.work(text.len() as u64 / 16)?;
    Ok(Value::string(regex.find(text).map_or("", |found| found.as_str())))
}

fn find_all<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let (text, pattern, limit) = match args {
        [Value::String(text), Value::String(pattern)] => (text, pattern, -1),
        [Value::String(text), Value::String(pattern), Value::Int(limit)] => (text, pattern, *limit),
        _ => return no_overload("findAll", args),
    };
    let regex = meter.regex(pattern)?;
    meter.work(text.len() as u64 / 16)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut out = Vec::new();
    for found in regex.find_iter(text).take(limit) {
        meter.work(1)?;
        out.push(Value::string(found.as_str()));
    }
    Ok(Value::list(out))
}
