//! Config maps and secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::registry::Object;
use crate::registry::names::data_key;
use crate::status::{FieldError, FieldErrors};

/// All keys and values of a config map or secret together.
const MAX_DATA: usize = 1024 * 1024;

pub(in crate::registry) fn config_map(object: &Object) -> FieldErrors {
    let mut errors = data_keys(object, "data");
    let binary = object.at("/binaryData").and_then(Value::as_object);
    let text = object.at("/data").and_then(Value::as_object);
    let both = text.into_iter().flatten().map(|(key, _)| key);
    for key in both.filter(|key| binary.is_some_and(|binary| binary.contains_key(*key))) {
        let why = "duplicate of key present in binaryData";
        errors.push(FieldError::invalid(format!("data[{key}]"), key, why));
    }
    errors.extend(data_keys(object, "binaryData"));
    errors.extend(data_size(object, &["data", "binaryData"], "[]"));
    errors
}

pub(in crate::registry) fn config_map_update(new: &Object, old: &Object) -> FieldErrors {
    immutable_data(new, old, &["data", "binaryData"])
}

pub(in crate::registry) fn secret(object: &Object) -> FieldErrors {
    let mut errors = data_keys(object, "data");
    errors.extend(data_size(object, &["data"], "data"));
    errors.extend(typed_secret(object));
    errors
}

/// The required keys of the built-in types of secrets.
fn typed_secret(object: &Object) -> FieldErrors {
    let data = object.at("/data").and_then(Value::as_object);
    let entry = |key: &str| data.and_then(|data| data.get(key)).and_then(Value::as_str);
    let required = |key: &str| FieldError::required(format!("data[{key}]"), "");
    let missing = |keys: &[&str]| -> FieldErrors {
        keys.iter().filter(|key| entry(key).is_none()).map(|key| required(key)).collect()
    };
    match object.str_at("/type") {
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            let named =
                object.at("/metadata/annotations").and_then(|annotations| annotations.get(key)?.as_str());
            let field = format!("metadata.annotations[{key}]");
            named.is_none_or(str::is_empty).then(|| FieldError::required(field, "")).into_iter().collect()
        }
        "kubernetes.io/dockercfg" => docker_config(entry(".dockercfg"), ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => docker_config(entry(".dockerconfigjson"), ".dockerconfigjson"),
        "kubernetes.io/basic-auth" => {
            let missing = missing(&["username", "password"]);
            if missing.len() == 2 { missing } else { FieldErrors::new() }
        }
        "kubernetes.io/ssh-auth" => {
            let key = entry("ssh-privatekey").unwrap_or_default();
            key.is_empty().then(|| required("ssh-privatekey")).into_iter().collect()
        }
        "kubernetes.io/tls" => missing(&["tls.crt", "tls.key"]),
        _ => FieldErrors::new(),
    }
}

fn docker_config(content: Option<&str>, key: &str) -> FieldErrors {
    let field = format!("data[{key}]");
    let Some(content) = content else { return [FieldError::required(field, "")].into() };
    let decoded = STANDARD.decode(content).unwrap_or_default();
    match serde_json::from_slice::<Map<String, Value>>(&decoded) {
        Ok(_) => FieldErrors::new(),
        Err(error) => [FieldError::invalid(field, "<secret contents redacted>", error.to_string())].into(),
    }
}

pub(in crate::registry) fn secret_update(new: &Object, old: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if new.str_at("/type") != old.str_at("/type") {
        errors.push(FieldError::invalid("type", new.str_at("/type"), "field is immutable"));
    }
    errors.extend(immutable_data(new, old, &["data"]));
    errors
}

fn data_keys(object: &Object, field: &str) -> FieldErrors {
    let keys = object.root().get(field).and_then(Value::as_object).into_iter().flatten().map(|(key, _)| key);
    keys.flat_map(|key| {
        data_key(key).into_iter().map(move |e| FieldError::invalid(format!("{field}[{key}]"), key, e))
    })
    .collect()
}

fn data_size(object: &Object, fields: &[&str], at: &str) -> Option<FieldError> {
    let values = fields.iter().filter_map(|f| object.root().get(*f)?.as_object()).flatten();
    let total: usize = values.map(|(_, v)| v.as_str().map_or(0, str::len)).sum();
    (total > MAX_DATA).then(|| FieldError::too_long(at, MAX_DATA))
}

fn immutable_data(new: &Object, old: &Object, fields: &[&str]) -> FieldErrors {
    if old.at("/immutable") != Some(&Value::Bool(true)) {
        return FieldErrors::new();
    }
    let why = "field is immutable when `immutable` is set";
    let mut errors = FieldErrors::new();
    if new.at("/immutable") != Some(&Value::Bool(true)) {
        errors.push(FieldError::forbidden("immutable", why));
    }
    for field in fields {
        if new.root().get(*field) != old.root().get(*field) {
            errors.push(FieldError::forbidden(*field, why));
        }
    }
    errors
}
