//! Limits of JSON patches. A few operations that copy what they copied, or move what they moved into, lead to any size and any depth;
//! operations at the front of a long list shift all its elements.

use json_patch::PatchOperation;
use json_patch::jsonptr::PointerBuf;
use serde_json::Value;

use super::PatchError;

/// Values that one patch may copy or move, with all that is in them; each counts every time.
const MAX_MOVED: usize = 1 << 20;
/// Bytes of the texts in them.
const MAX_MOVED_BYTES: usize = 3 << 20;
/// List elements that one patch may shift: each insertion and removal shifts those behind it.
const MAX_SHIFTED: usize = 1 << 26;
/// Deepest nesting: deeper values cannot be decoded.
const MAX_DEPTH: usize = 127;

/// The work of one patch so far.
#[derive(Debug, Default)]
pub(super) struct Growth {
    values: usize,
    bytes: usize,
    shifted: usize,
}

impl Growth {
    /// Rejects an operation that would make the object too large or too deep, or shift too many list elements.
    pub(super) fn check(&mut self, object: &Value, operation: &PatchOperation) -> Result<(), PatchError> {
        self.shifted += shifted(object, operation);
        if self.shifted > MAX_SHIFTED {
            return Err(PatchError::DoesNotApply(
                "it shifts too many list elements; replace the list instead".to_owned(),
            ));
        }
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

/// The list elements behind those that an operation inserts and removes.
fn shifted(object: &Value, operation: &PatchOperation) -> usize {
    match operation {
        PatchOperation::Add(add) => behind(object, &add.path),
        PatchOperation::Remove(remove) => behind(object, &remove.path),
        PatchOperation::Copy(copy) => behind(object, &copy.path),
        PatchOperation::Move(r#move) => behind(object, &r#move.from) + behind(object, &r#move.path),
        PatchOperation::Replace(_) | PatchOperation::Test(_) => 0,
    }
}

/// The list elements behind a path; zero outside lists.
fn behind(object: &Value, path: &PointerBuf) -> usize {
    let Some((list, index)) = path.as_str().rsplit_once('/') else { return 0 };
    let list = object.pointer(list).and_then(Value::as_array);
    list.zip(index.parse::<usize>().ok()).map_or(0, |(list, index)| list.len().saturating_sub(index))
}

fn nested(path: &PointerBuf, value: &Value) -> Result<(), PatchError> {
    if path.count() + depth(value) > MAX_DEPTH {
        return Err(PatchError::DoesNotApply(format!("it nests deeper than {MAX_DEPTH} levels")));
    }
    Ok(())
}

/// Recursion is bounded, because no value here is deeper than the limit.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}
