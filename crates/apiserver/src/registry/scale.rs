//! The fields that `/scale` shows and sets.

use std::borrow::Cow;

/// JSON pointers into the objects of one resource.
#[derive(Debug, Clone)]
pub(crate) struct ScalePaths {
    pub(crate) spec: Cow<'static, str>,
    pub(crate) status: Cow<'static, str>,
    pub(crate) selector: ScaleSelector,
    /// An object without a count cannot be scaled; otherwise it counts as zero.
    pub(crate) demands_count: bool,
}

/// The selector of the counted pods.
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
    /// `spec.selector` is a map of labels.
    pub(super) fn with_label_map() -> Self {
        Self::built_in(ScaleSelector::Map)
    }

    /// `spec.selector` is a label selector.
    pub(super) fn with_label_selector() -> Self {
        Self::built_in(ScaleSelector::Labels)
    }

    /// The path of the replica count, as a CRD specifies it.
    pub(crate) fn spec_path(&self) -> String {
        self.spec.replace('/', ".")
    }

    fn built_in(selector: ScaleSelector) -> Self {
        Self {
            spec: "/spec/replicas".into(),
            status: "/status/replicas".into(),
            selector,
            demands_count: false,
        }
    }
}
