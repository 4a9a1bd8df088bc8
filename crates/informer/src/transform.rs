//! Changes of objects before they are cached.

use crate::{delta::AnyObject, telemetry::Telemetry};
use kube_informer_wire::{FieldPath, FieldPathError, Limits, Omissions, Prune};
use serde_json::Value;
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

type Function = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// Changes each object before it is cached. Listers and handlers see the changed object.
///
/// 1. Each object is transformed once, deleted ones too.
/// 2. Key, uid and resource version come from the server and cannot be changed; labels are read after the transform.
/// 3. Dropping fields works on the bytes and decodes nothing. A function receives the object as a
///    [`serde_json::Value`], which costs a decode and an encode for each object; an informer with functions requests JSON,
///    not protobuf. A field that JSON always has, such as `spec` or `status`, can be dropped from JSON only: such objects
///    are stored as JSON.
/// 4. An object on which the transform fails (a function panics or leaves no object, or serde rejects the JSON) keeps its
///    identity and stays in the cache. Its content is withheld, because the transform may be meant to keep a secret out of
///    the cache: reading it is a `DecodeError`, [`Object::is_content_withheld`](crate::Object::is_content_withheld) is
///    true, and the failure is reported as [`InformerError::Transform`](crate::InformerError::Transform).
/// 5. [`Object::edit`](crate::Object::edit) refuses to write to fields that the transform dropped. For functions it knows
///    which fields they changed: fields of the object, and fields of `metadata`, `spec` and `status`. A change deeper
///    inside counts for the whole field: a function that filters `spec.containers` makes all of `spec.containers`
///    read-only. Dropping by path is exact and cheaper.
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
#[must_use = "a transform does nothing until an informer is built with it"]
pub struct Transform {
    dropped: Vec<FieldPath>,
    /// `dropped`, compiled.
    prune: Prune,
    /// `dropped`, for the objects.
    omissions: Arc<Omissions>,
    functions: Vec<Function>,
    /// The name of the functions, for saved caches.
    version: Option<String>,
}

impl Transform {
    /// A transform that changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Drops `metadata.managedFields`: usually a third of an object, and not used by controllers.
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
        self.omissions = Arc::new(Omissions::fields(self.dropped.iter().cloned()));
        self
    }

    /// Calls a function with each object.
    pub fn function(mut self, function: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.functions.push(Arc::new(function));
        self
    }

    /// Names what the functions do, so that a cache that was saved with them can be used by the next process
    /// ([`PersistOptions`](crate::PersistOptions)). Change the name whenever a function changes.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// The transform as text; `None` if it has functions without a version.
    pub(crate) fn description(&self) -> Option<String> {
        let dropped: Vec<String> = self.dropped.iter().map(ToString::to_string).collect();
        let functions = match (&self.version, self.functions.len()) {
            (_, 0) => "none",
            (Some(version), _) => version,
            (None, _) => return None,
        };
        Some(format!("drops {}; functions: {functions}", dropped.join(",")))
    }

    /// Whether the transform changes nothing.
    pub fn is_empty(&self) -> bool {
        self.dropped.is_empty() && self.functions.is_empty()
    }

    /// Whether functions are called, with JSON.
    pub(crate) fn has_functions(&self) -> bool {
        !self.functions.is_empty()
    }

    /// Whether the transform drops a field, a part of it, or a field that contains it.
    pub(crate) fn drops(&self, path: &FieldPath) -> bool {
        self.dropped.iter().any(|dropped| dropped.overlaps(path))
    }

    /// Whether both drop the same fields and share their functions.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.dropped == other.dropped
            && self.functions.len() == other.functions.len()
            && self.functions.iter().zip(&other.functions).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// The object as it is cached.
    pub(crate) fn apply(&self, object: AnyObject, telemetry: &Telemetry) -> AnyObject {
        if self.is_empty() {
            return object;
        }
        match catch_unwind(AssertUnwindSafe(|| self.changed(&object))) {
            Ok(Some(changed)) => changed,
            // The transform may be meant to keep secrets out of the cache, so untransformed content must not get in.
            Ok(None) | Err(_) => {
                telemetry.transform_failed(object.key());
                object.without_content()
            }
        }
    }

    /// `None` if the content cannot be read, or is not an object after the transform.
    fn changed(&self, object: &AnyObject) -> Option<AnyObject> {
        let limits = Limits::default();
        if self.functions.is_empty() {
            return object.without_fields(&self.prune, &self.omissions, &limits).ok();
        }
        let before: Value = serde_json::from_slice(&self.prune.apply(&object.json().ok()?).ok()?).ok()?;
        let after = self.call_functions(&before);
        let omissions = Arc::new(Omissions::between(&before, &after).and(&self.omissions));
        object.with_content(after.to_string().into(), &omissions, &limits).ok()
    }

    fn call_functions(&self, before: &Value) -> Value {
        let mut value = before.clone();
        for function in &self.functions {
            function(&mut value);
        }
        keep_identity(before, &mut value);
        value
    }
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transform(drops {:?}, {} functions)", self.dropped, self.functions.len())
    }
}

/// Restores identity fields that a function changed, so that the content agrees with the key.
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
