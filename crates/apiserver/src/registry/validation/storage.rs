//! Storage classes, claims, volumes.

use serde_json::{Value, json};

use super::container::among;
use super::read::{each, is_empty, named, text};
use crate::registry::Object;
use crate::registry::names::{qualified_name, subdomain};
use crate::schema::Quantity;
use crate::status::{FieldError, FieldErrors};

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
/// The annotation that named a class before there was a field.
const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// Fields of the spec of a volume that are not its source.
const NO_SOURCES: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

pub(in crate::registry) fn storage_class(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    match object.str_at("/provisioner") {
        "" => errors.push(FieldError::required("provisioner", "")),
        name => errors.extend(named(qualified_name, &name.to_lowercase(), "provisioner")),
    }
    if object.at("/parameters").is_some_and(|all| all.get("").is_some()) {
        errors.push(FieldError::invalid("parameters", "", "field can not be empty."));
    }
    let policy = object.str_at("/reclaimPolicy");
    errors.extend(among(policy, &["Delete", "Retain"], "reclaimPolicy".to_owned()));
    let modes = ["Immediate", "WaitForFirstConsumer"];
    errors.extend(among(object.str_at("/volumeBindingMode"), &modes, "volumeBindingMode".to_owned()));
    errors
}

pub(in crate::registry) fn storage_class_update(new: &Object, old: &Object) -> FieldErrors {
    let forbidden = |field: &str, why: &str| {
        (new.root().get(field) != old.root().get(field)).then(|| FieldError::forbidden(field, why))
    };
    let mut errors: FieldErrors =
        forbidden("parameters", "updates to parameters are forbidden.").into_iter().collect();
    errors.extend(forbidden("provisioner", "updates to provisioner are forbidden."));
    errors.extend(forbidden("reclaimPolicy", "updates to reclaimPolicy are forbidden."));
    let mode = new.at("/volumeBindingMode");
    if mode != old.at("/volumeBindingMode") {
        errors.push(FieldError::invalid("volumeBindingMode", mode, "field is immutable"));
    }
    errors
}

fn access_modes(spec: &Value, field: &str) -> FieldErrors {
    let modes = each(spec, "accessModes").filter_map(|(_, mode)| mode.as_str());
    modes.filter_map(|mode| among(mode, &ACCESS_MODES, field.to_owned())).collect()
}

pub(in crate::registry) fn claim(object: &Object) -> FieldErrors {
    let none = json!({});
    let spec = object.at("/spec").unwrap_or(&none);
    let mut errors = access_modes(spec, "spec.accessModes");
    if is_empty(&spec["accessModes"]) {
        errors.push(FieldError::required("spec.accessModes", "at least 1 access mode is required"));
    }
    let modes: Vec<&str> = each(spec, "accessModes").filter_map(|(_, mode)| mode.as_str()).collect();
    if modes.contains(&"ReadWriteOncePod") && modes.len() > 1 {
        let why = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden("spec.accessModes", why));
    }
    match spec["resources"]["requests"]["storage"].as_str().map(str::parse::<Quantity>) {
        Some(Ok(amount)) if amount.is_negative() || amount.to_string() == "0" => {
            let why = "must be greater than zero";
            errors.push(FieldError::invalid("spec.resources[storage]", amount.to_string(), why));
        }
        Some(_) => {}
        None => errors.push(FieldError::required("spec.resources[storage]", "")),
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        errors.extend(named(subdomain, class, "spec.storageClassName"));
    }
    errors.extend(among(text(spec, "volumeMode"), &VOLUME_MODES, "spec.volumeMode".to_owned()));
    errors
}

/// The controller names the volume, once, and a claim without a class may get one. A bound claim may change its size and its attributes.
pub(in crate::registry) fn claim_update(new: &Object, old: &Object) -> FieldErrors {
    let none = json!({});
    let (spec, former) = (new.at("/spec").unwrap_or(&none), old.at("/spec").unwrap_or(&none));
    let is_bound = old.str_at("/status/phase") == "Bound";
    let mut errors = FieldErrors::new();
    let fields = |spec: &Value| -> Vec<String> {
        spec.as_object().into_iter().flatten().map(|(field, _)| field.clone()).collect()
    };
    let is_kept = |field: &str| match field {
        "volumeName" if text(former, field).is_empty() => true,
        "storageClassName" if former[field].is_null() => {
            let annotation = old.metadata().get("annotations").and_then(|all| all.get(STORAGE_CLASS));
            annotation.is_none_or(|class| *class == spec[field])
        }
        "volumeAttributesClassName" if is_bound => true,
        "resources" if is_bound => without_size(&spec[field]) == without_size(&former[field]),
        _ => spec[field] == former[field],
    };
    if !fields(spec).iter().chain(&fields(former)).all(|field| is_kept(field)) {
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.push(FieldError::forbidden("spec", why));
    }
    let size = |amount: &Value| amount.as_str().and_then(|text| text.parse::<Quantity>().ok());
    let of_spec = |spec: &Value| size(&spec["resources"]["requests"]["storage"]);
    let capacity = old.at("/status/capacity/storage").and_then(size);
    if let (Some(size), Some(before), Some(capacity)) = (of_spec(spec), of_spec(former), capacity)
        && size < before
        && size <= capacity
    {
        let why = "field can not be less than status.capacity";
        errors.push(FieldError::forbidden("spec.resources.requests.storage", why));
    }
    if spec["volumeMode"] != former["volumeMode"] {
        errors.push(FieldError::invalid("volumeMode", &spec["volumeMode"], "field is immutable"));
    }
    errors
}

fn without_size(resources: &Value) -> Value {
    let mut resources = resources.clone();
    if let Some(requests) = resources.get_mut("requests").and_then(Value::as_object_mut) {
        requests.remove("storage");
    }
    resources
}

pub(in crate::registry) fn volume(object: &Object) -> FieldErrors {
    let none = json!({});
    let spec = object.at("/spec").unwrap_or(&none);
    let mut errors = FieldErrors::new();
    if is_empty(&spec["accessModes"]) {
        errors.push(FieldError::required("spec.accessModes", ""));
    }
    errors.extend(access_modes(spec, "spec.accessModes"));
    let capacity = &spec["capacity"];
    if capacity.as_object().is_none_or(serde_json::Map::is_empty) {
        errors.push(FieldError::required("spec.capacity", ""));
    }
    if capacity.get("storage").is_none() || capacity.as_object().is_some_and(|all| all.len() > 1) {
        errors.push(FieldError::not_among("spec.capacity", capacity, &[json!("storage")]));
    }
    let policies = ["Delete", "Recycle", "Retain"];
    let field = "spec.persistentVolumeReclaimPolicy";
    errors.extend(among(text(spec, "persistentVolumeReclaimPolicy"), &policies, field.to_owned()));
    let sources = spec.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let sources: Vec<&str> = sources.filter(|name| !NO_SOURCES.contains(name)).collect();
    if spec["hostPath"].is_object() && text(&spec["hostPath"], "path").is_empty() {
        errors.push(FieldError::required("spec.hostPath.path", ""));
    }
    for other in sources.iter().skip(1) {
        let why = "may not specify more than 1 volume type";
        errors.push(FieldError::forbidden(format!("spec.{other}"), why));
    }
    if sources.is_empty() {
        errors.push(FieldError::required("spec", "must specify a volume type"));
    }
    errors.extend(among(text(spec, "volumeMode"), &VOLUME_MODES, "spec.volumeMode".to_owned()));
    errors
}

pub(in crate::registry) fn attachment(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if object.str_at("/spec/attacher").is_empty() {
        errors.push(FieldError::required("spec.attacher", ""));
    }
    let source = |field: &str| object.at(&format!("/spec/source/{field}")).is_some();
    if source("inlineVolumeSpec") == source("persistentVolumeName") {
        let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        errors.push(FieldError::required("spec.source", why));
    }
    errors.extend(named(subdomain, object.str_at("/spec/nodeName"), "spec.nodeName"));
    errors
}

pub(in crate::registry) fn csi_node(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (i, driver) in each(object.at("/spec").unwrap_or(&Value::Null), "drivers") {
        for field in ["name", "nodeID"].iter().filter(|field| text(driver, field).is_empty()) {
            errors.push(FieldError::required(format!("spec.drivers[{i}].{field}"), ""));
        }
    }
    errors
}

pub(in crate::registry) fn csi_driver(object: &Object) -> FieldErrors {
    let none = json!({});
    let spec = object.at("/spec").unwrap_or(&none);
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    let mut errors: FieldErrors =
        among(text(spec, "fsGroupPolicy"), &policies, "spec.fsGroupPolicy".to_owned()).into_iter().collect();
    for (_, mode) in each(spec, "volumeLifecycleModes") {
        let (mode, field) = (mode.as_str().unwrap_or_default(), "spec.volumeLifecycleModes".to_owned());
        errors.extend(among(mode, &["Persistent", "Ephemeral"], field));
    }
    errors
}
