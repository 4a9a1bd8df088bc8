//! Field labels: the fields that field selectors can use.

use serde_json::Value;
use thiserror::Error;

use super::Object;

/// The selectable fields of a kind besides `metadata.name` and `metadata.namespace`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldLabels {
    /// Label and JSON pointer, or several with `|` between them, of which the first that is not empty counts. Booleans and numbers are
    /// compared as text.
    pub(crate) fields: &'static [(&'static str, &'static str)],
    /// Aliases of labels.
    pub(crate) aliases: &'static [(&'static str, &'static str)],
    /// Whether kube-apiserver has a conversion function for the kind, which has another error message.
    pub(crate) own_table: bool,
}

/// A label that field selectors cannot use.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum UnknownLabel {
    #[error("field label not supported: {0}")]
    NotSupported(String),
    #[error("{0:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")]
    NotKnown(String),
}

impl FieldLabels {
    pub(crate) const NONE: Self = Self { fields: &[], aliases: &[], own_table: false };
    /// Custom resources declare theirs in their definition.
    pub(crate) const CUSTOM: Self = Self { own_table: true, ..Self::NONE };

    /// The label under which the value is stored.
    pub(crate) fn resolve<'l>(&self, label: &'l str, namespaced: bool) -> Result<&'l str, UnknownLabel> {
        if label == "metadata.name" || (label == "metadata.namespace" && (namespaced || !self.own_table)) {
            return Ok(label);
        }
        if let Some((_, target)) = self.aliases.iter().find(|(alias, _)| *alias == label) {
            return Ok(target);
        }
        if self.fields.iter().any(|(known, _)| *known == label) {
            return Ok(label);
        }
        Err(if self.own_table {
            UnknownLabel::NotSupported(label.to_owned())
        } else {
            UnknownLabel::NotKnown(label.to_owned())
        })
    }

    /// The values of an object.
    pub(crate) fn values(&self, object: &Object) -> Vec<(&'static str, String)> {
        let value = |label: &str, pointers: &str| {
            let values = pointers.split('|').map(|pointer| text(object.at(pointer), label));
            values.reduce(|first, next| if first.is_empty() { next } else { first }).unwrap_or_default()
        };
        self.fields.iter().map(|(label, pointers)| (*label, value(label, pointers))).collect()
    }
}

/// The values of a custom object.
pub(super) fn values<'l>(fields: &'l [(String, String)], object: &Object) -> Vec<(&'l str, String)> {
    fields.iter().map(|(label, pointer)| (label.as_str(), text(object.at(pointer), ""))).collect()
}

fn text(value: Option<&Value>, label: &str) -> String {
    match value {
        Some(Value::String(s)) => s.clone(),
        Some(Value::Bool(b)) => b.to_string(),
        Some(Value::Number(n)) => n.to_string(),
        Some(Value::Array(items)) => {
            // status.podIPs is the only list with a field label.
            let ips = items.iter().filter_map(|i| i.get("ip").and_then(Value::as_str));
            ips.collect::<Vec<_>>().join(",")
        }
        // Absent text is empty, an absent flag is false, and an absent count is zero.
        _ if matches!(label, "spec.unschedulable" | "spec.hostNetwork") => "false".to_owned(),
        _ if matches!(label, "status.replicas" | "status.successful") => "0".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::POD;
    use super::*;
    use serde_json::json;

    #[test]
    fn pods_by_node_with_the_old_alias() {
        let labels = &POD.fields;
        assert_eq!(labels.resolve("spec.host", true), Ok("spec.nodeName"));
        assert_eq!(labels.resolve("spec.x", true), Err(UnknownLabel::NotSupported("spec.x".into())));
        let pod = Object::new(json!({"spec": {"nodeName": "n"}, "status": {"phase": "Pending", "podIPs": [{"ip": "1"}, {"ip": "2"}]}})).unwrap();
        let values = labels.values(&pod);
        for pair in [
            ("spec.nodeName", "n"),
            ("status.phase", "Pending"),
            ("spec.hostNetwork", "false"),
            ("status.podIPs", "1,2"),
        ] {
            assert!(values.iter().any(|(l, v)| (*l, v.as_str()) == pair), "{pair:?} in {values:?}");
        }
    }

    #[test]
    fn kinds_without_a_table_know_name_and_namespace() {
        let e = FieldLabels::NONE.resolve("data.k", true).unwrap_err();
        assert_eq!(
            e.to_string(),
            "\"data.k\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        );
    }
}
