//! Transforms of informers.

use crate::{history::Write, log::Log, totals::Fault};
use kube_informer::Transform;
use serde_json::{Value, json};
use std::{panic::resume_unwind, sync::Arc};

/// The transform of an informer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransformKind {
    None,
    DropManagedFields,
    /// Drops `data.bulk`.
    DropBulk,
    /// Drops `data`. Only for controllers, which have no index on it.
    DropData,
    /// Drops `metadata.annotations`.
    DropAnnotations,
    /// Drops a field of each element of an array.
    DropSecrets,
    /// A function that removes elements of an array.
    FilterItems,
    /// A function that changes `data`.
    Function,
    /// A function that panics on some objects, which are cached without their content.
    Panicking,
}

/// Whether the panicking transform panics on an object.
fn panics_on(stamp: u64) -> bool {
    stamp % 11 == 1
}

/// The number in the content of an object.
fn stamp(object: &Value) -> u64 {
    object["data"]["n"].as_str().and_then(|n| n.parse().ok()).unwrap_or(0)
}

impl TransformKind {
    /// A transform for any informer.
    pub(crate) fn random(rng: &mut fastrand::Rng) -> Self {
        let all = [
            Self::None,
            Self::None,
            Self::None,
            Self::DropManagedFields,
            Self::DropBulk,
            Self::DropAnnotations,
            Self::DropSecrets,
            Self::FilterItems,
            Self::Function,
            Self::Panicking,
        ];
        rng.choice(all).unwrap_or(Self::None)
    }

    /// A word that only the description of this transform has.
    pub(crate) fn described_by(self) -> &'static str {
        match self {
            Self::None => "drops ; functions: none",
            Self::DropManagedFields => "metadata.managedFields",
            Self::DropBulk => "data.bulk",
            Self::DropData => "drops data;",
            Self::DropAnnotations => "metadata.annotations",
            Self::DropSecrets => "spec.items[*].secret",
            Self::FilterItems => "filter-items",
            Self::Function => "function-1",
            Self::Panicking => "panicking",
        }
    }

    pub(crate) fn make(self, log: &Arc<Log>) -> Transform {
        let log = Arc::clone(log);
        match self {
            Self::None => Transform::new(),
            Self::DropManagedFields => Transform::drop_managed_fields(),
            Self::DropBulk => dropping("data.bulk"),
            Self::DropData => dropping("data"),
            Self::DropAnnotations => dropping("metadata.annotations"),
            Self::DropSecrets => dropping("spec.items[*].secret"),
            Self::FilterItems | Self::Function => {
                Transform::new().function(move |object| self.change(object)).version(self.described_by())
            }
            Self::Panicking => {
                let function = move |object: &mut Value| {
                    if panics_on(stamp(object)) {
                        log.record_fault(Fault::TransformPanic);
                        resume_unwind(Box::new("simulated"));
                    }
                };
                Transform::new().function(function).version(self.described_by())
            }
        }
    }

    /// Changes an object in the same way as the transform.
    pub(crate) fn change(self, object: &mut Value) {
        let remove = |object: &mut Value, pointer: &str, name: &str| {
            object.pointer_mut(pointer).and_then(Value::as_object_mut).map(|fields| fields.remove(name));
        };
        let items = |object: &mut Value, change: &dyn Fn(&mut Vec<Value>)| {
            object.pointer_mut("/spec/items").and_then(Value::as_array_mut).map(change);
        };
        match self {
            Self::None | Self::Panicking => {}
            Self::DropManagedFields => remove(object, "/metadata", "managedFields"),
            Self::DropBulk => remove(object, "/data", "bulk"),
            Self::DropData => remove(object, "", "data"),
            Self::DropAnnotations => remove(object, "/metadata", "annotations"),
            Self::DropSecrets => {
                items(object, &|items| items.iter_mut().for_each(|item| remove(item, "", "secret")));
            }
            Self::FilterItems => items(object, &|items| items.retain(|item| item["name"] != "i0")),
            Self::Function => {
                object["data"]["bulk"] = Value::Null;
                object["data"]["stamp"] = json!(stamp(object) * 7);
            }
        }
    }

    /// Whether an object does not show which write it is: it has no labels, and its content is removed.
    pub(crate) fn hides(self, write: &Write) -> bool {
        write.invalid && self.removes_content(write)
    }

    /// Whether it removes the part of the content that shows which write an object is. Functions get no object that
    /// cannot be decoded, and its content is withheld.
    pub(crate) fn removes_content(self, write: &Write) -> bool {
        match self {
            Self::DropData => true,
            Self::FilterItems | Self::Function => write.tag.is_malformed(),
            Self::Panicking => write.tag.is_malformed() || panics_on(write.stamp),
            _ => false,
        }
    }
}

fn dropping(path: &str) -> Transform {
    Transform::new().drop_field(path).expect("a valid field path")
}
