//! Sites and children as they are stored.

use crate::controllers::site::{FINALIZER, SLOT, USER_FINALIZER};
use serde_json::Value;

/// A site as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::controllers) struct SiteState {
    pub(in crate::controllers) uid: String,
    pub(in crate::controllers) generation: i64,
    pub(in crate::controllers) deleting: bool,
    /// Whether it has the finalizer of the operator.
    pub(in crate::controllers) finalizer: bool,
    /// Whether it has the finalizer of a user.
    pub(in crate::controllers) user_finalizer: bool,
    pub(in crate::controllers) children: u32,
    pub(in crate::controllers) value: String,
    /// The generation and the number of children in the status.
    pub(in crate::controllers) status: Option<(i64, u32)>,
}

impl SiteState {
    pub(super) fn parse(site: &Value) -> Option<Self> {
        let meta = &site["metadata"];
        let has = |name: &str| {
            meta["finalizers"].as_array().is_some_and(|all| all.iter().any(|finalizer| finalizer == name))
        };
        let status = &site["status"];
        let observed = status["observedGeneration"].as_i64();
        let shown = status["children"].as_u64().and_then(|children| children.try_into().ok());
        Some(Self {
            uid: meta["uid"].as_str()?.to_owned(),
            generation: meta["generation"].as_i64().unwrap_or(0),
            deleting: !meta["deletionTimestamp"].is_null(),
            finalizer: has(FINALIZER),
            user_finalizer: has(USER_FINALIZER),
            children: site["spec"]["children"].as_u64()?.try_into().ok()?,
            value: site["spec"]["value"].as_str()?.to_owned(),
            status: observed.zip(shown),
        })
    }
}

/// A child as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::controllers) struct Child {
    pub(in crate::controllers) uid: String,
    /// The uid of its site.
    pub(in crate::controllers) owner: String,
    pub(in crate::controllers) slot: u32,
    pub(in crate::controllers) value: String,
}

impl Child {
    pub(super) fn parse(child: &Value) -> Option<Self> {
        let meta = &child["metadata"];
        Some(Self {
            uid: meta["uid"].as_str()?.to_owned(),
            owner: meta["ownerReferences"][0]["uid"].as_str()?.to_owned(),
            slot: meta["labels"][SLOT].as_str()?.parse().ok()?,
            value: child["data"]["value"].as_str().unwrap_or_default().to_owned(),
        })
    }
}
