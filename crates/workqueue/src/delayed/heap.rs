//! Heap of due times whose nodes can be moved and removed.

/// Children per node: four share a cache line, and the tree is half as deep as with two.
const ARITY: usize = 4;

/// A delayed slot.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) due: u64,
    /// Breaks ties: first in, first out.
    pub(super) arrival: u32,
    pub(super) slot: u32,
}

impl Node {
    fn before(&self, other: &Node) -> bool {
        // Arrival numbers wrap around, so they are compared by distance.
        let first_come = || self.arrival.wrapping_sub(other.arrival).cast_signed() < 0;
        self.due < other.due || (self.due == other.due && first_come())
    }
}

/// Stores the position in the heap of each slot, so that its node can be moved or removed. The heap does not store it
/// itself, so that the position shares a cache line with the rest of the slot.
pub(super) trait Slots {
    fn position(&self, slot: u32) -> usize;
    fn moved(&mut self, slot: u32, to: usize);
}

/// A min-heap.
#[derive(Default)]
pub(super) struct Heap {
    /// No node is before its parent, which for position `i` is at `(i - 1) / ARITY`.
    nodes: Vec<Node>,
}

impl Heap {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn first(&self) -> Option<&Node> {
        self.nodes.first()
    }

    /// The node at a position.
    pub(super) fn node(&self, position: usize) -> &Node {
        &self.nodes[position]
    }

    /// When the slot at a position is due.
    pub(super) fn due(&self, position: usize) -> u64 {
        self.nodes[position].due
    }

    /// Inserts a node whose slot is not in the heap.
    pub(super) fn push(&mut self, node: Node, slots: &mut impl Slots) {
        self.nodes.push(node);
        self.rise(self.nodes.len() - 1, node, slots);
    }

    /// Replaces the node of a slot that is in the heap by an earlier one.
    pub(super) fn advance(&mut self, node: Node, slots: &mut impl Slots) {
        self.rise(slots.position(node.slot), node, slots);
    }

    pub(super) fn pop(&mut self, slots: &mut impl Slots) -> Option<Node> {
        let first = *self.nodes.first()?;
        self.remove(0, slots);
        Some(first)
    }

    /// Removes the node at a position.
    pub(super) fn remove(&mut self, hole: usize, slots: &mut impl Slots) {
        let Some(last) = self.nodes.pop() else { return };
        if hole == self.nodes.len() {
            return;
        }
        if hole > 0 && last.before(&self.nodes[(hole - 1) / ARITY]) {
            self.rise(hole, last, slots);
        } else {
            self.sink(hole, last, slots);
        }
    }

    /// Puts `node` at position `at` or above.
    fn rise(&mut self, mut at: usize, node: Node, slots: &mut impl Slots) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if !node.before(&self.nodes[parent]) {
                break;
            }
            self.place(at, self.nodes[parent], slots);
            at = parent;
        }
        self.place(at, node, slots);
    }

    /// Puts `node` at position `at` or below.
    fn sink(&mut self, mut at: usize, node: Node, slots: &mut impl Slots) {
        while let Some(child) = self.first_child(at) {
            if !self.nodes[child].before(&node) {
                break;
            }
            self.place(at, self.nodes[child], slots);
            at = child;
        }
        self.place(at, node, slots);
    }

    /// The child of `at` that comes first.
    fn first_child(&self, at: usize) -> Option<usize> {
        let from = at * ARITY + 1;
        let to = (from + ARITY).min(self.nodes.len());
        (from..to).reduce(|best, next| if self.nodes[next].before(&self.nodes[best]) { next } else { best })
    }

    fn place(&mut self, at: usize, node: Node, slots: &mut impl Slots) {
        self.nodes[at] = node;
        slots.moved(node.slot, at);
    }
}
