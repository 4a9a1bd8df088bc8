//! Checks indexes against a recomputation.

use super::transform::TransformKind;
use crate::history::{History, View, Write, color_name};
use kube_informer::{CacheSnapshot, Index, SharedInformer};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The function of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexKind {
    Label,
    /// Several values for each object, read from its content.
    View,
    Field,
    Namespace,
    /// A field that is malformed in some objects.
    Tag,
}

/// An index of an informer.
pub(crate) struct Indexed {
    kind: IndexKind,
    index: Index<String>,
}

/// The fields that the view reads. Invalid objects cannot be decoded into it.
#[derive(Deserialize)]
struct Content {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    n: String,
    color: String,
}

/// One of three values.
fn third(stamp: u64) -> String {
    format!("n{}", stamp % 3)
}

impl Indexed {
    pub(super) fn add(kind: IndexKind, informer: &SharedInformer<Value>) -> Self {
        let index = match kind {
            IndexKind::Label => informer.index_label("color"),
            IndexKind::Field => informer.index_field("data.color"),
            IndexKind::Tag => informer.index_field("tag"),
            IndexKind::Namespace => informer.index(|object| object.namespace().map(str::to_owned)),
            IndexKind::View => informer.index_view(|content: &Content| {
                let Data { n, color } = &content.data;
                [color.clone(), third(n.parse().unwrap_or(0))]
            }),
        };
        Self { kind, index: index.expect("the informer runs and its transform keeps these fields") }
    }

    /// The values of an object in this index; `None` if the content cannot be decoded.
    fn values(&self, write: &Write, transform: TransformKind) -> Option<Vec<String>> {
        let removed = transform.removes_content(write);
        match self.kind {
            IndexKind::Label if write.invalid => Some(Vec::new()),
            IndexKind::Label => Some(vec![color_name(write.color)]),
            IndexKind::Namespace => Some(write.key.namespace().map(str::to_owned).into_iter().collect()),
            IndexKind::Field | IndexKind::Tag if removed => None,
            IndexKind::Tag => write.tag.values(),
            IndexKind::Field if write.invalid => Some(vec![write.color.to_string()]),
            IndexKind::Field => Some(vec![color_name(write.color)]),
            IndexKind::View if removed || write.invalid => None,
            IndexKind::View => Some(vec![color_name(write.color), third(write.stamp)]),
        }
    }

    pub(super) fn check(
        &self,
        informer: &SharedInformer<Value>,
        snapshot: &CacheSnapshot<Value>,
        view: View,
        history: &History,
    ) -> Result<(), String> {
        let mut expected: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        let mut undecodable = 0;
        // What content was when the index read it is unknown if it is lost.
        let lost: BTreeSet<u64> = snapshot
            .iter()
            .filter(|object| object.is_content_lost())
            .filter_map(|object| Some(history.find(object, view)?.n))
            .collect();
        for object in snapshot.iter().filter(|object| !object.is_content_lost()) {
            let write = history.find(object, view).ok_or("a state that was never written")?;
            match self.values(write, view.transform) {
                Some(values) => {
                    values.into_iter().for_each(|value| expected.entry(value).or_default().push(write.n))
                }
                None => undecodable += 1,
            }
        }
        let numbers = |value: &String| -> Vec<u64> {
            let found = snapshot.by(&self.index, value).unwrap_or_default();
            let found = found.iter().filter_map(|object| Some(history.find(object, view)?.n));
            found.filter(|n| !lost.contains(n)).collect()
        };
        let values = snapshot.values(&self.index).map_err(|missing| missing.to_string())?;
        let actual: BTreeMap<String, Vec<u64>> =
            values.iter().map(|value| (value.clone(), numbers(value))).collect();
        let actual: BTreeMap<_, _> =
            actual.into_iter().filter(|(_, found)| lost.is_empty() || !found.is_empty()).collect();
        if actual != expected {
            return Err(format!("index {:?} is {actual:?}, not {expected:?}", self.kind));
        }
        let counted = informer.omitted_by(&self.index).map_err(|missing| missing.to_string())?;
        if !(undecodable..=undecodable + lost.len()).contains(&counted) {
            return Err(format!("index {:?} omits {counted} objects, not {undecodable}", self.kind));
        }
        Ok(())
    }
}
