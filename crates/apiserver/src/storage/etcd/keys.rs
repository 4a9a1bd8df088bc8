//! The layout of keys in etcd.

/// The keys under one prefix.
///
/// Two keys are not objects; both begin with a dot, which no group or resource does. `/.sequence` is written with every object, in the
/// same transaction: its revision is the newest of this store, regardless of other writes to the same etcd. `/.epoch` is written once
/// and identifies the store, to detect that it was replaced by another one.
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

    /// Returns the key in etcd of a storage key.
    pub(super) fn full(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// Returns the storage key of a key in etcd; `None` if it is not an object.
    pub(super) fn short<'k>(&self, full: &'k [u8]) -> Option<&'k str> {
        let key = std::str::from_utf8(full).ok()?.strip_prefix(&self.prefix)?;
        (!key.starts_with("/.")).then_some(key)
    }

    /// Returns the end of the range of a storage prefix, which ends in a slash.
    pub(super) fn end(&self, prefix: &str) -> String {
        format!("{}{}0", self.prefix, prefix.trim_end_matches('/')) // the byte after `/`
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_keys_map_to_etcd_keys_and_back() {
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
