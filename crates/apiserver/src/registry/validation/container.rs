//! One container of a pod.

use std::collections::HashSet;

use serde_json::Value;

use crate::registry::names::label;
use crate::schema::Quantity;
use crate::status::{FieldError, FieldErrors};

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const MESSAGE_POLICIES: [&str; 2] = ["File", "FallbackToLogsOnError"];
/// Resources whose requests may be less than their limits. Those of extended resources may not.
const NATIVE_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// The errors of a container of a list at `at`. `volumes` are those it may mount.
pub(super) fn container(container: &Value, at: &str, volumes: &HashSet<&str>) -> FieldErrors {
    let text = |field| container[field].as_str().unwrap_or_default();
    let mut errors = FieldErrors::new();
    if text("name").is_empty() {
        errors.push(FieldError::required(format!("{at}.name"), ""));
    } else {
        let name = text("name");
        errors
            .extend(label(name).into_iter().map(|why| FieldError::invalid(format!("{at}.name"), name, why)));
    }
    if text("image").is_empty() {
        errors.push(FieldError::required(format!("{at}.image"), ""));
    }
    errors.extend(among(
        text("terminationMessagePolicy"),
        &MESSAGE_POLICIES,
        format!("{at}.terminationMessagePolicy"),
    ));
    errors.extend(ports(&container["ports"], &format!("{at}.ports")));
    errors.extend(env(&container["env"], &format!("{at}.env")));
    errors.extend(mounts(&container["volumeMounts"], &format!("{at}.volumeMounts"), volumes));
    errors.extend(among(text("imagePullPolicy"), &PULL_POLICIES, format!("{at}.imagePullPolicy")));
    errors.extend(resources(&container["resources"], &format!("{at}.resources")));
    errors
}

/// One of a few values. An empty one is a default that is not set yet.
pub(super) fn among(value: &str, supported: &[&str], field: String) -> Option<FieldError> {
    (!value.is_empty() && !supported.contains(&value))
        .then(|| FieldError::not_supported(field, value, supported))
}

fn items(list: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list.as_array().into_iter().flatten().enumerate()
}

/// The errors of a port number.
pub(super) fn port_number(number: i64, field: String) -> Option<FieldError> {
    (!(1..=65535).contains(&number))
        .then(|| FieldError::invalid(field, number, "must be between 1 and 65535, inclusive"))
}

fn ports(list: &Value, at: &str) -> FieldErrors {
    let mut names = HashSet::new();
    let mut errors = FieldErrors::new();
    for (i, port) in items(list) {
        let name = port["name"].as_str().unwrap_or_default();
        if !name.is_empty() && !names.insert(name) {
            errors.push(FieldError::duplicate(format!("{at}[{i}].name"), name));
        }
        match port["containerPort"].as_i64().unwrap_or_default() {
            0 => errors.push(FieldError::required(format!("{at}[{i}].containerPort"), "")),
            number => errors.extend(port_number(number, format!("{at}[{i}].containerPort"))),
        }
        let host = port["hostPort"].as_i64().filter(|port| *port != 0);
        errors.extend(host.and_then(|number| port_number(number, format!("{at}[{i}].hostPort"))));
        let protocol = port["protocol"].as_str().unwrap_or_default();
        errors.extend(among(protocol, &PROTOCOLS, format!("{at}[{i}].protocol")));
    }
    errors
}

fn env(list: &Value, at: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (i, variable) in items(list) {
        if variable["name"].as_str().unwrap_or_default().is_empty() {
            errors.push(FieldError::required(format!("{at}[{i}].name"), ""));
        }
        let value = variable["value"].as_str().unwrap_or_default();
        if let Some(sources) = variable["valueFrom"].as_object() {
            let field = format!("{at}[{i}].valueFrom");
            match sources.len() {
                0 => errors.push(FieldError::invalid(
                    field,
                    "",
                    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
                )),
                _ if !value.is_empty() => {
                    errors.push(FieldError::invalid(field, "", "may not be specified when `value` is not empty"));
                }
                1 => {}
                _ => errors.push(FieldError::invalid(field, "", "may not have more than one field specified at a time")),
            }
        }
    }
    errors
}

fn mounts(list: &Value, at: &str, volumes: &HashSet<&str>) -> FieldErrors {
    let mut paths = HashSet::new();
    let mut errors = FieldErrors::new();
    for (i, mount) in items(list) {
        let text = |field| mount[field].as_str().unwrap_or_default();
        let (name, path) = (text("name"), text("mountPath"));
        if name.is_empty() {
            errors.push(FieldError::required(format!("{at}[{i}].name"), ""));
        }
        if !volumes.contains(name) {
            errors.push(FieldError::not_found(format!("{at}[{i}].name"), name));
        }
        if path.is_empty() {
            errors.push(FieldError::required(format!("{at}[{i}].mountPath"), ""));
        }
        if !paths.insert(path) {
            errors.push(FieldError::invalid(format!("{at}[{i}].mountPath"), path, "must be unique"));
        }
    }
    errors
}

/// Amounts are not negative, and requests do not exceed limits.
pub(super) fn resources(resources: &Value, at: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for family in ["limits", "requests"] {
        for (name, amount) in resources[family].as_object().into_iter().flatten() {
            let Some(amount) = quantity(amount) else { continue };
            let field = format!("{at}.{family}[{name}]");
            if amount.is_negative() {
                let why = "must be greater than or equal to 0";
                errors.push(FieldError::invalid(field, amount.to_string(), why));
            } else if name.contains('/') && !amount.is_whole() {
                errors.push(FieldError::invalid(field, amount.to_string(), "must be an integer"));
            }
            if family == "requests" {
                errors.extend(beyond_limit(name, amount, &resources["limits"], at));
            }
        }
    }
    errors
}

fn beyond_limit(name: &str, request: Quantity, limits: &Value, at: &str) -> Option<FieldError> {
    let shared = NATIVE_RESOURCES.contains(&name);
    let Some(limit) = quantity(&limits[name]) else {
        let why = "Limit must be set for non overcommitable resources";
        return (!shared).then(|| FieldError::required(format!("{at}.limits"), why));
    };
    let must = match request.cmp(&limit) {
        std::cmp::Ordering::Equal => return None,
        _ if !shared => "equal to",
        std::cmp::Ordering::Greater => "less than or equal to",
        std::cmp::Ordering::Less => return None,
    };
    let why = format!("must be {must} {name} limit of {limit}");
    Some(FieldError::invalid(format!("{at}.requests"), request.to_string(), why))
}

fn quantity(value: &Value) -> Option<Quantity> {
    value.as_str()?.parse().ok()
}
