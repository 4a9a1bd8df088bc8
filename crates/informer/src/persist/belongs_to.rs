//! The pairs that the saved state of a partition belongs to.

use super::{directory::LogSpec, options::Persistence};
use crate::{scope::Scope, shared_informer::Selection, transform::Transform};
use kube_informer_persist::BelongsTo;
use kube_informer_wire::Kind;

/// The version of the encoding of records.
const RECORDS: &str = "1";

/// The objects that one informer caches.
pub(crate) struct Subject<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) scope: &'a Scope,
    pub(crate) selection: &'a Selection,
    pub(crate) transform: &'a Transform,
    pub(crate) metadata_only: bool,
}

/// Why an informer is not saved, and what to do.
pub(crate) type Refused = &'static str;

impl Subject<'_> {
    /// The log of a partition, by its namespace.
    pub(crate) fn log(&self, persistence: &Persistence, namespace: Option<&str>) -> Result<LogSpec, Refused> {
        if self.kind.is_secret() && persistence.key.is_none() {
            return Err("Secrets are saved only with a key; set PersistOptions::key");
        }
        let Some(transform) = self.transform.description() else {
            return Err(
                "the transform has a function, which may be another one in the next process; name its version with \
                        Transform::version, and change the name with the function",
            );
        };
        let Kind { group, version, plural, kind, .. } = self.kind;
        let content = if self.metadata_only { "metadata" } else { "objects" };
        let Selection { labels, fields, shards } = self.selection;
        let (labels, fields, shards) = (labels.to_string(), fields.to_string(), shards.to_string());
        let namespace = namespace.unwrap_or("*");
        // A transform that changes replaces the log: what it drops from now on must not stay on the disk.
        let name = format!("{plural}.{group}/{version}/{namespace}/{content}/{labels}/{fields}/{shards}");
        let belongs_to = BelongsTo::new()
            .with("cluster", persistence.cluster.identity())
            .with("resource", format!("{group}/{version}/{plural}"))
            .with("kind", kind.as_str())
            .with("scope", self.scope.to_string())
            .with("namespace", namespace)
            .with("label selector", labels)
            .with("field selector", fields)
            .with("shards", shards)
            .with("transform", transform)
            .with("content", content)
            .with("encoding of records", RECORDS);
        let name = persistence.names.reserve(name);
        Ok(LogSpec { name, belongs_to, key: persistence.key.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PersistOptions;
    use kube_informer_persist::MemoryDisk;
    use kube_informer_wire::{ShardRange, ShardSelector};

    #[test]
    fn each_set_of_shards_has_a_log_of_its_own() {
        let persistence = PersistOptions::on(MemoryDisk::default()).cluster_id("test").open(None).unwrap();
        let log = |shards| {
            let kind = Kind::namespaced("", "v1", "Pod", "pods");
            let selection = Selection { shards, ..Selection::default() };
            let (scope, transform) = (Scope::all(), Transform::new());
            let subject = Subject {
                kind: &kind,
                scope: &scope,
                selection: &selection,
                transform: &transform,
                metadata_only: false,
            };
            subject.log(&persistence, None).unwrap()
        };
        let [first, second] = [0, 1].map(|nth| log(ShardRange::nth(nth, 2).unwrap().into()));
        let all = log(ShardSelector::everything());
        assert!(first.name.text() != second.name.text() && first.name.text() != all.name.text());
        assert!(first.belongs_to != second.belongs_to && first.belongs_to != all.belongs_to);
    }
}
