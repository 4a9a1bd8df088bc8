//! The selectors of an informer's source, as far as the informer has to know them.

use kube::core::ObjectMeta;
use kube_informer_wire::{FieldSelector, LabelSelector, ShardSelector, Uid};
use std::{collections::BTreeMap, fmt};

/// The selectors that the source of an informer uses.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    pub(crate) shards: ShardSelector,
}

impl Selection {
    /// The selector that excludes an object; `None` if none does, as far as its metadata says. Of the fields, only
    /// `metadata.name` and `metadata.namespace` are known.
    pub(crate) fn excludes(&self, meta: &ObjectMeta) -> Option<String> {
        if self.is_excluded_by_labels(meta) {
            return Some(self.labels.to_string());
        }
        let uid = meta.uid.as_deref().map(Uid::from);
        if uid.is_some_and(|uid| !self.shards.matches(uid)) {
            return Some(self.shards.to_string());
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
        if !self.fields.is_everything() {
            write!(f, ";{}", self.fields)?;
        }
        if !self.shards.is_everything() {
            write!(f, ";{}", self.shards)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_informer_wire::ShardRange;

    fn selection(labels: &str, fields: &str) -> Selection {
        let (labels, fields) = (labels.parse().unwrap(), fields.parse().unwrap());
        Selection { labels, fields, shards: ShardSelector::everything() }
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
        let uid = "0b5ce5e2-36ce-4a0a-bd2f-9be5cf7bd0a1";
        let shard = |index| ShardSelector::from(ShardRange::nth(index, 2).unwrap());
        let own = ShardRange::index_of(Uid::from(uid), 2.try_into().unwrap());
        let meta = ObjectMeta { uid: Some(uid.to_owned()), ..meta };
        let shards = |shards| Selection { shards, ..Selection::default() }.excludes(&meta);
        assert_eq!(shards(shard(own)), None);
        assert_eq!(shards(shard(1 - own)), Some(shard(1 - own).to_string()));
    }
}
