//! Priorities of keys.

/// The priority of a key: higher ones are taken first. The default is 0.
///
/// ```
/// use kube_workqueue::Priority;
///
/// assert!(Priority(10) > Priority::default());
/// assert!(Priority::LOW < Priority::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub i32);

impl Priority {
    /// For work that may wait behind everything else, such as the initial list of a cache.
    pub const LOW: Priority = Priority(-100);
    /// The default.
    pub const NORMAL: Priority = Priority(0);
    /// For work that goes before ordinary work.
    pub const HIGH: Priority = Priority(100);
}
