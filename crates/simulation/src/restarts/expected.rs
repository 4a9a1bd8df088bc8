//! Which states the files of a directory have.

use super::persistence::{CLUSTER, Files, KEY, Persistence};
use crate::{history::EpochVersion, subject::Coverage};
use kube_informer_persist::{EncryptionKey, InspectedLog, MemoryDisk, inspect_on};
use std::time::SystemTime;

/// The state that a process may show of a partition before its first request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expected {
    /// The states that the saved one may be: several only if versions have repeated. None if nothing may be restored.
    pub(crate) states: Vec<EpochVersion>,
    pub(super) saved_at: Option<SystemTime>,
    /// The state must be restored: the files are not damaged.
    pub(crate) is_intact: bool,
    /// The informer must report why it does not use the files.
    pub(crate) must_report: bool,
    /// A content in the files is damaged: it may be lost, and is fetched again.
    pub(crate) may_lose_content: bool,
}

/// The log of one partition.
#[derive(Debug, Clone, Default)]
pub(super) struct SavedLog {
    /// The name of its file.
    file: String,
    /// The version of the state that would be restored, and when it was saved.
    pub(super) position: Option<(u64, SystemTime)>,
    /// Whether the log cannot be used.
    is_damaged: bool,
    /// Whether a content of it cannot be read. The rest is used.
    has_damaged_content: bool,
    /// Whether it belongs to this cluster and this transform, as far as its header can be read.
    is_own: bool,
}

type Inspected = InspectedLog<MemoryDisk>;

impl SavedLog {
    fn new(log: &Inspected, coverage: &Coverage) -> Self {
        let position = log.restored.as_ref().map(|restored| {
            let version = restored.position.version.parse().unwrap_or(0);
            (version, restored.position.saved_at)
        });
        let has_damaged_content = log.verify().is_ok_and(|damaged| !damaged.is_empty());
        let is_damaged = log.problem.is_some();
        let is = |name, is: &dyn Fn(&str) -> bool| log.belongs_to.get(name).is_none_or(is);
        let is_own = is("cluster", &|cluster| cluster == format!("id:{CLUSTER}"))
            && is("transform", &|transform| transform.contains(coverage.transform.described_by()));
        Self { file: log.file.clone(), position, is_damaged, has_damaged_content, is_own }
    }
}

/// All logs of a directory.
fn logs(files: &Files) -> Vec<Inspected> {
    let disk = MemoryDisk::with_files(files.clone());
    inspect_on(&disk, Some(&EncryptionKey::new(KEY))).unwrap_or_default()
}

fn log_of<'a>(logs: &'a [Inspected], coverage: &Coverage, partition: Option<&str>) -> Option<&'a Inspected> {
    let (labels, fields) = (coverage.selection.labels().to_string(), coverage.selection.fields().to_string());
    logs.iter().find(|log| {
        let pair = |name| log.belongs_to.get(name).unwrap_or_default();
        pair("namespace") == partition.unwrap_or("*")
            && pair("label selector") == labels
            && pair("field selector") == fields
    })
}

/// The logs of an informer, for each partition.
pub(super) fn logs_of(files: &Files, coverage: &Coverage) -> Vec<Option<SavedLog>> {
    let all = logs(files);
    let of_partition = |partition| log_of(&all, coverage, partition).map(|log| SavedLog::new(log, coverage));
    coverage.partitions().into_iter().map(of_partition).collect()
}

/// The state that the next process may restore from files, if the logs of its partitions were `before` any damage.
pub(super) fn expected(
    persistence: &Persistence,
    coverage: &Coverage,
    before: &[Option<SavedLog>],
    files: &Files,
) -> Vec<Expected> {
    let after = logs(files);
    let partitions = coverage.partitions().into_iter().zip(before);
    let expected = partitions.map(|(partition, before)| {
        // The header may be damaged, and its file is known from before.
        let by_file = before.as_ref().and_then(|before| after.iter().find(|log| log.file == before.file));
        let Some(log) = by_file.or_else(|| log_of(&after, coverage, partition)) else {
            return Expected::default();
        };
        let log = SavedLog::new(log, coverage);
        if !log.is_own {
            return Expected { must_report: true, ..Expected::default() };
        }
        let states = log.position.map(|(version, _)| persistence.states(partition, version));
        Expected {
            states: states.unwrap_or_default(),
            saved_at: log.position.map(|(_, saved_at)| saved_at),
            is_intact: !log.is_damaged
                && !log.has_damaged_content
                && before.as_ref().is_some_and(|before| before.position == log.position),
            must_report: log.is_damaged,
            may_lose_content: log.has_damaged_content,
        }
    });
    expected.collect()
}
