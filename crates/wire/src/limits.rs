//! Limits on objects from a server.

use crate::json::MAX_DEPTH;

/// Deepest nesting of an object. `serde_json` rejects 128 levels, and [`MAX_DEPTH`] leaves one more for the event that
/// the object is in.
const MAX_OBJECT_DEPTH: usize = 127;
const _: () = assert!(MAX_OBJECT_DEPTH < MAX_DEPTH);

/// Limits on one object, the same in lists and watches. An object over a limit is reported as malformed; the objects
/// beside it are not affected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one encoded object. An API server rejects objects over about 1.5 MiB in etcd and 3 MiB in a request;
    /// the default of 8 MiB leaves room for fields that it adds.
    pub object_bytes: usize,
    /// Levels of nested arrays and objects, the object itself included. At most 127 count, which is also the default:
    /// serde_json decodes no deeper.
    pub depth: usize,
    /// Labels on one object.
    pub labels: usize,
}

impl Limits {
    /// The default limits, for constants.
    pub const DEFAULT: Self = Self { object_bytes: 8 << 20, depth: MAX_OBJECT_DEPTH, labels: 4096 };

    /// Sets the bytes of one encoded object.
    #[must_use]
    pub const fn object_bytes(mut self, bytes: usize) -> Self {
        self.object_bytes = bytes;
        self
    }

    /// Sets the nesting of arrays and objects.
    #[must_use]
    pub const fn depth(mut self, levels: usize) -> Self {
        self.depth = levels;
        self
    }

    /// Sets the labels on one object.
    #[must_use]
    pub const fn labels(mut self, labels: usize) -> Self {
        self.labels = labels;
        self
    }

    /// The depth that counts.
    pub(crate) fn object_depth(&self) -> usize {
        self.depth.min(MAX_OBJECT_DEPTH)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
