//! Functions of strings; indexes count code points.

use std::sync::Arc;

use super::{Native, no_overload};
use crate::meter::Meter;
use crate::value::{Eval, Failure, Value, error, short_escape};

pub(super) fn native(function: &str) -> Option<Native> {
    Some(match function {
        "contains" => |meter, _, args| test(meter, args, |text, part| text.contains(part)),
        "startsWith" => |meter, _, args| test(meter, args, |text, part| text.starts_with(part)),
        "endsWith" => |meter, _, args| test(meter, args, |text, part| text.ends_with(part)),
        "charAt" => char_at,
        "lowerAscii" => {
            |meter, _, args| map_text(meter, "lowerAscii", args, |text| text.to_ascii_lowercase().into())
        }
        "upperAscii" => {
            |meter, _, args| map_text(meter, "upperAscii", args, |text| text.to_ascii_uppercase().into())
        }
        "trim" => |meter, _, args| map_text(meter, "trim", args, |text| text.trim().into()),
        "strings.quote" => |meter, _, args| map_text(meter, "strings.quote", args, |text| quote(text).into()),
        "replace" => replace,
        "split" => split,
        "substring" => substring,
        "join" => join,
        _ => return None,
    })
}

fn test<'a>(meter: &mut Meter, args: &[Value<'a>], holds: fn(&str, &str) -> bool) -> Eval<'a> {
    let [Value::String(text), Value::String(part)] = args else { return error("no such overload") };
    meter.work(text.len() as u64 / 64)?;
    Ok(Value::Bool(holds(text, part)))
}

fn map_text<'a>(
    meter: &mut Meter,
    function: &str,
    args: &[Value<'a>],
    map: fn(&str) -> Arc<str>,
) -> Eval<'a> {
    let [Value::String(text)] = args else { return no_overload(function, args) };
    meter.work(text.len() as u64 / 64)?;
    Ok(Value::string(map(text)))
}

fn char_at<'a>(_: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let [Value::String(text), Value::Int(at)] = args else { return no_overload("charAt", args) };
    let out_of_range = || error(format!("index out of range: {at}"));
    let Ok(index) = usize::try_from(*at) else { return out_of_range() };
    match text.chars().nth(index) {
        Some(c) => Ok(Value::string(c.to_string())),
        None if text.chars().count() == index => Ok(Value::string("")),
        None => out_of_range(),
    }
}

fn replace<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let (text, old, new, limit) = match args {
        [Value::String(text), Value::String(old), Value::String(new)] => (text, old, new, -1),
        [Value::String(text), Value::String(old), Value::String(new), Value::Int(limit)] => {
            (text, old, new, *limit)
        }
        _ => return no_overload("replace", args),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    meter.work(text.len() as u64 / 64)?;
    let count = text.matches(&**old).count().min(limit) as u64;
    meter.work(count.saturating_mul(1 + new.len() as u64 / 64))?;
    Ok(Value::string(text.replacen(&**old, new, limit)))
}

fn split<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let (text, separator, limit) = match args {
        [Value::String(text), Value::String(separator)] => (text, separator, -1),
        [Value::String(text), Value::String(separator), Value::Int(limit)] => (text, separator, *limit),
        _ => return no_overload("split", args),
    };
    meter.work(text.len() as u64 / 64)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if limit == 0 {
        return Ok(Value::list(Vec::new()));
    }
    let parts: Vec<&str> = if separator.is_empty() {
        let mut parts: Vec<&str> = Vec::new();
        let mut rest: &str = text;
        while let Some(c) = rest.chars().next() {
            if parts.len() + 1 == limit {
                parts.push(rest);
                break;
            }
            let (first, after) = rest.split_at(c.len_utf8());
            parts.push(first);
            rest = after;
        }
        parts
    } else {
        text.splitn(limit, &**separator).collect()
    };
    meter.work(parts.len() as u64)?;
    Ok(Value::list(parts.into_iter().map(Value::string).collect()))
}

fn substring<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let (text, start, end) = match args {
        [Value::String(text), Value::Int(start)] => (text, *start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => (text, *start, Some(*end)),
        _ => return no_overload("substring", args),
    };
    if let Some(end) = end.filter(|end| start > *end) {
        return error(format!("invalid substring range. start: {start}, end: {end}"));
    }
    meter.work(text.len() as u64 / 64)?;
    let start = byte_index(text, start)?;
    let end = end.map_or(Ok(text.len()), |end| byte_index(text, end))?;
    Ok(Value::string(&text[start..end]))
}

/// Returns the place in bytes of an index in code points.
fn byte_index(text: &str, index: i64) -> Result<usize, Failure> {
    let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let found = usize::try_from(index).ok().and_then(|index| starts.into_iter().nth(index));
    found.map_or_else(|| error(format!("index out of range: {index}")), Ok)
}

/// Returns the index of a part in code points; `None` in place of the offset is the start, or the end for the last index.
pub(super) fn index_of(text: &str, part: &str, offset: Option<i64>, last: bool) -> Result<i64, Failure> {
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if part.is_empty() {
        return Ok(offset.unwrap_or(if last { length } else { 0 }));
    }
    if last && offset.is_none() && text.len() < part.len() {
        return Ok(-1);
    }
    let offset = offset.unwrap_or(if last { length - 1 } else { 0 });
    if offset < 0 {
        return error(format!("index out of range: {offset}"));
    }
    if offset >= length {
        return Ok(-1);
    }
    let at = byte_index(text, offset)?;
    let found = if last {
        // The part may start at the offset and end after it.
        let end = (at + part.len()).min(text.len());
        let end = (end..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
        text[..end].rfind(part).filter(|found| *found <= at)
    } else {
        text[at..].find(part).map(|found| at + found)
    };
    Ok(found.map_or(-1, |found| i64::try_from(text[..found].chars().count()).unwrap_or(-1)))
}

fn join<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let (list, separator) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, &**separator),
        _ => return no_overload("join", args),
    };
    let mut out = String::new();
    for (i, item) in list.iter().enumerate() {
        let text = match item? {
            Value::String(text) => text,
            other => return error(format!("join: invalid input: {}", other.plain())),
        };
        meter.work(1 + (text.len() + separator.len()) as u64 / 64)?;
        if i > 0 {
            out.push_str(separator);
        }
        out.push_str(&text);
    }
    Ok(Value::string(out))
}

fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match short_escape(c) {
            Some(escape) => out.push_str(escape),
            None => out.push(c),
        }
    }
    out.push('"');
    out
}
