//! Where in etcd everything lies.

/// Names of keys under one prefix.
///
/// Two keys are ours and no object's; both begin with a dot, which no group or resource does. `/.sequence` is written with every object,
/// in the same transaction: its revision is the newest of this store, whatever else happens in the same etcd. `/.epoch` is written once
/// and tells one store from another in its place.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    prefix: String,
}

impl Keys {
    /// `prefix` begins with a slash and ends without one.
    pub(super) fn new(prefix: String) -> Self {
        Self { prefix }
    }

    pub(super) fn sequence(&self) -> String {
        format!("{}/.sequence", self.prefix)
    }

    pub(super) fn epoch(&self) -> String {
        format!("{}/.epoch", self.prefix)
    }

    /// The key in etcd of a storage key.
    pub(super) fn full(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// The storage key of a key in etcd, unless it is one of our own.
    pub(super) fn short<'k>(&self, full: &'k [u8]) -> Option<&'k str> {
        let key = std::str::from_utf8(full).ok()?.strip_prefix(&self.prefix)?;
        (!key.starts_with("/.")).then_some(key)
    }

    /// The first key after all that begin with a storage prefix, which ends in a slash.
    pub(super) fn end(&self, prefix: &str) -> String {
        format!("{}{}0", self.prefix, prefix.trim_end_matches('/')) // the byte after `/`
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_go_in_and_come_out() {
        let keys = Keys::new("/x".to_owned());
        assert_eq!(keys.full("/pods/a/b"), "/x/pods/a/b");
        assert_eq!(keys.short(b"/x/pods/a/b"), Some("/pods/a/b"));
        assert_eq!(
            (keys.short(b"/y/pods"), keys.short(b"/x/.epoch"), keys.short(b"/x/\xff")),
            (None, None, None)
        );
        assert_eq!((keys.end("/pods/"), keys.end("/")), ("/x/pods0".to_owned(), "/x0".to_owned()));
        assert!(keys.full("/pods/zzz") < keys.end("/pods/") && keys.sequence() < keys.end("/"));
    }
}
