//! Registrations of other API servers.

use serde_json::json;

use super::read::text;
use crate::registry::Object;
use crate::registry::names::{label_1035, subdomain};
use crate::status::{FieldError, FieldErrors};

pub(in crate::registry) fn api_service(object: &Object) -> FieldErrors {
    let none = json!({});
    let spec = object.at("/spec").unwrap_or(&none);
    let (group, version) = (text(spec, "group"), text(spec, "version"));
    let mut errors = FieldErrors::new();
    let (name, expected) = (object.name().unwrap_or_default(), format!("{version}.{group}"));
    if !name.is_empty() && name != expected {
        let why = format!("must be `spec.version+\".\"+spec.group`: {expected:?}");
        errors.push(FieldError::invalid("metadata.name", name, why));
    }
    if group.is_empty() && version != "v1" {
        let why = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required("spec.group", why));
    }
    if !group.is_empty() {
        let faults = subdomain(group).into_iter();
        errors.extend(faults.map(|why| FieldError::invalid("spec.group", group, why)));
    }
    let faults = label_1035(version).into_iter();
    errors.extend(faults.map(|why| FieldError::invalid("spec.version", version, why)));
    for (field, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let priority = spec[field].as_i64().unwrap_or_default();
        if !(1..=most).contains(&priority) {
            let why = format!("must be positive and less than {most}");
            errors.push(FieldError::invalid(format!("spec.{field}"), priority, why));
        }
    }
    errors.extend(credentials(object));
    errors
}

/// The errors of the service and of how its certificate is verified.
fn credentials(object: &Object) -> FieldErrors {
    let none = json!({});
    let spec = object.at("/spec").unwrap_or(&none);
    let service = &spec["service"];
    let insecure = spec["insecureSkipTLSVerify"].as_bool().unwrap_or_default();
    let bundle = text(spec, "caBundle");
    let mut errors = FieldErrors::new();
    let skip = |why: &str| FieldError::invalid("spec.insecureSkipTLSVerify", insecure, why);
    if service.is_null() {
        if !bundle.is_empty() {
            let size = format!("{} bytes", bundle.trim_end_matches('=').len() * 3 / 4);
            errors.push(FieldError::invalid(
                "spec.caBundle",
                size,
                "local APIServices may not have a caBundle",
            ));
        }
        if insecure {
            errors.push(skip("local APIServices may not have insecureSkipTLSVerify"));
        }
        return errors;
    }
    for field in ["namespace", "name"] {
        if text(service, field).is_empty() {
            errors.push(FieldError::required(format!("spec.service.{field}"), ""));
        }
    }
    let port = service["port"].as_i64().unwrap_or_default();
    if !(1..=65535).contains(&port) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid("spec.service.port", port, why));
    }
    if insecure && !bundle.is_empty() {
        errors.push(skip("may not be true if caBundle is present"));
    }
    errors
}
