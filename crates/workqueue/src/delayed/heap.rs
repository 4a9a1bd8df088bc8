//! A heap of due times whose members can be found again.

/// Children per node: four share a cache line, and the tree is half as deep as with two.
const ARITY: usize = 4;

/// One waiting slot.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) due: u64,
    /// Breaks ties: first come, first served.
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

/// A min-heap that knows where each slot stands, so that a slot can be moved or removed.
#[derive(Default)]
pub(super) struct Heap {
    /// No node is before its parent, which for position `i` is at `(i - 1) / ARITY`.
    nodes: Vec<Node>,
    /// Position in `nodes` of each slot that is in the heap; meaningless for others.
    positions: Vec<u32>,
}

impl Heap {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn first(&self) -> Option<&Node> {
        self.nodes.first()
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// When `slot`, which must be in the heap, is due.
    pub(super) fn due(&self, slot: u32) -> u64 {
        self.nodes[self.position(slot)].due
    }

    /// Inserts a node whose slot is not in the heap.
    pub(super) fn push(&mut self, node: Node) {
        let slot = node.slot as usize;
        if self.positions.len() <= slot {
            self.positions.resize(slot + 1, 0);
        }
        self.nodes.push(node);
        self.rise(self.nodes.len() - 1, node);
    }

    /// Replaces the node of a slot that is in the heap by one that comes earlier.
    pub(super) fn advance(&mut self, node: Node) {
        self.rise(self.position(node.slot), node);
    }

    pub(super) fn pop(&mut self) -> Option<Node> {
        let first = *self.nodes.first()?;
        self.remove(first.slot);
        Some(first)
    }

    /// Removes the node of a slot that is in the heap.
    pub(super) fn remove(&mut self, slot: u32) {
        let hole = self.position(slot);
        let Some(last) = self.nodes.pop() else { return };
        if hole == self.nodes.len() {
            return;
        }
        if hole > 0 && last.before(&self.nodes[(hole - 1) / ARITY]) {
            self.rise(hole, last);
        } else {
            self.sink(hole, last);
        }
    }

    fn position(&self, slot: u32) -> usize {
        self.positions[slot as usize] as usize
    }

    /// Puts `node` at position `at` or above.
    fn rise(&mut self, mut at: usize, node: Node) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if !node.before(&self.nodes[parent]) {
                break;
            }
            self.place(at, self.nodes[parent]);
            at = parent;
        }
        self.place(at, node);
    }

    /// Puts `node` at position `at` or below.
    fn sink(&mut self, mut at: usize, node: Node) {
        while let Some(child) = self.first_child(at) {
            if !self.nodes[child].before(&node) {
                break;
            }
            self.place(at, self.nodes[child]);
            at = child;
        }
        self.place(at, node);
    }

    /// The child of `at` that comes first.
    fn first_child(&self, at: usize) -> Option<usize> {
        let from = at * ARITY + 1;
        let to = (from + ARITY).min(self.nodes.len());
        (from..to).reduce(|best, next| if self.nodes[next].before(&self.nodes[best]) { next } else { best })
    }

    fn place(&mut self, at: usize, node: Node) {
        self.nodes[at] = node;
        self.positions[node.slot as usize] = at as u32;
    }
}
