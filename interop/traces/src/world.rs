//! What exists on the scripted server, and what happened to it.

use std::collections::BTreeMap;

/// The objects of one kind and their history.
#[derive(Debug, Default)]
pub(crate) struct World {
    version: u64,
    /// Changes up to this version are forgotten.
    forgotten: u64,
    objects: BTreeMap<String, Pod>,
    /// In order of versions.
    history: Vec<Change>,
    uids: u64,
}

/// One state of one object.
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

/// What a request is about.
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
    /// What a watch of a selection shows of this change.
    pub(crate) fn event(&self, selection: &Selection) -> Option<(&'static str, Pod)> {
        let seen = |pod: &Option<Pod>| pod.clone().filter(|pod| selection.selects(pod));
        match (seen(&self.before), seen(&self.after)) {
            (None, Some(after)) => Some(("ADDED", after)),
            (Some(_), Some(after)) => Some(("MODIFIED", after)),
            // Gone, or out of the selection: either way the state that was selected, at the version of the change.
            (Some(before), None) => Some(("DELETED", Pod { version: self.version, ..before })),
            (None, None) => None,
        }
    }
}

impl World {
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
                self.uids += 1;
                self.uids
            },
            |pod| pod.uid,
        );
        let after = Pod { key: key.to_owned(), uid, version: self.version, labels, node };
        self.objects.insert(key.to_owned(), after.clone());
        self.happened(before, Some(after))
    }

    /// Deletes an object; `None` if there is none.
    pub(crate) fn delete(&mut self, key: &str, at: Option<u64>) -> Option<Change> {
        let before = self.objects.remove(key)?;
        self.advance(at);
        Some(self.happened(Some(before), None))
    }

    /// Time passes without a change.
    pub(crate) fn advance(&mut self, to: Option<u64>) {
        self.version = to.unwrap_or(self.version + 1);
    }

    pub(crate) fn compact(&mut self) {
        self.history.clear();
        self.forgotten = self.version;
    }

    /// Another state with another past, of which nothing is remembered.
    pub(crate) fn restore(&mut self, version: u64, pods: impl IntoIterator<Item = Pod>) {
        self.version = version;
        self.objects = pods.into_iter().map(|pod| (pod.key.clone(), pod)).collect();
        self.compact();
    }

    /// The selected objects in order of their keys.
    pub(crate) fn list(&self, selection: &Selection) -> Vec<Pod> {
        self.objects.values().filter(|pod| selection.selects(pod)).cloned().collect()
    }

    /// What happened after a version; `None` if that is forgotten.
    pub(crate) fn since(&self, version: u64) -> Option<impl Iterator<Item = &Change>> {
        let known = version >= self.forgotten;
        known.then(|| self.history.iter().filter(move |change| change.version > version))
    }

    fn happened(&mut self, before: Option<Pod>, after: Option<Pod>) -> Change {
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
        let mut world = World::default();
        assert_eq!(world.put("shop/a", Some(5), labels("web"), None).event(&web()).unwrap().0, "ADDED");
        let (kind, pod) = world.put("shop/a", None, labels("db"), None).event(&web()).unwrap();
        assert_eq!((kind, pod.version, pod.labels), ("DELETED", 6, labels("web")));
        assert!(world.put("shop/a", None, labels("db"), None).event(&web()).is_none());
    }

    #[test]
    fn a_new_object_of_a_known_name_has_another_uid() {
        let mut world = World::default();
        world.put("shop/a", None, labels("web"), None);
        assert!(world.delete("shop/b", None).is_none());
        world.delete("shop/a", None).unwrap();
        world.put("shop/a", None, labels("web"), None);
        assert_eq!(world.list(&web())[0].uid, 2);
    }

    #[test]
    fn what_is_forgotten_cannot_be_replayed() {
        let mut world = World::default();
        world.put("shop/a", Some(5), labels("web"), None);
        world.put("shop/b", Some(6), labels("web"), None);
        assert_eq!(world.since(5).unwrap().count(), 1);
        world.compact();
        assert!(world.since(5).is_none());
        assert_eq!(world.since(6).unwrap().count(), 0);
    }
}
