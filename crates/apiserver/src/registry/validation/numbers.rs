//! Numbers with bounds.

use serde_json::Value;

use crate::registry::Object;
use crate::status::{FieldError, FieldErrors};

const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// Errors for negative numbers at these pointers.
pub(super) fn not_negative(object: &Object, places: &[&str]) -> FieldErrors {
    let negative = |place: &&str| object.at(place)?.as_i64().filter(|number| *number < 0);
    let named = |place: &&str| place[1..].replace('/', ".");
    let wrong = places.iter().filter_map(|place| Some((named(place), negative(place)?)));
    wrong.map(|(field, number)| FieldError::invalid(field, number, NOT_NEGATIVE)).collect()
}

/// A number or a percentage, of pods for example.
pub(super) fn share(value: &Value, field: &str) -> FieldErrors {
    match value {
        Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
            [FieldError::invalid(field, number, NOT_NEGATIVE)].into()
        }
        Value::String(text) => {
            let digits = text.strip_suffix('%').filter(|digits| !digits.is_empty());
            if digits.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit())) {
                return FieldErrors::new();
            }
            let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used \
                       for validation is '[0-9]+%')";
            [FieldError::invalid(field, text, why)].into()
        }
        _ => FieldErrors::new(),
    }
}
