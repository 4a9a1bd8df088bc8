//! The objects of the scripted server and their history.

use std::collections::BTreeMap;

/// The objects of one kind and their history.
#[derive(Debug, Default)]
pub(crate) struct Store {
    version: u64,
    /// Changes up to this version are compacted.
    compacted: u64,
    objects: BTreeMap<String, Pod>,
    /// Ordered by version.
    history: Vec<Change>,
    last_uid: u64,
}

/// One state of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) key: String,
    pub(crate) uid: u64,
    pub(crate) version: u64,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) node: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Change {
    version: u64,
    before: Option<Pod>,
    after: Option<Pod>,
}

/// The objects that a request selects.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub(crate) namespace: Option<String>,
    /// One label, `key=value`.
    pub(crate) label: Option<(String, String)>,
}

impl Selection {
    fn selects(&self, pod: &Pod) -> bool {
        let namespace = self.namespace.as_deref();
        namespace.is_none_or(|namespace| pod.namespace() == namespace)
            && self.label.as_ref().is_none_or(|(key, value)| pod.labels.get(key) == Some(value))
    }
}

impl Pod {
    pub(crate) fn namespace(&self) -> &str {
        self.key.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    pub(crate) fn name(&self) -> &str {
        self.key.split_once('/').map_or(&self.key, |(_, name)| name)
    }
}

impl Change {
    /// The event of this change in a watch of a selection.
    pub(crate) fn event(&self, selection: &Selection) -> Option<(&'static str, Pod)> {
        let selected = |pod: &Option<Pod>| pod.clone().filter(|pod| selection.selects(pod));
        match (selected(&self.before), selected(&self.after)) {
            (None, Some(after)) => Some(("ADDED", after)),
            (Some(_), Some(after)) => Some(("MODIFIED", after)),
            // Deleted, or no longer selected: the last selected state, with the version of the change.
            (Some(before), None) => Some(("DELETED", Pod { version: self.version, ..before })),
            (None, None) => None,
        }
    }
}

impl Store {
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn put(
        &mut self,
        key: &str,
        at: Option<u64>,
        labels: BTreeMap<String, String>,
        node: Option<String>,
    ) -> Change {
        let before = self.objects.get(key).cloned();
        self.advance(at);
        let uid = before.as_ref().map_or_else(
            || {
                self.last_uid += 1;
                self.last_uid
            },
            |pod| pod.uid,
        );
        let after = Pod { key: key.to_owned(), uid, version: self.version, labels, node };
        self.objects.insert(key.to_owned(), after.clone());
        self.record(before, Some(after))
    }

    /// Deletes an object. Returns `None` if it does not exist.
    pub(crate) fn delete(&mut self, key: &str, at: Option<u64>) -> Option<Change> {
        let before = self.objects.remove(key)?;
        self.advance(at);
        Some(self.record(Some(before), None))
    }

    /// Advances the version, to the next one by default.
    pub(crate) fn advance(&mut self, to: Option<u64>) {
        self.version = to.unwrap_or(self.version + 1);
    }

    pub(crate) fn compact(&mut self) {
        self.history.clear();
        self.compacted = self.version;
    }

    /// Replaces all objects and the version, and clears the history.
    pub(crate) fn restore(&mut self, version: u64, pods: impl IntoIterator<Item = Pod>) {
        self.version = version;
        self.objects = pods.into_iter().map(|pod| (pod.key.clone(), pod)).collect();
        self.compact();
    }

    /// The selected objects, ordered by key.
    pub(crate) fn list(&self, selection: &Selection) -> Vec<Pod> {
        self.objects.values().filter(|pod| selection.selects(pod)).cloned().collect()
    }

    /// The changes after a version; `None` if they are compacted.
    pub(crate) fn since(&self, version: u64) -> Option<impl Iterator<Item = &Change>> {
        let available = version >= self.compacted;
        available.then(|| self.history.iter().filter(move |change| change.version > version))
    }

    fn record(&mut self, before: Option<Pod>, after: Option<Pod>) -> Change {
        let change = Change { version: self.version, before, after };
        self.history.push(change.clone());
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(app: &str) -> BTreeMap<String, String> {
        [("app".to_owned(), app.to_owned())].into()
    }

    fn web() -> Selection {
        Selection { namespace: None, label: Some(("app".into(), "web".into())) }
    }

    #[test]
    fn leaving_a_selection_is_a_delete_of_the_selected_state() {
        let mut store = Store::default();
        assert_eq!(store.put("shop/a", Some(5), labels("web"), None).event(&web()).unwrap().0, "ADDED");
        let (kind, pod) = store.put("shop/a", None, labels("db"), None).event(&web()).unwrap();
        assert_eq!((kind, pod.version, pod.labels), ("DELETED", 6, labels("web")));
        assert!(store.put("shop/a", None, labels("db"), None).event(&web()).is_none());
    }

    #[test]
    fn a_recreated_object_has_a_new_uid() {
        let mut store = Store::default();
        store.put("shop/a", None, labels("web"), None);
        assert!(store.delete("shop/b", None).is_none());
        store.delete("shop/a", None).unwrap();
        store.put("shop/a", None, labels("web"), None);
        assert_eq!(store.list(&web())[0].uid, 2);
    }

    #[test]
    fn compacted_changes_cannot_be_replayed() {
        let mut store = Store::default();
        store.put("shop/a", Some(5), labels("web"), None);
        store.put("shop/b", Some(6), labels("web"), None);
        assert_eq!(store.since(5).unwrap().count(), 1);
        store.compact();
        assert!(store.since(5).is_none());
        assert_eq!(store.since(6).unwrap().count(), 0);
    }
}
