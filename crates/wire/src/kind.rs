//! Kinds, and the origin that the objects of a collection share.

use crate::sync::lock;
use crate::{
    Omissions,
    decode_cache::DecodeCache,
    object::{MessageKind, Record},
};
use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, Weak},
};

/// A kind of objects, and the resource that serves it.
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
    /// Whether objects are in namespaces.
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

    /// `v1` or `group/version`, as in the field `apiVersion` of objects.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Whether the content must not be printed, shared in dictionaries or cached decoded: Secrets.
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

/// The data that all objects of one collection share.
///
/// Objects from which a transform removed the same fields share an origin that names these fields, so that an object needs
/// no memory for them.
#[derive(Debug)]
pub struct Origin {
    kind: Kind,
    /// `"kind":"Pod","apiVersion":"v1"`, in the order of servers. List items of built-in kinds have neither; with them an
    /// object is the same whether it was listed or watched.
    type_meta: String,
    /// How messages of this kind are read, once one of them is; `None` for custom resources.
    message: OnceLock<Option<MessageKind>>,
    /// Decoded values of these objects; always empty for secrets.
    decode_cache: DecodeCache<Record>,
    /// The parts of the server's objects that these objects do not hold.
    omissions: Omissions,
    /// The origin that this one was derived from, which caches the decoded values of both.
    base: Option<Arc<Origin>>,
    /// Origins of objects that omit more, by their additional omissions. Each lives as long as such an object.
    /// Held for one lookup or insertion.
    derived: Mutex<Vec<(Arc<Omissions>, Weak<Origin>)>>,
}

/// Number of derived origins with exact omissions; further ones name only top-level fields. Beyond twice this number,
/// objects count as omitting everything. A usual transform needs a handful.
const MAX_EXACT: usize = 64;

impl Origin {
    /// The origin of objects of `kind`.
    pub fn new(kind: Kind) -> Self {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let type_meta =
            format!(r#""kind":{},"apiVersion":{}"#, quoted(&kind.kind), quoted(&kind.api_version()));
        Self {
            kind,
            type_meta,
            message: OnceLock::new(),
            decode_cache: DecodeCache::default(),
            omissions: Omissions::default(),
            base: None,
            derived: Mutex::default(),
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

    /// The origin of objects of the same collection that also omit `more`. It may name further fields, but never fewer.
    pub fn omitting(self: &Arc<Self>, more: &Arc<Omissions>) -> Arc<Self> {
        let mut derived = lock(&self.derived);
        let same = |(known, _): &&(Arc<Omissions>, _)| Arc::ptr_eq(known, more) || known == more;
        if let Some(origin) = derived.iter().find(same).and_then(|(_, origin)| origin.upgrade()) {
            return origin;
        }
        let omissions = self.omissions.clone().and(more);
        if omissions == self.omissions {
            return Arc::clone(self);
        }
        derived.retain(|(_, origin)| origin.strong_count() > 0);
        if let Some(coarser) = coarser(more, derived.len()) {
            drop(derived);
            return self.omitting(&Arc::new(coarser));
        }
        let origin = Arc::new(Self {
            omissions,
            base: Some(Arc::clone(self.base.as_ref().unwrap_or(self))),
            ..Self::new(self.kind.clone())
        });
        derived.push((Arc::clone(more), Arc::downgrade(&origin)));
        origin
    }

    pub(crate) fn decode_cache(&self) -> &DecodeCache<Record> {
        &self.base.as_deref().unwrap_or(self).decode_cache
    }

    /// How messages of this kind are read; `None` for custom resources.
    pub(crate) fn message(&self) -> Option<&MessageKind> {
        self.message.get_or_init(|| MessageKind::of(&self.kind)).as_ref()
    }

    pub(crate) fn type_meta(&self) -> &str {
        &self.type_meta
    }
}

/// The omissions to record instead of `more` if there are `known` derived origins already; `None` if it can be recorded
/// exactly.
fn coarser(more: &Omissions, known: usize) -> Option<Omissions> {
    match more.is_open() || known < MAX_EXACT || more.is_top_level() && known < 2 * MAX_EXACT {
        true => None,
        false if known < 2 * MAX_EXACT => Some(more.top_level()),
        false => Some(Omissions::everything()),
    }
}
