//! The values of an `enum` in a schema.

use std::collections::HashSet;

use serde_json::{Number, Value};

/// The values that a schema allows. A lookup takes the same time however many there are.
#[derive(Debug, Default)]
pub(super) struct Allowed {
    values: Vec<Value>,
    keys: HashSet<Key>,
}

/// A value such that equal values have equal keys. Numbers are equal if they have the same value: 1 and 1.0.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Key {
    Text(String),
    Integer(i128),
    /// The bits of a number that is no integer.
    Float(u64),
    /// JSON of any other value. The fields of objects are sorted.
    Other(String),
}

impl Key {
    fn new(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text.clone()),
            Value::Number(number) => Self::number(number),
            other => Self::Other(other.to_string()),
        }
    }

    fn number(number: &Number) -> Self {
        if let Some(integer) = number.as_i128() {
            return Self::Integer(integer);
        }
        let float = number.as_f64().unwrap_or_default();
        // Below 2^100 each integer float is an exact i128.
        if float.fract() == 0.0 && float.abs() < 2f64.powi(100) {
            Self::Integer(float as i128)
        } else {
            Self::Float(float.to_bits())
        }
    }
}

impl Allowed {
    pub(super) fn new(values: &[Value]) -> Self {
        Self { values: values.to_vec(), keys: values.iter().map(Key::new).collect() }
    }

    /// The values in the order of the schema. Without any, every value is allowed.
    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    pub(super) fn contains(&self, value: &Value) -> bool {
        self.values.is_empty() || self.keys.contains(&Key::new(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_compared_by_value_and_everything_else_by_json() {
        let list = [json!("a"), json!(1), json!(2.5), json!({"a": 1, "b": [2]}), json!(null), json!(1e20)];
        let allowed = Allowed::new(&list);
        for yes in [json!("a"), json!(1.0), json!(2.5), json!({"b": [2], "a": 1}), json!(null), json!(1e20)] {
            assert!(allowed.contains(&yes), "{yes}");
        }
        for no in [json!("1"), json!(2), json!(2.50001), json!({"a": 1}), json!(false), json!("null")] {
            assert!(!allowed.contains(&no), "{no}");
        }
        assert!(Allowed::new(&[]).contains(&json!(7)));
    }
}
