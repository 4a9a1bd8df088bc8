//! The names of the logs that the informers of a process use.

use kube_informer_wire::sync::lock;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

/// The names of logs that are in use. Informers that differ only in what their names do not show, such as the transform, get
/// numbers in the order in which they are built: the same ones in the next process, if that builds them in the same order.
#[derive(Default)]
pub(super) struct Names(Mutex<HashSet<String>>);

/// The name of a log, which no other log of this process has until it is dropped.
pub(super) struct ReservedName {
    names: Arc<Names>,
    text: String,
}

impl Names {
    /// Reserves a name, or that name with the lowest number that is free.
    pub(super) fn reserve(self: &Arc<Self>, wanted: String) -> Arc<ReservedName> {
        let mut names = lock(&self.0);
        let mut text = wanted.clone();
        let mut number = 1_u32;
        while !names.insert(text.clone()) {
            number += 1;
            text = format!("{wanted}/{number}");
        }
        drop(names);
        Arc::new(ReservedName { names: Arc::clone(self), text })
    }
}

impl ReservedName {
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl Drop for ReservedName {
    fn drop(&mut self) {
        lock(&self.names.0).remove(&self.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_use_gets_a_number_and_is_free_once_it_is_dropped() {
        let names = Arc::new(Names::default());
        let [first, second, third] = [0; 3].map(|_| names.reserve("pods".to_owned()));
        assert_eq!([first.text(), second.text(), third.text()], ["pods", "pods/2", "pods/3"]);
        drop(second);
        assert_eq!(names.reserve("pods".to_owned()).text(), "pods/2");
        drop((first, third));
        assert_eq!(names.reserve("pods".to_owned()).text(), "pods");
    }
}
