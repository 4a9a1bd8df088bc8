//! Comparison of a response with an expectation.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::value::{Variables, substitute, substitute_text};

/// A description of a difference.
pub(crate) type Mismatch = String;

fn differs(path: &str, expected: impl std::fmt::Display, got: &Value) -> Mismatch {
    let mut line = format!("{path}: expected {expected:.300} got {:.600}", got.to_string());
    line.retain(|c| c != '\n');
    line
}

/// Returns whether `got` matches `want`, and binds variables only if so.
pub(crate) fn matches(want: &Value, got: &Value, variables: &mut Variables, loose: bool) -> bool {
    let mut trial = variables.clone();
    let matches = compare(want, got, &mut trial, "", loose).is_ok();
    if matches {
        *variables = trial;
    }
    matches
}

/// Compares `got` with `want`. With `loose`, objects may have more keys than expected.
pub(crate) fn compare(
    want: &Value,
    got: &Value,
    variables: &mut Variables,
    path: &str,
    loose: bool,
) -> Result<(), Mismatch> {
    match (want, got) {
        (Value::Object(fields), _) if fields.keys().any(|k| k.starts_with('$') && !k.starts_with("${")) => {
            for (matcher, argument) in fields {
                let argument =
                    if argument.is_string() { substitute(argument, variables)? } else { argument.clone() };
                one(matcher, &argument, got, variables, path, loose)?;
            }
            Ok(())
        }
        (Value::Object(fields), Value::Object(found)) => {
            let mut known = Vec::new();
            for (key, value) in fields {
                let key = substitute_text(key, variables)?;
                let path = format!("{path}.{key}");
                match found.get(&key) {
                    Some(found) => compare(value, found, variables, &path, loose)?,
                    None if value.get("$absent") == Some(&Value::Bool(true)) => {}
                    None => return Err(differs(&path, value, &Value::String("<nothing>".into()))),
                }
                known.push(key);
            }
            match found.iter().find(|(k, _)| !loose && !known.contains(k)) {
                Some((key, value)) => Err(differs(&format!("{path}.{key}"), "<nothing>", value)),
                None => Ok(()),
            }
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            for (i, (want, got)) in wanted.iter().zip(found).enumerate() {
                compare(want, got, variables, &format!("{path}[{i}]"), loose)?;
            }
            Ok(())
        }
        _ => {
            let want = substitute(want, variables)?;
            if same(&want, got) { Ok(()) } else { Err(differs(path, want, got)) }
        }
    }
}

/// Compares two values; numbers are compared by value.
fn same(a: &Value, b: &Value) -> bool {
    a == b || (a.is_number() && b.is_number() && a.as_f64() == b.as_f64())
}

fn one(
    matcher: &str,
    argument: &Value,
    got: &Value,
    variables: &mut Variables,
    path: &str,
    loose: bool,
) -> Result<(), Mismatch> {
    let text = argument.as_str().unwrap_or_default();
    let need = |ok: bool, what: String| if ok { Ok(()) } else { Err(differs(path, what, got)) };
    match matcher {
        "$rv" | "$uid" | "$time" | "$continue" | "$bind" => {
            let formed = matcher == "$bind" || got.as_str().is_some_and(|g| whole(syntax(matcher), g));
            need(formed, format!("<{matcher}>"))?;
            if text.is_empty() {
                return Ok(());
            }
            let bound = variables.entry(text.to_owned()).or_insert_with(|| got.clone()).clone();
            need(same(&bound, got), format!("<{text} = {bound}>"))
        }
        "$re" => need(got.as_str().is_some_and(|g| whole(text, g)), format!("<matching {text}>")),
        "$generated" => {
            let pattern = format!("{}[a-z0-9]{{5}}", regex::escape(text));
            need(got.as_str().is_some_and(|g| whole(&pattern, g)), format!("<matching {pattern}>"))
        }
        "$oneOf" => {
            let any = argument
                .as_array()
                .is_some_and(|all| all.iter().any(|want| matches(want, got, variables, loose)));
            need(any, format!("one of {argument}"))
        }
        "$contains" => {
            let items = got.as_array().cloned().unwrap_or_default();
            for want in argument.as_array().into_iter().flatten() {
                let found = items.iter().any(|item| matches(want, item, variables, loose));
                need(found, format!("an element {want}"))?;
            }
            need(got.is_array(), "<array>".to_owned())
        }
        "$len" => {
            let len = match got {
                Value::Array(items) => Some(items.len()),
                Value::Object(fields) => Some(fields.len()),
                Value::String(text) => Some(text.len()),
                _ => None,
            };
            need(len.map(|l| l as u64) == argument.as_u64(), format!("<length {argument}>"))
        }
        "$type" => {
            let matches = match text {
                "string" => got.is_string(),
                "number" => got.is_number(),
                "bool" => got.is_boolean(),
                "array" => got.is_array(),
                "object" => got.is_object(),
                _ => false,
            };
            need(matches, format!("<{text}>"))
        }
        "$atLeast" => compare(argument, got, variables, path, true),
        "$exact" => compare(argument, got, variables, path, false),
        "$any" => Ok(()),
        "$absent" => need(false, "<nothing>".to_owned()),
        other => need(false, format!("<a known matcher, not {other}>")),
    }
}

fn syntax(matcher: &str) -> &'static str {
    match matcher {
        "$rv" => "[1-9][0-9]*",
        "$uid" => "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        "$time" => r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z",
        _ => r"\S+",
    }
}

fn whole(pattern: &str, text: &str) -> bool {
    Regex::new(&format!("(?s)^(?:{pattern})$")).expect("a valid pattern").is_match(text)
}

/// Checks an assertion on variables, such as `a < b <= c`.
pub(crate) fn check_assertion(line: &str, variables: &Variables) -> Result<(), Mismatch> {
    static WORDS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\s+").expect("a valid pattern"));
    let words: Vec<&str> = WORDS.split(line.trim()).collect();
    let number = |name: &str| {
        let value = variables.get(name).and_then(Value::as_str).and_then(|v| v.parse::<u64>().ok());
        value.ok_or_else(|| format!("assert: {name} is not a bound number"))
    };
    for window in words.windows(3).step_by(2) {
        let (a, b) = (number(window[0])?, number(window[2])?);
        let holds = match window[1] {
            "<" => a < b,
            "<=" => a <= b,
            "==" => a == b,
            "!=" => a != b,
            ">" => a > b,
            ">=" => a >= b,
            other => return Err(format!("assert: unknown operator {other}")),
        };
        if !holds {
            return Err(format!("assert: expected {line}, got {} = {a}, {} = {b}", window[0], window[2]));
        }
    }
    Ok(())
}

#[test]
fn the_matcher_rejects_differences() {
    use serde_json::json;
    let mut variables = Variables::new();
    let mut check = |want: Value, got: Value| compare(&want, &got, &mut variables, "", false).is_ok();
    assert!(check(json!({"a": {"$rv": "x"}}), json!({"a": "12"})));
    assert!(!check(json!({"a": {"$rv": "x"}}), json!({"a": "13"})));
    assert!(!check(json!({"$rv": ""}), json!("012")));
    assert!(!check(json!({"a": 1}), json!({"a": 1, "b": 2})));
    assert!(check(json!({"$atLeast": {"a": 1}}), json!({"a": 1, "b": 2})));
    assert!(!check(json!({"$atLeast": {"a": {"$exact": {}}}}), json!({"a": {"b": 2}})));
    assert!(!check(json!({"a": {"$absent": true}}), json!({"a": 1})));
    assert!(!check(json!([1]), json!([1, 2])));
    assert!(!check(json!({"$contains": [1, 4]}), json!([1, 2])));
    assert!(!check(json!(true), json!(1)));
}
