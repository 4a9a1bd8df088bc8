//! The state a watch begins with, read from a snapshot piece by piece.

use std::sync::Arc;

use super::filter::Filter;
use crate::storage::{Stored, Tree, scan};

/// Objects collected at a time: neither the whole state at once nor a search per object.
const CHUNK: usize = 256;

/// A cursor over a snapshot.
pub(super) struct InitialState {
    tree: Tree,
    chunk: std::vec::IntoIter<Arc<Stored>>,
    /// Where the next chunk starts; `None` when there is none.
    next: Option<String>,
}

impl InitialState {
    pub(super) fn new(tree: Tree, filter: &Filter) -> Self {
        if let Some(key) = filter.single() {
            let found = tree.get(key).filter(|stored| filter.selects(stored)).cloned();
            return Self { tree: Tree::new(), chunk: Vec::from_iter(found).into_iter(), next: None };
        }
        Self { tree, chunk: Vec::new().into_iter(), next: Some(String::new()) }
    }

    /// The next object that the filter selects, in key order.
    pub(super) fn next(&mut self, filter: &Filter) -> Option<Arc<Stored>> {
        loop {
            if let Some(stored) = self.chunk.next() {
                return Some(stored);
            }
            self.read(filter)?;
        }
    }

    fn read(&mut self, filter: &Filter) -> Option<()> {
        let start = self.next.take()?;
        let mut found = scan(&self.tree, filter.prefix(), &start);
        let mut chunk = Vec::new();
        let last = found.by_ref().take(CHUNK).inspect(|stored| {
            if filter.selects_in_scope(stored) {
                chunk.push(Arc::clone(stored));
            }
        });
        self.next = last.last().map(|stored| format!("{}\0", stored.key));
        self.chunk = chunk.into_iter();
        Some(())
    }
}
