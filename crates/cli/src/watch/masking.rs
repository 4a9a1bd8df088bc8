//! Values that are not for every screen: the data of Secrets, and the copy that `kubectl apply` keeps in an annotation.

use kube_informer::Kind;
use serde_json::Value;

/// What is shown instead.
const MASK: &str = "***";

const LAST_APPLIED: &[&str] =
    &["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"];
const SECRET: [&[&str]; 2] = [&["data"], &["stringData"]];

/// Hides what must be hidden of objects of one kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Masking {
    show_all: bool,
}

impl Masking {
    pub(crate) fn new(show_all: bool) -> Self {
        Self { show_all }
    }

    /// The value of a field, as it may be shown. `path` is where the value is in its object.
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

/// Hides a region of an object in a value that is found at `path` of that object.
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

/// Names stay, values go.
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
    fn a_secret_keeps_its_names_and_loses_its_values() {
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
    fn parts_are_masked_wherever_they_are_cut_out() {
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
