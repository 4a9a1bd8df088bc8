//! Bounds of everything that an expression or its input can make large.

/// The length of the longest expression.
pub(crate) const MAX_CODE_POINTS: usize = 100_000;
/// The deepest expression. Checking and evaluation recurse, so that it also bounds the stack.
pub(crate) const MAX_DEPTH: usize = 250;
/// The most parts of an expression. Macros may repeat their target, which doubles with each level.
pub(crate) const MAX_NODES: usize = 200_000;
/// The most elements and chunks of text that one evaluation copies or compares. Kubernetes charges nothing, or too little, for some
/// operations that copy; without this bound an expression within the cost limit could use any amount of memory and time.
pub(crate) const MAX_WORK: u64 = 5_000_000;

/// The largest cost of one evaluation.
pub const PER_CALL_LIMIT: u64 = 1_000_000;
/// The largest cost of all evaluations for one object.
pub const OBJECT_BUDGET: i64 = 10_000_000;
/// The largest estimated cost of one expression in a CRD.
pub const ESTIMATED_COST_LIMIT: u64 = 10_000_000;
/// The largest estimated cost of all expressions in the schema of one version.
pub const ESTIMATED_SCHEMA_COST_LIMIT: u64 = 100_000_000;
/// The largest request that Kubernetes accepts; estimates assume that values are not larger.
pub(crate) const MAX_REQUEST_BYTES: i64 = 3 * 1024 * 1024;
/// The longest result of a message expression.
pub(crate) const MAX_MESSAGE_BYTES: usize = 5 * 1024;
