//! The parts of a pod that `/ephemeralcontainers` and `/resize` write, and the changes of them that are allowed.

use serde_json::Value;

use crate::registry::{Object, quality_of_service};
use crate::status::{FieldError, FieldErrors};

const LISTS: [&str; 2] = ["containers", "initContainers"];
/// Fields of a container that a resize may change.
const RESIZED: [&str; 2] = ["resources", "resizePolicy"];

fn list<'p>(pod: &'p Object, name: &str) -> &'p [Value] {
    pod.at("/spec").and_then(|spec| spec[name].as_array()).map_or(&[][..], Vec::as_slice)
}

fn name(container: &Value) -> &str {
    container["name"].as_str().unwrap_or_default()
}

/// The stored pod with the ephemeral containers that were sent.
pub(crate) fn with_ephemeral_containers(sent: &Object, old: &Object) -> Object {
    const FIELD: &str = "ephemeralContainers";
    let mut pod = old.clone();
    let spec = pod.section_mut("spec");
    match sent.at("/spec").and_then(|spec| spec.get(FIELD)).filter(|list| !list.is_null()) {
        Some(list) => spec.insert(FIELD.to_owned(), list.clone()),
        None => spec.remove(FIELD),
    };
    pod
}

/// Existing ephemeral containers can neither be changed nor removed.
pub(crate) fn ephemeral_container_errors(new: &Object, old: &Object) -> FieldErrors {
    const FIELD: &str = "spec.ephemeralContainers";
    let mut errors = FieldErrors::new();
    let all = list(new, "ephemeralContainers");
    for before in list(old, "ephemeralContainers") {
        match all.iter().find(|container| name(container) == name(before)) {
            None => {
                let why = format!("existing ephemeral containers {:?} may not be removed\n", name(before));
                errors.push(FieldError::forbidden(FIELD, why));
            }
            Some(after) if after != before => {
                let why = format!("existing ephemeral containers {:?} may not be changed\n", name(before));
                errors.push(FieldError::forbidden(FIELD, why));
            }
            Some(_) => {}
        }
    }
    let others: Vec<&str> = LISTS.iter().flat_map(|of| list(new, of)).map(name).collect();
    for (i, container) in all.iter().enumerate() {
        let at = format!("{FIELD}[{i}]");
        if name(container).is_empty() {
            errors.push(FieldError::required(format!("{at}.name"), ""));
        } else if others.contains(&name(container)) || all[..i].iter().any(|c| name(c) == name(container)) {
            errors.push(FieldError::duplicate(format!("{at}.name"), name(container)));
        }
        if container["image"].as_str().unwrap_or_default().is_empty() {
            errors.push(FieldError::required(format!("{at}.image"), ""));
        }
        let target = container["targetContainerName"].as_str().unwrap_or_default();
        if !target.is_empty() && !others.contains(&target) {
            errors.push(FieldError::not_found(format!("{at}.targetContainerName"), target));
        }
        for field in ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resources"] {
            let empty =
                |value: &Value| value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
            if !empty(&container[field]) {
                let why = "cannot be set for an Ephemeral Container";
                errors.push(FieldError::forbidden(format!("{at}.{field}"), why));
            }
        }
    }
    errors
}

/// The stored pod with the resources that were sent. With other containers, it is the pod that was sent, for validation to reject.
pub(crate) fn with_resources(sent: Object, old: &Object) -> Object {
    if LISTS.iter().any(|of| list(&sent, of).len() != list(old, of).len()) {
        return sent;
    }
    let mut pod = old.clone();
    for of in LISTS {
        let sent = list(&sent, of).to_vec();
        let containers = pod.section_mut("spec").get_mut(of).and_then(Value::as_array_mut);
        for (container, sent) in containers.into_iter().flatten().zip(sent) {
            let Some(fields) = container.as_object_mut() else { continue };
            fields.insert("name".to_owned(), sent["name"].clone());
            for field in RESIZED {
                match sent.get(field) {
                    Some(value) => fields.insert(field.to_owned(), value.clone()),
                    None => fields.remove(field),
                };
            }
        }
    }
    pod
}

/// A resize changes the amounts of CPU and memory, not which resources there are, and not the quality of service.
pub(crate) fn resize_errors(new: &Object, old: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let class = |pod: &Object| pod.at("/spec").and_then(Value::as_object).map(quality_of_service);
    if class(new) != class(old) {
        let why = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid("spec", class(new).unwrap_or_default(), why));
    }
    if !node_resizes(old) {
        errors.push(FieldError::forbidden("spec", "Pod running on node without support for resize"));
    }
    for of in LISTS {
        let (after, before) = (list(new, of), list(old, of));
        if after.len() != before.len() {
            let why = format!("{of} may not be added or removed on resize");
            errors.push(FieldError::forbidden(format!("spec.{of}"), why));
            continue;
        }
        for (i, (after, before)) in after.iter().zip(before).enumerate() {
            let at = format!("spec.{of}[{i}]");
            if name(after) != name(before) {
                let why = format!("{of} may not be renamed or reordered on resize");
                errors.push(FieldError::forbidden(format!("{at}.name"), why));
            }
            errors.extend(resource_errors(after, before, &at));
        }
    }
    errors
}

/// Whether the kubelet of a running pod reports the resources of its containers, as those that can resize them do.
fn node_resizes(pod: &Object) -> bool {
    let containers = pod.at("/status/containerStatuses").and_then(Value::as_array).into_iter().flatten();
    let mut running = containers.filter(|container| container["state"]["running"].is_object());
    running.next().is_none_or(|container| container["resources"].is_object())
}

fn resource_errors(after: &Value, before: &Value, at: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for kind in ["requests", "limits"] {
        let amounts =
            |container: &Value| container["resources"][kind].as_object().cloned().unwrap_or_default();
        let (after, before) = (amounts(after), amounts(before));
        if before.keys().any(|resource| !after.contains_key(resource)) {
            let why = format!("resource {kind} cannot be removed");
            errors.push(FieldError::forbidden(format!("{at}.resources.{kind}"), why));
        }
        let fixed = |resource: &String| !matches!(resource.as_str(), "cpu" | "memory");
        if after.iter().any(|(resource, amount)| fixed(resource) && before.get(resource) != Some(amount)) {
            errors.push(FieldError::forbidden("spec", "only cpu and memory resources are mutable"));
        }
    }
    errors
}
