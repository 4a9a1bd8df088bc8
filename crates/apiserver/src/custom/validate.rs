//! Validation of a value against its schema, with the error messages of kube-apiserver.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::embedded;
use super::formats;
use super::lists;
use super::path::Path;
use super::ratcheting::{FormerItems, is_unchanged};
use super::schema::{Bound, Checks, JsonType, Structural};
use crate::status::{FieldError, FieldErrors};

/// Returns the errors of an object that is new, or that replaces `old`. Its `metadata` is checked elsewhere, except for the restrictions
/// in the schema.
///
/// Errors of a value that is the same in `old` are not reported: the value was valid when it was written. Duplicates in lists are reported
/// unless `old` has some.
pub(crate) fn validate(schema: &Structural, object: &Value, old: Option<&Value>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    check_change(schema, object, old, Path::ROOT, &mut errors);
    check_embedded(schema, object, Path::ROOT, true, &mut errors);
    let mut duplicates = FieldErrors::new();
    lists::check(schema, object, Path::ROOT, &mut duplicates);
    if !duplicates.is_empty() && !old.is_some_and(|old| has_duplicates(schema, old)) {
        errors.extend(duplicates);
    }
    errors
}

fn has_duplicates(schema: &Structural, object: &Value) -> bool {
    let mut found = FieldErrors::new();
    lists::check(schema, object, Path::ROOT, &mut found);
    !found.is_empty()
}

/// Appends the errors of a new value.
pub(super) fn check(schema: &Structural, value: &Value, path: Path<'_>, errors: &mut FieldErrors) {
    check_change(schema, value, None, path, errors);
}

/// Appends the errors of a value, unless it is the same as before.
fn check_change(
    schema: &Structural,
    value: &Value,
    old: Option<&Value>,
    path: Path<'_>,
    errors: &mut FieldErrors,
) {
    if errors.is_full() || value.is_null() && schema.nullable {
        return;
    }
    let before = errors.len();
    check_value(schema, value, old, path, errors);
    // Compared only if there are errors, because it visits the whole value.
    if errors.len() > before && old.is_some_and(|old| is_unchanged(schema, value, old)) {
        errors.truncate(before);
    }
}

fn check_value(
    schema: &Structural,
    value: &Value,
    old: Option<&Value>,
    path: Path<'_>,
    errors: &mut FieldErrors,
) {
    check_type(schema, value, path, errors);
    check_combined(&schema.checks, value, path, errors);
    match value {
        Value::String(text) => check_text(&schema.checks, text, path, errors),
        Value::Number(number) => check_number(&schema.checks, number, path, errors),
        Value::Array(items) => check_items(schema, items, old, path, errors),
        _ => {}
    }
    check_enum(&schema.checks, value, path, errors);
    if let Value::Object(fields) = value {
        check_fields(schema, fields, old, path, errors);
    }
}

fn check_type(schema: &Structural, value: &Value, path: Path<'_>, errors: &mut FieldErrors) {
    let found = type_of(value);
    let (matches, wanted) = match schema.kind {
        _ if schema.int_or_string => (is_integer(value) || value.is_string(), "integer,string"),
        None => (!value.is_null() || schema.preserve, "object"),
        Some(JsonType::Integer) => (is_integer(value), "integer"),
        Some(JsonType::Number) => (value.is_number(), "number"),
        Some(kind) => (found == kind.as_str(), kind.as_str()),
    };
    // Schemas in `anyOf`, `allOf`, `oneOf` and `not` have no type.
    let typed = schema.kind.is_some() || schema.int_or_string;
    if typed && !matches {
        let why = format!("{path} in body must be of type {wanted}: {found:?}");
        errors.push(FieldError::wrong_type(path, found, &why));
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns whether a value is an integer; `1.0` is one.
fn is_integer(value: &Value) -> bool {
    match value {
        Value::Number(n) => n.is_i64() || n.is_u64() || n.as_f64().is_some_and(|f| f.fract() == 0.0),
        _ => false,
    }
}

fn check_text(checks: &Checks, text: &str, path: Path<'_>, errors: &mut FieldErrors) {
    let length = text.chars().count() as u64;
    if let Some(max) = checks.max_length.filter(|max| length > *max) {
        errors.push(FieldError::too_long(path, usize::try_from(max).unwrap_or(usize::MAX)));
        return;
    }
    if let Some(min) = checks.min_length.filter(|min| length < *min) {
        let why = format!("{path} in body should be at least {min} chars long");
        errors.push(FieldError::invalid(path, text, why));
    }
    if let Some((pattern, _)) = checks.pattern.as_ref().filter(|(_, regex)| !regex.is_match(text)) {
        errors.push(FieldError::invalid(path, text, format!("{path} in body should match '{pattern}'")));
    }
    if let Some(format) = checks.format.as_deref().filter(|format| !formats::matches(format, text)) {
        let why = format!("{path} in body must be of type {format}: {text:?}");
        errors.push(FieldError::wrong_type(path, text, &why));
    }
}

fn check_number(checks: &Checks, number: &Number, path: Path<'_>, errors: &mut FieldErrors) {
    let bounds = match checks.format.as_deref() {
        Some("int32") => Some(i128::from(i32::MIN)..=i128::from(i32::MAX)),
        Some("int64") => Some(i128::from(i64::MIN)..=i128::from(i64::MAX)),
        _ => None,
    };
    if bounds.zip(number.as_i128()).is_some_and(|(bounds, number)| !bounds.contains(&number)) {
        let format = checks.format.as_deref().unwrap_or_default();
        let why = format!("Checked value must be of type integer with format {format} in {path}");
        errors.push(FieldError::invalid("<nil>", "", why));
        return;
    }
    let mut reject = |why: String| {
        errors.push(FieldError::invalid(path, number, format!("{path} in body should be {why}")));
    };
    if let Some(Bound { value, exclusive }) = &checks.minimum {
        match (compare(number, value), exclusive) {
            (Ordering::Less, false) => reject(format!("greater than or equal to {}", format_bound(value))),
            (Ordering::Less | Ordering::Equal, true) => {
                reject(format!("greater than {}", format_bound(value)))
            }
            _ => {}
        }
    }
    if let Some(Bound { value, exclusive }) = &checks.maximum {
        match (compare(number, value), exclusive) {
            (Ordering::Greater, false) => reject(format!("less than or equal to {}", format_bound(value))),
            (Ordering::Greater | Ordering::Equal, true) => {
                reject(format!("less than {}", format_bound(value)))
            }
            _ => {}
        }
    }
    if let Some(factor) = checks.multiple_of.as_ref().filter(|factor| !is_multiple(number, factor)) {
        reject(format!("a multiple of {}", format_bound(factor)));
    }
}

/// Integers are compared exactly, everything else as floating point.
fn compare(a: &Number, b: &Number) -> Ordering {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.as_f64().unwrap_or(f64::NAN).total_cmp(&b.as_f64().unwrap_or(f64::NAN)),
    }
}

fn is_multiple(number: &Number, factor: &Number) -> bool {
    match (number.as_i128(), factor.as_i128()) {
        (_, Some(0)) => true,
        (Some(number), Some(factor)) => number % factor == 0,
        _ => {
            let ratio = number.as_f64().unwrap_or(f64::NAN) / factor.as_f64().unwrap_or(f64::NAN);
            (ratio - ratio.round()).abs() < 1e-9
        }
    }
}

/// Formats a bound as Go does: whole numbers without a fraction.
fn format_bound(number: &Number) -> String {
    match number.as_f64() {
        Some(f) if number.is_f64() && f.fract() == 0.0 && f.abs() < 1e15 => format!("{f:.0}"),
        _ => number.to_string(),
    }
}

fn check_items(
    schema: &Structural,
    items: &[Value],
    old: Option<&Value>,
    path: Path<'_>,
    errors: &mut FieldErrors,
) {
    let count = items.len() as u64;
    if let Some(max) = schema.checks.max_items.filter(|max| count > *max) {
        errors.push(FieldError::too_many(path, count, max));
    }
    if let Some(min) = schema.checks.min_items.filter(|min| count < *min) {
        let why = format!("{path} in body should have at least {min} items");
        errors.push(FieldError::invalid(path, count, why));
    }
    if let Some(inner) = &schema.items {
        let former = FormerItems::new(&schema.list, old);
        for (i, item) in items.iter().enumerate() {
            check_change(inner, item, former.get(item), path.element(i), errors);
        }
    }
}

fn check_fields(
    schema: &Structural,
    fields: &Map<String, Value>,
    old: Option<&Value>,
    path: Path<'_>,
    errors: &mut FieldErrors,
) {
    let count = fields.len() as u64;
    if let Some(max) = schema.checks.max_properties.filter(|max| count > *max) {
        errors.push(FieldError::too_many(path, count, max));
    }
    if let Some(min) = schema.checks.min_properties.filter(|min| count < *min) {
        let why = format!("{path} in body should have at least {min} properties");
        errors.push(FieldError::invalid(path, count, why));
    }
    for name in schema.checks.required.iter().filter(|name| !fields.contains_key(*name)) {
        errors.push(FieldError::required(path.field(name), ""));
    }
    for (name, value) in fields {
        if let Some(inner) = schema.property(name) {
            // The type of an object is that of the request, and never the stored one.
            let is_type = path.is_root() && matches!(name.as_str(), "apiVersion" | "kind");
            let old = old.filter(|_| !is_type).and_then(|old| old.get(name));
            check_change(inner, value, old, path.field(name), errors);
        }
    }
}

fn check_enum(checks: &Checks, value: &Value, path: Path<'_>, errors: &mut FieldErrors) {
    if !checks.allowed.contains(value) {
        errors.push(FieldError::not_among(path, value, checks.allowed.values()));
    }
}

fn check_combined(checks: &Checks, value: &Value, path: Path<'_>, errors: &mut FieldErrors) {
    let errors_of = |schema: &Structural| {
        let mut found = FieldErrors::new();
        check(schema, value, path, &mut found);
        found
    };
    let mut reject = |why: String, nearest: FieldErrors| {
        // kube-apiserver reports no field here, only a message.
        errors.push(FieldError::invalid("<nil>", "", format!("{:?} must {why}", path.to_string())));
        errors.extend(nearest);
    };
    if !checks.any_of.is_empty() {
        let all: Vec<_> = checks.any_of.iter().map(errors_of).collect();
        if all.iter().all(|found| !found.is_empty()) {
            reject("validate at least one schema (anyOf)".to_owned(), nearest(all));
        }
    }
    if !checks.one_of.is_empty() {
        let all: Vec<_> = checks.one_of.iter().map(errors_of).collect();
        match all.iter().filter(|found| found.is_empty()).count() {
            1 => {}
            0 => {
                reject("validate one and only one schema (oneOf). Found none valid".to_owned(), nearest(all))
            }
            n => reject(
                format!("validate one and only one schema (oneOf). Found {n} valid alternatives"),
                FieldErrors::new(),
            ),
        }
    }
    let all: Vec<_> = checks.all_of.iter().map(errors_of).filter(|found| !found.is_empty()).collect();
    if !all.is_empty() {
        let none = if all.len() == checks.all_of.len() { ". None validated" } else { "" };
        reject(format!("validate all the schemas (allOf){none}"), all.into_iter().flatten().collect());
    }
    if let Some(not) = &checks.not
        && errors_of(not).is_empty()
    {
        reject("not validate the schema (not)".to_owned(), FieldErrors::new());
    }
}

/// Returns the errors of the alternative with the fewest.
fn nearest(all: Vec<FieldErrors>) -> FieldErrors {
    all.into_iter().min_by_key(FieldErrors::len).unwrap_or_default()
}

/// Checks the type and the metadata of embedded objects.
fn check_embedded(schema: &Structural, value: &Value, path: Path<'_>, root: bool, errors: &mut FieldErrors) {
    if errors.is_full() {
        return;
    }
    match value {
        Value::Object(fields) => {
            if schema.embedded && !root {
                errors.extend(embedded::errors(fields, path));
            }
            for (name, value) in fields {
                if let Some(inner) = schema.property(name) {
                    check_embedded(inner, value, path.field(name), false, errors);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                for (i, item) in items.iter().enumerate() {
                    check_embedded(inner, item, path.element(i), false, errors);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
