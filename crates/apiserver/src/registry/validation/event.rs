//! Events.

use crate::registry::Object;
use crate::status::{FieldError, FieldErrors};

/// The namespace of an event is that of its object.
pub(in crate::registry) fn event(object: &Object) -> FieldErrors {
    let about = object.str_at("/involvedObject/namespace");
    let namespace = object.namespace().unwrap_or_default();
    let fits =
        about == namespace || (about.is_empty() && ["", "default", "kube-system"].contains(&namespace));
    if fits {
        FieldErrors::new()
    } else {
        [FieldError::invalid("involvedObject.namespace", about, "does not match event.namespace")].into()
    }
}
