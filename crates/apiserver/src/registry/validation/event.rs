//! Events of both groups.

use serde_json::Value;

use crate::registry::Object;
use crate::registry::names::qualified_name;
use crate::status::{FieldError, FieldErrors};

/// The most characters of a reporting instance, an action and a reason.
const MAX_WORD: usize = 128;
/// The most characters of a message.
const MAX_MESSAGE: usize = 1024;

/// The names of the fields in one group.
struct Names {
    object: &'static str,
    message: &'static str,
    controller: &'static str,
}

const CORE: Names = Names { object: "involvedObject", message: "message", controller: "reportingComponent" };
const V1: Names = Names { object: "regarding", message: "note", controller: "reportingController" };

pub(in crate::registry) fn event(object: &Object) -> FieldErrors {
    check(object, &CORE)
}

pub(in crate::registry) fn event_v1(object: &Object) -> FieldErrors {
    check(object, &V1)
}

fn text<'o>(object: &'o Object, field: &str) -> &'o str {
    object.root().get(field).and_then(Value::as_str).unwrap_or_default()
}

fn is_set(object: &Object, field: &str) -> bool {
    object.root().get(field).is_some_and(|value| !value.is_null())
}

/// Checks that hold for every event. Events with a time are those of clients of `events.k8s.io`, in either group.
fn check(object: &Object, names: &Names) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let about = object.str_at(&format!("/{}/namespace", names.object));
    let namespace = object.namespace().unwrap_or_default();
    let is_new = is_set(object, "eventTime");
    let fits = match about {
        "" if is_new => ["default", "kube-system"].contains(&namespace),
        "" => ["", "default"].contains(&namespace),
        about => is_new || about == namespace,
    };
    if !fits {
        errors.push(FieldError::invalid("involvedObject.namespace", about, "does not match event.namespace"));
    }
    if !is_new {
        return errors;
    }
    let controller = text(object, names.controller);
    if controller.is_empty() {
        errors.push(FieldError::required(names.controller, ""));
    }
    errors.extend(
        qualified_name(controller)
            .into_iter()
            .map(|why| FieldError::invalid(names.controller, controller, why)),
    );
    for field in ["reportingInstance", "action", "reason"] {
        if text(object, field).is_empty() {
            errors.push(FieldError::required(field, ""));
        }
        errors.extend(too_long(field, text(object, field), MAX_WORD));
    }
    errors.extend(too_long("message", text(object, names.message), MAX_MESSAGE));
    errors
}

fn too_long(field: &str, text: &str, limit: usize) -> Option<FieldError> {
    let why = || format!("can have at most {limit} characters");
    (text.len() > limit).then(|| FieldError::invalid(field, "", why()))
}

/// The checks of an event that is created through `events.k8s.io`: fields of the other group are not set.
pub(in crate::registry) fn new_event_v1(object: &Object) -> FieldErrors {
    let mut errors = series(object);
    if !is_set(object, "eventTime") {
        errors.push(FieldError::required("eventTime", ""));
    }
    let kind = text(object, "type");
    if !["Normal", "Warning"].contains(&kind) {
        errors.push(FieldError::invalid("type", "", format!("has invalid value: {kind}")));
    }
    for (field, name) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ] {
        let zero = |value: &Value| {
            value.is_null() || *value == 0 || value.as_object().is_some_and(serde_json::Map::is_empty)
        };
        if object.root().get(field).is_some_and(|value| !zero(value)) {
            errors.push(FieldError::invalid(name, "", "needs to be unset"));
        }
    }
    errors
}

/// Only the series and metadata of an event change through `events.k8s.io`.
pub(in crate::registry) fn event_v1_update(new: &Object, old: &Object) -> FieldErrors {
    let mut errors = if new.at("/series") == old.at("/series") { FieldErrors::new() } else { series(new) };
    for (field, name) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        if new.root().get(field) != old.root().get(field) {
            errors.push(FieldError::invalid(name, new.root().get(field), "field is immutable"));
        }
    }
    errors
}

fn series(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let Some(series) = object.at("/series").filter(|series| series.is_object()) else { return errors };
    if series["count"].as_i64().unwrap_or_default() < 2 {
        errors.push(FieldError::invalid("series.count", "", "should be at least 2"));
    }
    if series["lastObservedTime"].as_str().unwrap_or_default().is_empty() {
        errors.push(FieldError::required("series.lastObservedTime", ""));
    }
    errors
}
