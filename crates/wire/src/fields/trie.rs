//! Paths that share their beginnings.

use crate::FieldStep;

/// A place in objects, the paths that end there and the steps that lead on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    ends: Vec<usize>,
    names: Vec<(String, Node)>,
    indexes: Vec<(usize, Node)>,
    every: Option<Box<Node>>,
}

impl Node {
    /// Adds the path with a number.
    pub(crate) fn insert(&mut self, steps: &[FieldStep], path: usize) {
        let Some((step, rest)) = steps.split_first() else { return self.ends.push(path) };
        let child = match step {
            FieldStep::Name(name) => entry(&mut self.names, name),
            FieldStep::Index(index) => entry(&mut self.indexes, index),
            FieldStep::Every => self.every.get_or_insert_default(),
        };
        child.insert(rest, path);
    }

    /// A node for the paths of both.
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

    /// Whether a path leads on by a name.
    pub(crate) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// Whether a path leads on through an array.
    pub(crate) fn has_elements(&self) -> bool {
        !self.indexes.is_empty() || self.every.is_some()
    }

    /// Where a name leads, and its position among the names.
    pub(crate) fn named(&self, key: &[u8]) -> Option<(usize, &Node)> {
        let position = self.names.iter().position(|(name, _)| name.as_bytes() == key)?;
        Some((position, &self.names[position].1))
    }

    /// A mark for each name, none of them set.
    pub(crate) fn unseen(&self) -> Vec<bool> {
        vec![false; self.names.len()]
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.names.iter().map(|(name, node)| (name.as_str(), node))
    }

    /// Where an element of an array leads: at most to its own position and to every one.
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
