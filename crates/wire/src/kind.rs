//! What kind of objects a collection holds.

use crate::{Omissions, object::Record, recent::Recent};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};

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
///
/// Objects that a transform made smaller, all in the same way, share an origin of their own, which says what they omit:
/// so an object needs no room for that.
#[derive(Debug)]
pub struct Origin {
    kind: Kind,
    /// `"kind":"Pod","apiVersion":"v1"`: what a list item of a built-in kind leaves out, in the order in which
    /// servers write it, so that an object looks the same whether it was listed or watched.
    type_meta: String,
    /// The values of these objects that were decoded last; always empty for secrets.
    recent: Recent<Record>,
    /// The parts of the server's objects that these objects do not hold.
    omissions: Omissions,
    /// The origin that this one was made from, which has the decoded values of both.
    base: Option<Arc<Origin>>,
    /// Origins of objects that omit more, by what more they omit. Each lives as long as such an object.
    /// Held for one look or one insertion.
    smaller: Mutex<Vec<(Arc<Omissions>, Weak<Origin>)>>,
}

/// How many ways of making objects smaller an origin tells apart exactly, then only by top-level fields. Beyond twice
/// as many, objects count as omitting everything. One transform makes a handful.
const WAYS: usize = 64;

impl Origin {
    /// The origin of objects of `kind`.
    pub fn new(kind: Kind) -> Self {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let type_meta =
            format!(r#""kind":{},"apiVersion":{}"#, quoted(&kind.kind), quoted(&kind.api_version()));
        Self {
            kind,
            type_meta,
            recent: Recent::default(),
            omissions: Omissions::default(),
            base: None,
            smaller: Mutex::default(),
        }
    }

    /// The kind of these objects.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The parts of the server's objects that objects of this origin do not hold.
    pub fn omissions(&self) -> &Omissions {
        &self.omissions
    }

    /// The origin of objects of the same collection that omit `more` besides. It may name more than that: an object
    /// never claims to hold a part that it omits.
    pub fn omitting(self: &Arc<Self>, more: &Arc<Omissions>) -> Arc<Self> {
        let mut smaller = self.smaller.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |(known, _): &&(Arc<Omissions>, _)| Arc::ptr_eq(known, more) || known == more;
        if let Some(origin) = smaller.iter().find(same).and_then(|(_, origin)| origin.upgrade()) {
            return origin;
        }
        let omissions = self.omissions.clone().and(more);
        if omissions == self.omissions {
            return Arc::clone(self);
        }
        smaller.retain(|(_, origin)| origin.strong_count() > 0);
        if let Some(coarser) = coarser(more, smaller.len()) {
            drop(smaller);
            return self.omitting(&Arc::new(coarser));
        }
        let origin = Arc::new(Self {
            omissions,
            base: Some(Arc::clone(self.base.as_ref().unwrap_or(self))),
            ..Self::new(self.kind.clone())
        });
        smaller.push((Arc::clone(more), Arc::downgrade(&origin)));
        origin
    }

    pub(crate) fn recent(&self) -> &Recent<Record> {
        &self.base.as_deref().unwrap_or(self).recent
    }

    pub(crate) fn type_meta(&self) -> &str {
        &self.type_meta
    }
}

/// What to record instead of `more` where `ways` sets are told apart already; `None` if it can be recorded as it is.
fn coarser(more: &Omissions, ways: usize) -> Option<Omissions> {
    match more.is_open() || ways < WAYS || more.is_top_level() && ways < 2 * WAYS {
        true => None,
        false if ways < 2 * WAYS => Some(more.top_level()),
        false => Some(Omissions::everything()),
    }
}
