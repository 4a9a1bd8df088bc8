//! A hash table that shares its pages with its clones.

mod build;

use std::sync::Arc;

/// Bits of a hash that one branch looks at.
const BRANCH_BITS: u32 = 6;
/// Entries of a full page.
const PAGE: usize = 16;
/// Pages whose entries have this many bits of their hashes in common do not split: they have one hash.
const MAX_DEPTH: u32 = 60;

/// A hash table of small entries, such as references to objects.
///
/// 1. Cloning is a reference count. A change copies one page and the branches above it, if a clone has them, too.
/// 2. An entry takes about twice its own size, whatever the number of entries.
/// 3. If comparing panics, the table is unchanged.
///
/// The caller computes the hashes. A page that is full is split in two by the next bit of the hashes, so that all pages
/// are between half full and full; a branch finds the page of a hash by counting the pages that start before it.
pub(crate) struct HashTable<E> {
    root: Node<E>,
}

enum Node<E> {
    Branch(Arc<Branch<E>>),
    Page(Arc<Page<E>>),
}

/// Pages and branches by the next [`BRANCH_BITS`] of the hash.
#[derive(Clone)]
struct Branch<E> {
    /// The bit of a slot is set if a child starts there; it reaches to the slot before the next one. Bit 0 is set.
    starts: u64,
    /// Invariant: one for each bit in `starts`. A child that is a branch has one slot.
    children: Vec<Node<E>>,
}

#[derive(Clone)]
struct Page<E> {
    /// The number of leading bits that the hashes of all entries have in common.
    depth: u32,
    entries: Vec<Entry<E>>,
}

#[derive(Clone)]
struct Entry<E> {
    /// The last bits of the hash, which tell most entries apart.
    tag: u32,
    value: E,
}

enum Inserted<E> {
    Added,
    Replaced(E),
    /// The page is full; these halves take its place, and the entry is still to be inserted.
    Split([Page<E>; 2], E),
}

impl<E: Clone> HashTable<E> {
    pub(crate) fn new() -> Self {
        Self { root: Node::page(0, Vec::new()) }
    }

    /// Bytes on the heap, without those that entries have there.
    pub(crate) fn heap_size(&self) -> usize {
        self.root.heap_size()
    }

    /// The entry with this hash that `is_it` accepts.
    pub(crate) fn get(&self, hash: u64, is_it: impl Fn(&E) -> bool) -> Option<&E> {
        let (mut node, mut level) = (&self.root, 0);
        loop {
            match node {
                Node::Branch(branch) => node = &branch.children[branch.child_at(slot(hash, level))],
                Node::Page(page) => return page.position(hash, is_it).map(|at| &page.entries[at].value),
            }
            level += 1;
        }
    }

    /// Adds an entry, or replaces the one that `is_it` accepts and returns that.
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        mut value: E,
        is_it: impl Fn(&E) -> bool,
        hash_of: impl Fn(&E) -> u64,
    ) -> Option<E> {
        loop {
            match self.root.insert(0, hash, value, &is_it, &hash_of) {
                Inserted::Added => return None,
                Inserted::Replaced(old) => return Some(old),
                Inserted::Split(halves, pending) => {
                    self.root = Node::branch(halves);
                    value = pending;
                }
            }
        }
    }

    /// Removes the entry with this hash that `is_it` accepts, and returns it.
    pub(crate) fn remove(&mut self, hash: u64, is_it: impl Fn(&E) -> bool) -> Option<E> {
        // Looked up first: a removal of nothing copies nothing.
        self.get(hash, &is_it)?;
        self.root.remove(0, hash, &is_it)
    }
}

impl<E> Clone for HashTable<E> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone() }
    }
}

impl<E> Clone for Node<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Branch(branch) => Self::Branch(Arc::clone(branch)),
            Self::Page(page) => Self::Page(Arc::clone(page)),
        }
    }
}

/// The slot of a hash in a branch.
fn slot(hash: u64, level: u32) -> u32 {
    (hash >> (u64::BITS - BRANCH_BITS * (level + 1))) as u32 & ((1 << BRANCH_BITS) - 1)
}

impl<E: Clone> Node<E> {
    fn page(depth: u32, entries: Vec<Entry<E>>) -> Self {
        Self::Page(Arc::new(Page { depth, entries }))
    }

    /// A branch of two pages that differ in the first bit.
    fn branch([zero, one]: [Page<E>; 2]) -> Self {
        let starts = 1 | 1 << (1_u32 << (BRANCH_BITS - 1));
        Self::Branch(Arc::new(Branch {
            starts,
            children: vec![Self::Page(Arc::new(zero)), Self::Page(Arc::new(one))],
        }))
    }

    /// Bytes of this node and of those below it.
    fn heap_size(&self) -> usize {
        let own = match self {
            Self::Page(page) => size_of::<Page<E>>() + page.entries.capacity() * size_of::<Entry<E>>(),
            Self::Branch(branch) => {
                let below: usize = branch.children.iter().map(Self::heap_size).sum();
                size_of::<Branch<E>>() + branch.children.capacity() * size_of::<Self>() + below
            }
        };
        2 * size_of::<usize>() + own
    }

    fn insert(
        &mut self,
        level: u32,
        hash: u64,
        mut value: E,
        is_it: &impl Fn(&E) -> bool,
        hash_of: &impl Fn(&E) -> u64,
    ) -> Inserted<E> {
        let branch = match self {
            Self::Page(page) => return Arc::make_mut(page).insert(hash, value, is_it, hash_of),
            Self::Branch(branch) => Arc::make_mut(branch),
        };
        loop {
            let slot = slot(hash, level);
            let at = branch.child_at(slot);
            match branch.children[at].insert(level + 1, hash, value, is_it, hash_of) {
                Inserted::Split(halves, pending) => {
                    branch.split(at, slot, halves[0].depth - BRANCH_BITS * level, halves);
                    value = pending;
                }
                done => return done,
            }
        }
    }

    fn remove(&mut self, level: u32, hash: u64, is_it: &impl Fn(&E) -> bool) -> Option<E> {
        let branch = match self {
            Self::Page(page) => return Arc::make_mut(page).remove(hash, is_it),
            Self::Branch(branch) => Arc::make_mut(branch),
        };
        let at = branch.child_at(slot(hash, level));
        let removed = branch.children[at].remove(level + 1, hash, is_it);
        branch.merge(at, level);
        if let [Node::Page(page)] = &*branch.children {
            *self = Self::Page(Arc::clone(page));
        }
        removed
    }
}

impl<E: Clone> Branch<E> {
    /// The child that a slot belongs to.
    fn child_at(&self, slot: u32) -> usize {
        (self.starts << (u64::BITS - 1 - slot)).count_ones() as usize - 1
    }

    /// Puts two halves in the place of a full page. They have `bits` in common below this branch.
    fn split(&mut self, at: usize, slot: u32, bits: u32, halves: [Page<E>; 2]) {
        if bits > BRANCH_BITS {
            self.children[at] = Node::branch(halves);
            return;
        }
        let width = 1 << (BRANCH_BITS - bits);
        let second = (slot & !(2 * width - 1)) + width;
        let [zero, one] = halves.map(|half| Node::Page(Arc::new(half)));
        self.starts |= 1 << second;
        self.children[at] = zero;
        // Not twice the room, as `Vec` would: most branches are copied before they grow again.
        if self.children.len() == self.children.capacity() {
            self.children.reserve_exact(4);
        }
        self.children.insert(at + 1, one);
    }

    /// Makes one page of a page and its other half while both are small.
    fn merge(&mut self, mut at: usize, level: u32) {
        while let Some((first, start)) = self.halves(at, level) {
            let Node::Page(second) = self.children.remove(first + 1) else { return };
            let Node::Page(page) = &mut self.children[first] else { return };
            let page = Arc::make_mut(page);
            page.entries.extend(Arc::unwrap_or_clone(second).entries);
            page.depth -= 1;
            self.starts &= !(1 << start);
            at = first;
        }
    }

    /// The first of two pages that were one before a split and are small enough to be one again, and the slot at which
    /// the second one starts.
    fn halves(&self, at: usize, level: u32) -> Option<(usize, u32)> {
        let Node::Page(page) = &self.children[at] else { return None };
        let bits =
            page.depth.checked_sub(BRANCH_BITS * level).filter(|bits| (1..=BRANCH_BITS).contains(bits))?;
        let width = 1 << (BRANCH_BITS - bits);
        let start = (0..u64::BITS).filter(|slot| self.starts >> slot & 1 == 1).nth(at)?;
        let (first, second) =
            if start & width == 0 { (at, start + width) } else { (at.checked_sub(1)?, start) };
        match (self.children.get(first)?, self.children.get(first + 1)?) {
            (Node::Page(a), Node::Page(b))
                if a.depth == b.depth && a.entries.len() + b.entries.len() <= PAGE / 2 =>
            {
                Some((first, second))
            }
            _ => None,
        }
    }
}

impl<E: Clone> Page<E> {
    fn position(&self, hash: u64, is_it: impl Fn(&E) -> bool) -> Option<usize> {
        self.entries.iter().position(|entry| entry.tag == hash as u32 && is_it(&entry.value))
    }

    fn insert(
        &mut self,
        hash: u64,
        value: E,
        is_it: &impl Fn(&E) -> bool,
        hash_of: &impl Fn(&E) -> u64,
    ) -> Inserted<E> {
        if let Some(at) = self.position(hash, is_it) {
            return Inserted::Replaced(std::mem::replace(&mut self.entries[at].value, value));
        }
        if self.entries.len() >= PAGE && self.depth < MAX_DEPTH {
            return Inserted::Split(self.halves(hash_of), value);
        }
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(4);
        }
        self.entries.push(Entry { tag: hash as u32, value });
        Inserted::Added
    }

    /// The entries by the first bit in which their hashes may differ.
    fn halves(&self, hash_of: &impl Fn(&E) -> u64) -> [Page<E>; 2] {
        let bit = u64::BITS - 1 - self.depth;
        let (ones, zeros): (Vec<_>, Vec<_>) =
            self.entries.iter().cloned().partition(|entry| hash_of(&entry.value) >> bit & 1 == 1);
        [zeros, ones].map(|mut entries| {
            entries.shrink_to_fit();
            Page { depth: self.depth + 1, entries }
        })
    }

    fn remove(&mut self, hash: u64, is_it: &impl Fn(&E) -> bool) -> Option<E> {
        let at = self.position(hash, is_it)?;
        Some(self.entries.swap_remove(at).value)
    }
}

#[cfg(test)]
mod tests;
