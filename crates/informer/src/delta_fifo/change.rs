//! Changes that a watch reports, and whether they are news.

use crate::delta::{AnyObject, Deleted, Delta};
use kube_informer_wire::ResourceVersion;

/// A change reported by a watch.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Added(AnyObject),
    Modified(AnyObject),
    Deleted(AnyObject),
}

impl Change {
    pub(crate) fn object(&self) -> &AnyObject {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => object,
        }
    }
}

/// Result of offering a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offered {
    /// It is queued.
    Queued,
    /// The state was known already, or the change deletes an unknown object: no handler is notified.
    Known,
    /// A newer state of the object is known.
    Stale,
}

/// How a listed object is compared with the known one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compare {
    /// By uid and version, which identify a state within one history of the server.
    Version,
    /// Byte by byte: after the server's history was replaced by another one, versions repeat.
    Content,
}

/// The newest state of an object, wherever it is.
pub(super) enum Newest {
    Present(AnyObject),
    /// Present, in a state that the newest list did not show: its version cannot be compared with later ones.
    Unconfirmed(AnyObject),
    /// Deleted, at this version if it is known.
    Gone(ResourceVersion),
    Unknown,
}

/// Decides whether a change is news, given the newest known state.
pub(super) fn judge(change: Change, newest: Newest) -> (Option<Delta>, Offered) {
    let queued = |delta| (Some(delta), Offered::Queued);
    let version = change.object().resource_version();
    let stale = match &newest {
        Newest::Present(old) => version.is_older_than(old.resource_version()),
        Newest::Gone(at) => version.is_older_than(at),
        Newest::Unconfirmed(_) | Newest::Unknown => false,
    };
    if stale {
        return (None, Offered::Stale);
    }
    match (change, newest) {
        (Change::Added(object) | Change::Modified(object), Newest::Present(old))
            if is_known(&old, &object) =>
        {
            (None, Offered::Known)
        }
        (Change::Added(object) | Change::Modified(object), Newest::Unconfirmed(old))
            if is_equal(&old, &object) =>
        {
            (None, Offered::Known)
        }
        (Change::Added(object), _) => queued(Delta::Added(object)),
        (Change::Modified(object), _) => queued(Delta::Updated(object)),
        // Another object of that name: the known one must have been deleted before it, unseen.
        (Change::Deleted(object), Newest::Present(old) | Newest::Unconfirmed(old))
            if !old.is_same(&object) =>
        {
            queued(Delta::Deleted(Deleted::unknown(old)))
        }
        (Change::Deleted(object), Newest::Present(_) | Newest::Unconfirmed(_)) => {
            queued(Delta::Deleted(Deleted::Seen(object)))
        }
        (Change::Deleted(_), Newest::Gone(_) | Newest::Unknown) => (None, Offered::Known),
    }
}

/// Whether a state is known by its uid and version. One whose content cannot be read from its file is to be replaced.
pub(super) fn is_known(old: &AnyObject, new: &AnyObject) -> bool {
    old.is_same_version(new) && !old.is_content_lost()
}

/// Whether two states are equal in identity and content, whatever history of the server they come from.
pub(super) fn is_equal(old: &AnyObject, new: &AnyObject) -> bool {
    old.is_same(new) && old.resource_version() == new.resource_version() && old.is_same_content(new)
}
