//! Where a kind keeps what `/scale` shows.

use std::borrow::Cow;

/// JSON pointers into objects of one kind.
#[derive(Debug, Clone)]
pub(crate) struct ScalePaths {
    pub(crate) spec: Cow<'static, str>,
    pub(crate) status: Cow<'static, str>,
    pub(crate) selector: ScaleSelector,
    /// An object without a count cannot be scaled; otherwise it counts as zero.
    pub(crate) demands_count: bool,
}

/// The selector of what is counted.
#[derive(Debug, Clone)]
pub(crate) enum ScaleSelector {
    /// A map of labels in `spec.selector`.
    Map,
    /// A label selector in `spec.selector`.
    Labels,
    /// Text at a pointer, if there is one.
    Text(Option<String>),
}

impl ScalePaths {
    /// Those of built-in kinds.
    pub(super) fn built_in(group: &str) -> Self {
        Self {
            spec: "/spec/replicas".into(),
            status: "/status/replicas".into(),
            selector: if group.is_empty() { ScaleSelector::Map } else { ScaleSelector::Labels },
            demands_count: false,
        }
    }
}
