//! The initial state of a watch, read from a snapshot in chunks.

use std::sync::Arc;

use super::filter::Filter;
use crate::storage::{Stored, Tree, scan};

/// Objects per chunk: bounds the memory of a large initial state without a tree search per object.
const CHUNK: usize = 256;

/// A cursor over a snapshot.
pub(super) struct InitialState {
    tree: Tree,
    chunk: std::vec::IntoIter<Arc<Stored>>,
    /// The first key of the next chunk; `None` after the last chunk.
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

    /// Returns the next object that the filter selects, in key order.
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
