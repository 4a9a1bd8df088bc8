//! Making objects smaller before they are kept.

use crate::{delta::AnyObject, telemetry::Telemetry};
use bytes::Bytes;
use kube_informer_wire::{FieldPath, FieldPathError, Limits, Prune, Unreadable};
use serde_json::{Value, json};
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

type Function = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// What is done to every object before it is kept, handlers and listers included.
///
/// 1. Each object passes once, deleted ones too.
/// 2. Key, uid and version come from the wire and cannot be changed; labels are read after the transform.
/// 3. Dropping fields works on the bytes and decodes nothing. A function gets the object as a
///    [`serde_json::Value`], which costs a decode and an encode for each object that arrives.
/// 4. A function that panics costs that object its content, not its place in the cache.
///
/// ```
/// use kube_informer::Transform;
///
/// let slim = Transform::new()
///     .drop_field("metadata.managedFields")?
///     .function(|object| object["status"] = serde_json::Value::Null);
/// # Ok::<(), kube_informer::FieldPathError>(())
/// ```
#[derive(Clone, Default)]
pub struct Transform {
    dropped: Vec<FieldPath>,
    /// `dropped`, compiled.
    prune: Prune,
    functions: Vec<Function>,
}

impl Transform {
    /// A transform that changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Drops `metadata.managedFields`, usually a third of an object and of no interest to controllers.
    pub fn drop_managed_fields() -> Self {
        Self::new().drop_path(FieldPath::of(["metadata", "managedFields"]))
    }

    /// Drops a field, such as `spec.template`, `data` or `metadata.annotations[example.com/large]`.
    pub fn drop_field(self, path: &str) -> Result<Self, FieldPathError> {
        Ok(self.drop_path(path.parse()?))
    }

    fn drop_path(mut self, path: FieldPath) -> Self {
        self.dropped.push(path);
        self.prune = Prune::new(self.dropped.iter().cloned());
        self
    }

    /// Runs a function on each object.
    pub fn function(mut self, function: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.functions.push(Arc::new(function));
        self
    }

    /// Whether objects pass unchanged.
    pub fn is_empty(&self) -> bool {
        self.dropped.is_empty() && self.functions.is_empty()
    }

    /// Whether a field, or something above or below it, is dropped.
    pub(crate) fn drops(&self, path: &FieldPath) -> bool {
        self.dropped.iter().any(|dropped| dropped.overlaps(path))
    }

    /// Two transforms are the same if they drop the same fields and share their functions.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.dropped == other.dropped
            && self.functions.len() == other.functions.len()
            && self.functions.iter().zip(&other.functions).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// The object as it is kept.
    pub(crate) fn apply(&self, object: AnyObject, telemetry: &Telemetry) -> AnyObject {
        if self.is_empty() {
            return object;
        }
        let changed = catch_unwind(AssertUnwindSafe(|| self.changed(&object)));
        match changed {
            Ok(Some(Ok(changed))) => changed,
            // Not even JSON all through: whoever decodes it will be told.
            Ok(None) => object,
            Ok(Some(Err(_))) | Err(_) => {
                telemetry.transform_failed(object.key());
                identity_only(&object)
            }
        }
    }

    fn changed(&self, object: &AnyObject) -> Option<Result<AnyObject, Unreadable>> {
        let json = self.prune.apply(&object.json().ok()?).ok()?;
        let json = if self.functions.is_empty() { json } else { self.call_functions(&json)? };
        Some(object.with_content(json, &Limits::default()))
    }

    fn call_functions(&self, json: &[u8]) -> Option<Bytes> {
        let before: Value = serde_json::from_slice(json).ok()?;
        let mut value = before.clone();
        for function in &self.functions {
            function(&mut value);
        }
        keep_identity(&before, &mut value);
        Some(value.to_string().into())
    }
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transform(drops {:?}, {} functions)", self.dropped, self.functions.len())
    }
}

/// Sets right what a function made of the identity, so that content and key do not tell two stories.
fn keep_identity(before: &Value, after: &mut Value) {
    let Some(meta) = after.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for field in ["name", "namespace", "uid", "resourceVersion"] {
        match (meta.get_mut(field), before.pointer(&format!("/metadata/{field}"))) {
            (Some(now), Some(was)) if now != was => *now = was.clone(),
            (Some(_), None) => {
                meta.remove(field);
            }
            _ => {}
        }
    }
}

/// The object with nothing but its identity.
fn identity_only(object: &AnyObject) -> AnyObject {
    let labels: serde_json::Map<String, Value> =
        object.labels().iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
    let mut meta = json!({"name": object.name(), "resourceVersion": object.resource_version().to_string()});
    meta["labels"] = labels.into();
    meta["uid"] = object.uid().to_string().into();
    if let Some(namespace) = object.namespace() {
        meta["namespace"] = namespace.into();
    }
    let bare = json!({ "metadata": meta }).to_string();
    object.with_content(Bytes::from(bare), &Limits::default()).unwrap_or_else(|_| object.clone())
}
