//! What kind of objects a collection holds.

use crate::{object::Record, recent::Recent};
use std::fmt;

/// A kind of object and the resource it is served under.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: String,
    /// API version, such as `v1`.
    pub version: String,
    /// Kind, such as `Pod`.
    pub kind: String,
    /// Resource name in URLs, such as `pods`.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

impl Kind {
    /// A namespaced kind.
    pub fn namespaced(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        let [group, version, kind, plural] = [group, version, kind, plural].map(str::to_owned);
        Self { group, version, kind, plural, namespaced: true }
    }

    /// A cluster-scoped kind.
    pub fn cluster(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self { namespaced: false, ..Self::namespaced(group, version, kind, plural) }
    }

    /// `v1` or `group/version`, as objects carry it.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Whether the content must never be shown or kept beyond need: Secrets.
    pub fn is_secret(&self) -> bool {
        self.group.is_empty() && self.kind == "Secret"
    }
}

/// `pods`, `deployments.apps`: the resource as kubectl names it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_str() {
            "" => f.write_str(&self.plural),
            group => write!(f, "{}.{group}", self.plural),
        }
    }
}

/// What all objects of one collection have in common, shared by them.
#[derive(Debug)]
pub struct Origin {
    kind: Kind,
    /// `"kind":"Pod","apiVersion":"v1"`: what a list item of a built-in kind leaves out, in the order in which
    /// servers write it, so that an object looks the same whether it was listed or watched.
    type_meta: String,
    /// The values of these objects that were decoded last; always empty for secrets.
    recent: Recent<Record>,
}

impl Origin {
    /// The origin of objects of `kind`.
    pub fn new(kind: Kind) -> Self {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let type_meta =
            format!(r#""kind":{},"apiVersion":{}"#, quoted(&kind.kind), quoted(&kind.api_version()));
        Self { kind, type_meta, recent: Recent::default() }
    }

    /// The kind of these objects.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(crate) fn recent(&self) -> &Recent<Record> {
        &self.recent
    }

    pub(crate) fn type_meta(&self) -> &str {
        &self.type_meta
    }
}
