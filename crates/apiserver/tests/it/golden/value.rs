//! Variables: `${name}`, `${name+1}`, `${name-1}` in any string.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

pub(crate) type Variables = BTreeMap<String, Value>;

/// Replaces variables in every string and key inside `value`.
pub(crate) fn substitute(value: &Value, variables: &Variables) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(substitute_text(text, variables)?),
        Value::Array(items) => {
            Value::Array(items.iter().map(|v| substitute(v, variables)).collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => {
            let pairs =
                fields.iter().map(|(k, v)| Ok((substitute_text(k, variables)?, substitute(v, variables)?)));
            Value::Object(pairs.collect::<Result<Map<_, _>, String>>()?)
        }
        other => other.clone(),
    })
}

pub(crate) fn substitute_text(text: &str, variables: &Variables) -> Result<String, String> {
    static PATTERN: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\$\{(\w+)([+-]\d+)?\}").expect("a valid pattern"));
    let mut unbound = None;
    let filled = PATTERN.replace_all(text, |found: &Captures<'_>| {
        let value = variables.get(&found[1]).map(|v| match v {
            Value::String(s) => s.clone(),
            other => other.to_string(),
        });
        let shifted = match (value, found.get(2)) {
            (Some(value), None) => Some(value),
            (Some(value), Some(shift)) => {
                let sum =
                    value.parse::<i64>().ok().zip(shift.as_str().parse::<i64>().ok()).map(|(v, s)| v + s);
                sum.map(|s| s.to_string())
            }
            (None, _) => None,
        };
        shifted.unwrap_or_else(|| {
            unbound = Some(found[0].to_owned());
            String::new()
        })
    });
    let filled = filled.into_owned();
    unbound.map_or(Ok(filled), |name| Err(format!("{name} is unbound")))
}
