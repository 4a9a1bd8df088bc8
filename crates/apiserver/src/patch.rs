//! The three ways to patch: JSON patch, merge patch, strategic merge patch.

mod growth;
mod strategic;

use json_patch::PatchOperation;
use serde_json::Value;
use thiserror::Error;

use crate::schema::Type;
use crate::work::{Abandoned, Work};
use growth::Growth;

/// The most operations of one JSON patch.
const MAX_OPERATIONS: usize = 10_000;

/// The format of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
}

/// A decoded patch.
#[derive(Debug)]
pub(crate) enum Patch {
    Json(Vec<PatchOperation>),
    Merge(Value),
    Strategic(Value),
}

/// The error of a patch.
#[derive(Debug, Error)]
pub(crate) enum PatchError {
    /// The body is not a patch of this format.
    #[error("error decoding patch: {0}")]
    Malformed(String),
    #[error(
        "Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}"
    )]
    TooManyOperations(usize),
    /// A strategic merge that contradicts itself.
    #[error("{0}")]
    Contradictory(String),
    /// The object is not in the state that the patch expects, or an operation is malformed.
    #[error("the patch does not fit the object: {0}")]
    DoesNotApply(String),
    #[error(transparent)]
    Abandoned(#[from] Abandoned),
}

impl PatchKind {
    /// By media type, without parameters.
    pub(crate) fn of(media_type: &str) -> Option<Self> {
        match media_type {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            _ => None,
        }
    }
}

impl Patch {
    /// Decodes a patch from its JSON.
    pub(crate) fn read(kind: PatchKind, body: Value) -> Result<Self, PatchError> {
        match kind {
            PatchKind::Json => {
                if let Some(found) = body.as_array().map(Vec::len).filter(|n| *n > MAX_OPERATIONS) {
                    return Err(PatchError::TooManyOperations(found));
                }
                if !body.is_array() {
                    return Err(PatchError::Malformed(
                        "a JSON patch must be a list of operations".to_owned(),
                    ));
                }
                let operations =
                    serde_json::from_value(body).map_err(|e| PatchError::DoesNotApply(e.to_string()))?;
                Ok(Self::Json(operations))
            }
            _ if !body.is_object() => {
                Err(PatchError::Malformed("a merge patch must be a JSON object".to_owned()))
            }
            PatchKind::Merge => Ok(Self::Merge(body)),
            PatchKind::Strategic => Ok(Self::Strategic(body)),
        }
    }

    /// The patched object. `shape` guides strategic merges; without it they treat every list as a value.
    pub(crate) fn apply(
        &self,
        mut object: Value,
        shape: Option<&Type>,
        work: &Work,
    ) -> Result<Value, PatchError> {
        match self {
            Self::Json(operations) => {
                let mut growth = Growth::default();
                for operation in operations {
                    work.step()?;
                    growth.check(&object, operation)?;
                    if !tests_absence(&object, operation) {
                        json_patch::patch(&mut object, std::slice::from_ref(operation))
                            .map_err(|e| PatchError::DoesNotApply(e.to_string()))?;
                    }
                }
            }
            Self::Merge(patch) => json_patch::merge(&mut object, patch),
            Self::Strategic(patch) => strategic::merge(&mut object, patch, shape, work)?,
        }
        Ok(object)
    }
}

/// Whether an operation tests for null at an absent field of an existing object. Such a test succeeds: clients use it before they add a
/// field.
fn tests_absence(object: &Value, operation: &PatchOperation) -> bool {
    let PatchOperation::Test(test) = operation else { return false };
    let path = test.path.as_str();
    let parent = path.rsplit_once('/').and_then(|(parent, _)| object.pointer(parent));
    test.value.is_null() && object.pointer(path).is_none() && parent.is_some_and(Value::is_object)
}

#[cfg(test)]
mod tests;
