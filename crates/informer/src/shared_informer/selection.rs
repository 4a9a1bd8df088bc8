//! The selectors of an informer's source, as far as the informer has to know them.

use kube::core::ObjectMeta;
use kube_informer_wire::{FieldSelector, LabelSelector};
use std::collections::BTreeMap;

/// The selectors that the source of an informer uses.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
}

impl Selection {
    /// The selector that excludes an object; `None` if none does, as far as its metadata says. Of the fields, only
    /// `metadata.name` and `metadata.namespace` are known.
    pub(crate) fn excludes(&self, meta: &ObjectMeta) -> Option<&str> {
        self.excluded_by_labels(meta).or_else(|| self.excluded_by_fields(meta))
    }

    fn excluded_by_labels(&self, meta: &ObjectMeta) -> Option<&str> {
        let text = self.labels.as_deref()?;
        // One that cannot be parsed is reported by the server.
        let selector: LabelSelector = text.parse().ok()?;
        let none = BTreeMap::new();
        (!selector.matches(meta.labels.as_ref().unwrap_or(&none))).then_some(text)
    }

    fn excluded_by_fields(&self, meta: &ObjectMeta) -> Option<&str> {
        let text = self.fields.as_deref()?;
        let selector: FieldSelector = text.parse().ok()?;
        let known = |field: &str| match field {
            "metadata.name" => Some(meta.name.as_deref().unwrap_or_default()),
            "metadata.namespace" => Some(meta.namespace.as_deref().unwrap_or_default()),
            _ => None,
        };
        let excludes = selector
            .terms()
            .iter()
            .any(|term| known(&term.field).is_some_and(|value| (*value == *term.value) != term.equal));
        excludes.then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(labels: Option<&str>, fields: Option<&str>) -> Selection {
        Selection { labels: labels.map(Into::into), fields: fields.map(Into::into) }
    }

    #[test]
    fn only_what_is_known_to_be_excluded_is_excluded() {
        let meta = ObjectMeta {
            name: Some("a".into()),
            namespace: Some("ns".into()),
            labels: Some([("app".to_owned(), "cart".to_owned())].into()),
            ..ObjectMeta::default()
        };
        let labels = |text| selection(Some(text), None).excludes(&meta).map(str::to_owned);
        let fields = |text| selection(None, Some(text)).excludes(&meta).map(str::to_owned);
        assert_eq!(labels("app=cart"), None);
        assert_eq!(labels("app=till").as_deref(), Some("app=till"));
        assert_eq!(labels("app in ("), None, "for the server to reject");
        assert_eq!(fields("metadata.name=a,status.phase=Running"), None, "the phase is unknown");
        assert_eq!(fields("metadata.name=b").as_deref(), Some("metadata.name=b"));
        assert_eq!(fields("metadata.namespace!=ns").as_deref(), Some("metadata.namespace!=ns"));
        assert_eq!(selection(Some("app"), None).excludes(&ObjectMeta::default()), Some("app"));
    }
}
