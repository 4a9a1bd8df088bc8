//! Kinds with few fields.

use std::collections::HashSet;

use serde_json::Value;

use super::container::{among, port_number};
use super::numbers::not_negative;
use super::pod::pod_spec;
use super::read::{each, endpoint_ip, ip, is_empty, named, required, text};
use crate::registry::Object;
use crate::registry::names::{label, qualified_name, subdomain};
use crate::schema::Quantity;
use crate::status::{FieldError, FieldErrors};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
/// The highest priority that is not reserved for the system.
const HIGHEST: i64 = 1_000_000_000;

pub(in crate::registry) fn lease(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let duration = object.at("/spec/leaseDurationSeconds").and_then(Value::as_i64);
    if let Some(seconds) = duration.filter(|seconds| *seconds < 1) {
        errors.push(FieldError::invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"));
    }
    errors.extend(not_negative(object, &["/spec/leaseTransitions"]));
    errors
}

pub(in crate::registry) fn priority_class(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let name = object.name().unwrap_or_default();
    if name.starts_with("system-") {
        let known = ["system-cluster-critical", "system-node-critical"].contains(&name);
        let why = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known system priority class"
        );
        errors.extend((!known).then(|| FieldError::forbidden("metadata.name", why)));
    } else if object.at("/value").and_then(Value::as_i64).is_some_and(|value| value > HIGHEST) {
        let why = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        errors.push(FieldError::forbidden("value", why));
    }
    let policies = ["PreemptLowerPriority", "Never"];
    errors.extend(among(object.str_at("/preemptionPolicy"), &policies, "preemptionPolicy".to_owned()));
    errors
}

pub(in crate::registry) fn priority_class_update(new: &Object, old: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if new.at("/value") != old.at("/value") {
        errors.push(FieldError::forbidden("value", "may not be changed in an update."));
    }
    let policy = new.at("/preemptionPolicy");
    if policy != old.at("/preemptionPolicy") {
        errors.push(FieldError::invalid("preemptionPolicy", policy, "field is immutable"));
    }
    errors
}

pub(in crate::registry) fn endpoints(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (i, subset) in each(object.value(), "subsets") {
        let at = format!("subsets[{i}]");
        if is_empty(&subset["addresses"]) && is_empty(&subset["notReadyAddresses"]) {
            errors.push(FieldError::required(&at, "must specify `addresses` or `notReadyAddresses`"));
        }
        for list in ["addresses", "notReadyAddresses"] {
            for (j, address) in each(subset, list) {
                let field = format!("{at}.{list}[{j}].ip");
                let wrong = named(ip, text(address, "ip"), &field);
                if !wrong.is_empty() {
                    errors.extend(wrong);
                    errors.push(FieldError::invalid(
                        &field,
                        text(address, "ip"),
                        "must be a valid IP address",
                    ));
                }
                errors.extend(named(endpoint_ip, text(address, "ip"), &field));
            }
        }
        let many = subset["ports"].as_array().is_some_and(|ports| ports.len() > 1);
        for (j, port) in each(subset, "ports") {
            let at = format!("{at}.ports[{j}]");
            if many || !text(port, "name").is_empty() {
                errors.extend(required(label, text(port, "name"), &format!("{at}.name")));
            }
            errors.extend(port_number(port["port"].as_i64().unwrap_or_default(), format!("{at}.port")));
            errors.extend(among(text(port, "protocol"), &PROTOCOLS, format!("{at}.protocol")));
        }
    }
    errors
}

pub(in crate::registry) fn endpoint_slice(object: &Object) -> FieldErrors {
    let kind = object.str_at("/addressType");
    let mut errors = FieldErrors::new();
    if kind.is_empty() {
        errors.push(FieldError::required("addressType", ""));
    }
    errors.extend(among(kind, &["FQDN", "IPv4", "IPv6"], "addressType".to_owned()));
    let mut names = HashSet::new();
    for (i, port) in each(object.value(), "ports") {
        let name = text(port, "name");
        if !name.is_empty() {
            errors.extend(named(label, name, &format!("ports[{i}].name")));
        }
        if !names.insert(name) {
            errors.push(FieldError::duplicate(format!("ports[{i}].name"), name));
        }
        errors.extend(among(text(port, "protocol"), &PROTOCOLS, format!("ports[{i}].protocol")));
    }
    for (i, endpoint) in each(object.value(), "endpoints") {
        let at = format!("endpoints[{i}].addresses");
        if is_empty(&endpoint["addresses"]) {
            errors.push(FieldError::required(&at, "must contain at least 1 address"));
        }
        for (j, address) in each(endpoint, "addresses") {
            errors.extend(slice_address(kind, address.as_str().unwrap_or_default(), &at, j));
        }
    }
    errors
}

fn slice_address(kind: &str, address: &str, at: &str, i: usize) -> FieldErrors {
    let field = format!("{at}[{i}]");
    if kind == "FQDN" {
        return named(subdomain, address, &field);
    }
    if !["IPv4", "IPv6"].contains(&kind) {
        return FieldErrors::new();
    }
    let mut errors = named(ip, address, &field);
    if errors.is_empty() && address.contains(':') != (kind == "IPv6") {
        let article = if kind == "IPv4" { "must be an IPv4 address" } else { "must be an IPv6 address" };
        errors.push(FieldError::invalid(at, address, article));
    }
    errors.extend(named(endpoint_ip, address, &field));
    errors
}

pub(in crate::registry) fn endpoint_slice_update(new: &Object, old: &Object) -> FieldErrors {
    let kind = new.at("/addressType");
    if kind == old.at("/addressType") {
        return FieldErrors::new();
    }
    [FieldError::invalid("addressType", kind, "field is immutable")].into()
}

pub(in crate::registry) fn limit_range(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut kinds = HashSet::new();
    for (i, item) in each(object.at("/spec").unwrap_or(&Value::Null), "limits") {
        let at = format!("spec.limits[{i}]");
        let kind = text(item, "type");
        if !kinds.insert(kind) {
            errors.push(FieldError::duplicate(format!("{at}.type"), kind));
        }
        if kind == "Pod" {
            for field in ["default", "defaultRequest"].iter().filter(|field| item[**field].is_object()) {
                let why = "may not be specified when `type` is 'Pod'";
                errors.push(FieldError::forbidden(format!("{at}.{field}"), why));
            }
        }
        errors.extend(bounds(item, &at));
    }
    errors
}

/// The minimum does not exceed any other amount.
fn bounds(item: &Value, at: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (name, least) in item["min"].as_object().into_iter().flatten() {
        let amount = |field: &str| item[field][name].as_str()?.parse::<Quantity>().ok();
        let Some(least) = least.as_str().and_then(|text| text.parse::<Quantity>().ok()) else { continue };
        for (field, shown, what) in [
            ("max", "min", "max value"),
            ("defaultRequest", "defaultRequest", "default request value"),
            ("default", "default", "default value"),
        ] {
            if let Some(other) = amount(field).filter(|other| least > *other) {
                let value = if field == "defaultRequest" { other.to_string() } else { least.to_string() };
                let why = format!("min value {least} is greater than {what} {other}");
                errors.push(FieldError::invalid(format!("{at}.{shown}[{name}]"), value, why));
            }
        }
    }
    errors
}

pub(in crate::registry) fn pod_template(object: &Object) -> FieldErrors {
    pod_spec(object.at("/template/spec"), "template.spec")
}

pub(in crate::registry) fn node(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (i, taint) in each(object.at("/spec").unwrap_or(&Value::Null), "taints") {
        let at = format!("metadata.taints[{i}]"); // the name in kube-apiserver
        errors.extend(named(qualified_name, text(taint, "key"), &format!("{at}.key")));
        match text(taint, "effect") {
            "" => errors.push(FieldError::required(format!("{at}.effect"), "")),
            effect => errors.extend(among(effect, &EFFECTS, format!("{at}.effect"))),
        }
    }
    errors
}

pub(in crate::registry) fn revision(object: &Object) -> FieldErrors {
    let mut errors = not_negative(object, &["/revision"]);
    if object.at("/data").is_none_or(Value::is_null) {
        errors.push(FieldError::required("data", "data is mandatory"));
    }
    errors
}

pub(in crate::registry) fn quota(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (name, amount) in object.at("/spec/hard").and_then(Value::as_object).into_iter().flatten() {
        let Some(amount) = amount.as_str().and_then(|text| text.parse::<Quantity>().ok()) else { continue };
        let field = format!("spec.hard[{name}]");
        if amount.is_negative() {
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(&field, amount.to_string(), why));
        }
        let counted =
            ["pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"];
        if (counted.contains(&name.as_str()) || name.starts_with("count/")) && !amount.is_whole() {
            errors.push(FieldError::invalid(&field, amount.to_string(), "must be an integer"));
        }
    }
    errors
}
