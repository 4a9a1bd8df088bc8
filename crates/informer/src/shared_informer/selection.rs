//! The selectors of an informer's source, as far as the informer has to know them.

use kube::core::ObjectMeta;
use kube_informer_wire::{FieldSelector, LabelSelector};
use std::{collections::BTreeMap, fmt};

/// The selectors that the source of an informer uses.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl Selection {
    /// The selector that excludes an object; `None` if none does, as far as its metadata says. Of the fields, only
    /// `metadata.name` and `metadata.namespace` are known.
    pub(crate) fn excludes(&self, meta: &ObjectMeta) -> Option<String> {
        if self.is_excluded_by_labels(meta) {
            return Some(self.labels.to_string());
        }
        self.is_excluded_by_fields(meta).then(|| self.fields.to_string())
    }

    fn is_excluded_by_labels(&self, meta: &ObjectMeta) -> bool {
        let none = BTreeMap::new();
        !self.labels.matches(meta.labels.as_ref().unwrap_or(&none))
    }

    fn is_excluded_by_fields(&self, meta: &ObjectMeta) -> bool {
        let known = |field: &str| match field {
            "metadata.name" => Some(meta.name.as_deref().unwrap_or_default()),
            "metadata.namespace" => Some(meta.namespace.as_deref().unwrap_or_default()),
            _ => None,
        };
        let mut terms = self.fields.terms().iter();
        terms.any(|term| known(&term.field).is_some_and(|value| (*value == *term.value) != term.equal))
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.labels)?;
        if self.fields.is_everything() {
            return Ok(());
        }
        write!(f, ";{}", self.fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(labels: &str, fields: &str) -> Selection {
        Selection { labels: labels.parse().unwrap(), fields: fields.parse().unwrap() }
    }

    #[test]
    fn only_what_is_known_to_be_excluded_is_excluded() {
        let meta = ObjectMeta {
            name: Some("a".into()),
            namespace: Some("ns".into()),
            labels: Some([("app".to_owned(), "cart".to_owned())].into()),
            ..ObjectMeta::default()
        };
        let labels = |text| selection(text, "").excludes(&meta);
        let fields = |text| selection("", text).excludes(&meta);
        assert_eq!(labels("app=cart"), None);
        assert_eq!(labels("app=till").as_deref(), Some("app=till"));
        assert_eq!(fields("metadata.name=a,status.phase=Running"), None, "the phase is unknown");
        assert_eq!(fields("metadata.name=b").as_deref(), Some("metadata.name=b"));
        assert_eq!(fields("metadata.namespace!=ns").as_deref(), Some("metadata.namespace!=ns"));
        assert_eq!(selection("app", "").excludes(&ObjectMeta::default()).as_deref(), Some("app"));
    }
}
