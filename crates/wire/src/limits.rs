//! Bounds on what a server may send.

/// Bounds on one object, the same for lists and watches: what is over them is unreadable, never a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one encoded object. An API server refuses objects over about 1.5 MiB in etcd and 3 MiB in a
    /// request, so that 8 MiB leaves room for whatever it adds.
    pub object_bytes: usize,
    /// Nesting of arrays and objects inside one object.
    pub depth: usize,
    /// Labels on one object.
    pub labels: usize,
}

impl Limits {
    /// The default limits, for constants.
    pub const DEFAULT: Self = Self { object_bytes: 8 << 20, depth: 128, labels: 4096 };

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
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
