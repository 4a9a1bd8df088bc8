//! A trie of field paths.

use crate::FieldStep;

/// A node: the paths that end here, and the children by step.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    ends: Vec<usize>,
    names: Vec<(String, Node)>,
    indexes: Vec<(usize, Node)>,
    every: Option<Box<Node>>,
}

impl Node {
    /// Adds a path with its number.
    pub(crate) fn insert(&mut self, steps: &[FieldStep], path: usize) {
        let Some((step, rest)) = steps.split_first() else { return self.ends.push(path) };
        let child = match step {
            FieldStep::Name(name) => entry(&mut self.names, name),
            FieldStep::Index(index) => entry(&mut self.indexes, index),
            FieldStep::Every => self.every.get_or_insert_default(),
        };
        child.insert(rest, path);
    }

    /// A node with the paths of both.
    pub(crate) fn merged(mut self, other: &Self) -> Self {
        self.ends.extend_from_slice(&other.ends);
        for (name, node) in &other.names {
            let own = entry(&mut self.names, name);
            *own = std::mem::take(own).merged(node);
        }
        for (index, node) in &other.indexes {
            let own = entry(&mut self.indexes, index);
            *own = std::mem::take(own).merged(node);
        }
        if let Some(node) = &other.every {
            let own = self.every.get_or_insert_default();
            **own = std::mem::take(&mut **own).merged(node);
        }
        self
    }

    /// The paths that end here.
    pub(crate) fn ends(&self) -> &[usize] {
        &self.ends
    }

    pub(crate) fn is_end(&self) -> bool {
        !self.ends.is_empty()
    }

    /// Whether a path continues with a name.
    pub(crate) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// Whether a path continues with an element of an array.
    pub(crate) fn has_elements(&self) -> bool {
        !self.indexes.is_empty() || self.every.is_some()
    }

    /// The child of a name, and its position among the names.
    pub(crate) fn named(&self, key: &[u8]) -> Option<(usize, &Node)> {
        let position = self.names.iter().position(|(name, _)| name.as_bytes() == key)?;
        Some((position, &self.names[position].1))
    }

    /// A flag for each name, none of them set.
    pub(crate) fn unseen(&self) -> Vec<bool> {
        vec![false; self.names.len()]
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.names.iter().map(|(name, node)| (name.as_str(), node))
    }

    /// The children of an element: at most that of its index and that of `[*]`.
    pub(crate) fn elements(&self, index: usize) -> impl Iterator<Item = &Node> {
        let own = self.indexes.iter().find(move |(own, _)| *own == index).map(|(_, node)| node);
        own.into_iter().chain(self.every.as_deref())
    }
}

fn entry<'a, K: Clone + PartialEq>(children: &'a mut Vec<(K, Node)>, key: &K) -> &'a mut Node {
    let position = children.iter().position(|(known, _)| known == key).unwrap_or_else(|| {
        children.push((key.clone(), Node::default()));
        children.len() - 1
    });
    &mut children[position].1
}
