//! Masks sensitive values: the data of Secrets, and the copy of an object that `kubectl apply` stores in an annotation.

use kube_informer::{FieldPath, Kind};
use serde_json::Value;

/// Shown instead of a value.
const MASK: &str = "***";

const LAST_APPLIED: &[&str] =
    &["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"];
const SECRET: [&[&str]; 2] = [&["data"], &["stringData"]];

/// Masks sensitive values of objects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Masking {
    show_all: bool,
}

impl Masking {
    pub(crate) fn new(show_all: bool) -> Self {
        Self { show_all }
    }

    /// Whether a field, or a field above or below it, is masked.
    pub(crate) fn hides(self, kind: &Kind, field: &FieldPath) -> bool {
        !self.show_all && regions(kind).any(|region| FieldPath::of(region.iter().copied()).overlaps(field))
    }

    /// Returns a value with sensitive parts masked. `path` is the place of the value in its object.
    pub(crate) fn masked(self, kind: &Kind, path: &[&str], value: &Value) -> Value {
        let mut shown = value.clone();
        if !self.show_all {
            regions(kind).for_each(|region| hide(region, path, &mut shown));
        }
        shown
    }
}

fn regions(kind: &Kind) -> impl Iterator<Item = &'static [&'static str]> {
    let secret = if kind.is_secret() { &SECRET[..] } else { &[] };
    secret.iter().copied().chain([LAST_APPLIED])
}

/// Masks a region of an object in the value at `path` of that object.
fn hide(region: &[&str], path: &[&str], value: &mut Value) {
    match (region, path) {
        ([], _) => hide_all(value),
        ([first, region @ ..], [at, path @ ..]) if first == at => hide(region, path, value),
        ([first, region @ ..], []) => {
            if let Some(inner) = value.get_mut(*first) {
                hide(region, &[], inner);
            }
        }
        _ => {}
    }
}

/// Masks all values; field names stay.
fn hide_all(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(hide_all),
        Value::Null => {}
        other => *other = MASK.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secret() -> Value {
        json!({"metadata": {"name": "db", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"data\":{}}", "other": "x"}},
            "data": {"password": "aHVudGVyMg=="}, "stringData": {"token": "hunter2"}, "type": "Opaque"})
    }

    #[test]
    fn values_of_a_secret_are_masked_and_names_are_not() {
        let kind = Kind::namespaced("", "v1", "Secret", "secrets");
        let shown = Masking::new(false).masked(&kind, &[], &secret()).to_string();
        assert!(
            !shown.contains("aHVudGVyMg") && !shown.contains("hunter2") && !shown.contains("\\\"data"),
            "{shown}"
        );
        assert!(
            shown.contains("password") && shown.contains("Opaque") && shown.contains("\"other\":\"x\""),
            "{shown}"
        );
        assert_eq!(Masking::new(true).masked(&kind, &[], &secret()), secret());
    }

    #[test]
    fn parts_of_an_object_are_masked() {
        let kind = Kind::namespaced("", "v1", "Secret", "secrets");
        let object = secret();
        let masked = |path: &[&str], value: &Value| Masking::new(false).masked(&kind, path, value);
        assert_eq!(masked(&["data", "password"], &object["data"]["password"]), json!("***"));
        assert_eq!(masked(&["data"], &object["data"]), json!({"password": "***"}));
        assert_eq!(masked(&["type"], &object["type"]), json!("Opaque"));
        let annotations = masked(&["metadata", "annotations"], &object["metadata"]["annotations"]);
        assert_eq!(annotations["kubectl.kubernetes.io/last-applied-configuration"], "***");
    }

    #[test]
    fn hidden_fields_are_known_by_their_paths() {
        let (secret, map) = (
            Kind::namespaced("", "v1", "Secret", "secrets"),
            Kind::namespaced("", "v1", "ConfigMap", "configmaps"),
        );
        let hides = |kind: &Kind, path: &str| Masking::new(false).hides(kind, &path.parse().unwrap());
        assert!(
            hides(&secret, "data.password") && hides(&secret, "data") && hides(&map, "metadata.annotations")
        );
        assert!(!hides(&secret, "type") && !hides(&map, "data.password") && !hides(&map, "metadata.labels"));
        assert!(!Masking::new(true).hides(&secret, &"data".parse().unwrap()));
    }

    #[test]
    fn other_kinds_keep_their_data() {
        let kind = Kind::namespaced("", "v1", "ConfigMap", "configmaps");
        let shown = Masking::new(false).masked(&kind, &[], &secret());
        assert_eq!(shown["data"]["password"], "aHVudGVyMg==");
        assert_eq!(
            shown["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"],
            "***"
        );
    }
}
