//! How urgent a key is.

/// How urgent a key is: higher goes first. The default is 0.
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
    /// For work that may wait behind everything else, such as the first fill of a cache.
    pub const LOW: Priority = Priority(-100);
    /// What `add` uses.
    pub const NORMAL: Priority = Priority(0);
    /// For work that should overtake ordinary work.
    pub const HIGH: Priority = Priority(100);
}
