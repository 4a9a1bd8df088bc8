//! What a JSON patch may make of an object: a few operations that copy what they copied, or move what they moved into, lead to
//! any size and any depth.

use json_patch::PatchOperation;
use json_patch::jsonptr::PointerBuf;
use serde_json::Value;

use super::PatchError;

/// Values that one patch may copy or move, with all that is in them; each counts every time.
const MAX_MOVED: usize = 1 << 20;
/// Bytes of the texts in them.
const MAX_MOVED_BYTES: usize = 3 << 20;
/// Deepest nesting: what is deeper cannot be read again.
const MAX_DEPTH: usize = 127;

/// What one patch has moved so far.
#[derive(Debug, Default)]
pub(super) struct Growth {
    values: usize,
    bytes: usize,
}

impl Growth {
    /// Refuses an operation that would make the object too large or too deep.
    pub(super) fn check(&mut self, object: &Value, operation: &PatchOperation) -> Result<(), PatchError> {
        let (path, value) = match operation {
            PatchOperation::Add(add) => return nested(&add.path, &add.value),
            PatchOperation::Replace(replace) => return nested(&replace.path, &replace.value),
            PatchOperation::Copy(copy) => (&copy.path, object.pointer(copy.from.as_str())),
            PatchOperation::Move(r#move) => (&r#move.path, object.pointer(r#move.from.as_str())),
            PatchOperation::Remove(_) | PatchOperation::Test(_) => return Ok(()),
        };
        let Some(value) = value else { return Ok(()) };
        self.count(value);
        if self.values > MAX_MOVED || self.bytes > MAX_MOVED_BYTES {
            return Err(PatchError::DoesNotApply(
                "it copies and moves too much; use fewer operations".to_owned(),
            ));
        }
        nested(path, value)
    }

    /// Stops as soon as it is too much.
    fn count(&mut self, value: &Value) {
        self.values += 1;
        if self.values > MAX_MOVED {
            return;
        }
        match value {
            Value::String(text) => self.bytes += text.len(),
            Value::Array(items) => items.iter().for_each(|item| self.count(item)),
            Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                self.bytes += name.len();
                self.count(value);
            }),
            _ => {}
        }
    }
}

fn nested(path: &PointerBuf, value: &Value) -> Result<(), PatchError> {
    if path.count() + depth(value) > MAX_DEPTH {
        return Err(PatchError::DoesNotApply(format!("it nests deeper than {MAX_DEPTH} levels")));
    }
    Ok(())
}

/// Recursion ends: nothing here is deeper than the bound.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}
