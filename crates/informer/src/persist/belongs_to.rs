//! The pairs that the saved state of a partition belongs to.

use super::{directory::LogSpec, options::Persistence};
use crate::{scope::Scope, shared_informer::Selection, source::may_be_built_in, transform::Transform};
use kube_informer_persist::BelongsTo;
use kube_informer_types::protobuf::tables_fingerprint;
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
            .with("encoding of records", RECORDS)
            .with("table of types", self.table_of_types());
        let name = persistence.names.reserve(name, belongs_to.clone());
        Ok(LogSpec { name, belongs_to, key: persistence.key.clone() })
    }

    /// The table with which content in protobuf was checked for unknown fields: a program with an older table, after a
    /// rollback, could not read all of them.
    fn table_of_types(&self) -> String {
        match may_be_built_in(&self.kind.group) {
            true => format!("{:016x}", tables_fingerprint()),
            false => "none".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PersistOptions;
    use kube_informer_persist::MemoryDisk;
    use kube_informer_wire::{ShardRange, ShardSelector};

    fn log(persistence: &Persistence, kind: &Kind, shards: ShardSelector) -> LogSpec {
        let selection = Selection { shards, ..Selection::default() };
        let (scope, transform) = (Scope::all(), Transform::new());
        let subject = Subject {
            kind,
            scope: &scope,
            selection: &selection,
            transform: &transform,
            metadata_only: false,
        };
        subject.log(persistence, None).unwrap()
    }

    fn persistence() -> Persistence {
        PersistOptions::on(MemoryDisk::default()).cluster_id("test").open(None).unwrap()
    }

    #[test]
    fn content_of_built_in_kinds_belongs_to_the_table_it_was_checked_with() {
        let persistence = persistence();
        let table = |kind: Kind| {
            let log = log(&persistence, &kind, ShardSelector::everything());
            log.belongs_to.get("table of types").map(str::to_owned)
        };
        let current = format!("{:016x}", tables_fingerprint());
        assert_eq!(table(Kind::namespaced("", "v1", "Pod", "pods")), Some(current));
        let custom = table(Kind::namespaced("example.com", "v1", "Widget", "widgets"));
        assert_eq!(custom.as_deref(), Some("none"), "always JSON");
    }

    #[test]
    fn each_set_of_shards_has_a_log_of_its_own() {
        let persistence = persistence();
        let log = |shards| log(&persistence, &Kind::namespaced("", "v1", "Pod", "pods"), shards);
        let [first, second] = [0, 1].map(|nth| log(ShardRange::nth(nth, 2).unwrap().into()));
        let all = log(ShardSelector::everything());
        let name = |log: &LogSpec| log.name.resolve(|_| None);
        assert!(name(&first) != name(&second) && name(&first) != name(&all));
        assert!(first.belongs_to != second.belongs_to && first.belongs_to != all.belongs_to);
    }
}
