//! The bytes that defaults may add to an object.

use serde_json::Value;

/// An object grows beyond what can be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the object is too large to be stored")]
pub(crate) struct TooLarge;

/// Bytes of JSON that may still be added to an object: a few defaults in a schema can make a small object with many elements a thousand
/// times as large.
#[derive(Debug)]
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { left: bytes }
    }

    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Allows this many more bytes, or nothing from now on.
    pub(crate) fn spend(&mut self, bytes: usize) -> Result<(), TooLarge> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(TooLarge)
            }
        }
    }

    /// Allows one more field.
    pub(crate) fn spend_field(&mut self, name: &str, value: &Value) -> Result<(), TooLarge> {
        self.spend(field_len(name, value))
    }
}

/// Bytes of a field and its value as JSON, without escapes.
pub(crate) fn field_len(name: &str, value: &Value) -> usize {
    name.len() + 4 + len(value)
}

fn len(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| len(item) + 1).sum::<usize>(),
        Value::Object(fields) => 2 + fields.iter().map(|(name, value)| field_len(name, value)).sum::<usize>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_spent_budget_stays_spent() {
        let mut budget = Budget::new(30);
        assert_eq!(budget.spend_field("k", &json!({"a": ["bc"]})), Ok(()));
        assert_eq!(budget.spend(30), Err(TooLarge));
        assert_eq!(budget.spend(1), Err(TooLarge));
    }
}
