//! Keys of objects.

use std::{borrow::Borrow, fmt, hash, str::FromStr, sync::Arc};

/// Namespace and name of an object.
///
/// 1. `Display` is `namespace/name`, or `name` for a cluster-scoped object; [`FromStr`] parses that.
/// 2. The order of keys is the order in which an API server lists the objects: the bytes of `namespace/name`.
///    Because `-` sorts before `/`, namespace `a-b` comes before namespace `a`.
/// 3. Cloning is a reference count.
///
/// ```
/// use kube_informer_wire::ObjectKey;
///
/// let key = ObjectKey::namespaced("shop", "cart-0");
/// assert_eq!(key.to_string(), "shop/cart-0");
/// assert_eq!((key.namespace(), key.name()), (Some("shop"), "cart-0"));
/// assert!(ObjectKey::namespaced("a-b", "x") < ObjectKey::namespaced("a", "x"));
/// ```
#[derive(Clone)]
pub struct ObjectKey {
    /// Two words, because every cached object has one: the position of the `/` is found again when it is needed.
    text: Arc<str>,
}

impl ObjectKey {
    /// The key of an object; an empty namespace counts as none.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        match namespace {
            Some(namespace) if !namespace.is_empty() => Self::namespaced(namespace, name),
            _ => Self::cluster(name),
        }
    }

    /// The key of an object in a namespace.
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        Self { text: [namespace, "/", name].concat().into() }
    }

    /// The key of a cluster-scoped object.
    pub fn cluster(name: &str) -> Self {
        Self { text: name.into() }
    }

    /// The namespace, or `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        self.parts().map(|(namespace, _)| namespace)
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.parts().map_or(&self.text, |(_, name)| name)
    }

    /// Bytes on the heap, shared or not.
    pub fn heap_size(&self) -> usize {
        2 * size_of::<usize>() + self.text.len()
    }

    /// Namespace and name of a key that has both. A namespace is never empty.
    fn parts(&self) -> Option<(&str, &str)> {
        let slash = memchr::memchr(b'/', self.text.as_bytes()).filter(|&slash| slash > 0)?;
        Some((&self.text[..slash], &self.text[slash + 1..]))
    }

    /// `namespace/name`, or `name`.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl PartialEq for ObjectKey {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for ObjectKey {}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl hash::Hash for ObjectKey {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

/// Maps with `ObjectKey`s can be looked up by a `namespace/name` string slice.
impl Borrow<str> for ObjectKey {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl From<(&str, &str)> for ObjectKey {
    fn from((namespace, name): (&str, &str)) -> Self {
        Self::new(Some(namespace), name)
    }
}

impl FromStr for ObjectKey {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            None if !text.is_empty() => Ok(Self::cluster(text)),
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self::namespaced(namespace, name))
            }
            _ => Err(ParseKeyError { text: text.into() }),
        }
    }
}

/// A string that is not an object key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an object key; write `name` or `namespace/name`")]
pub struct ParseKeyError {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for text in ["node-1", "shop/cart-0"] {
            assert_eq!(text.parse::<ObjectKey>().unwrap().to_string(), text);
        }
        for bad in ["", "/", "a/", "/b", "a/b/c"] {
            assert!(bad.parse::<ObjectKey>().is_err(), "{bad}");
        }
        assert_eq!(ObjectKey::new(Some(""), "n"), ObjectKey::cluster("n"));
        assert_eq!(size_of::<ObjectKey>(), 2 * size_of::<usize>());
    }

    #[test]
    fn equal_keys_have_equal_parts() {
        for (key, namespace, name) in [
            (ObjectKey::namespaced("a", "b"), Some("a"), "b"),
            (ObjectKey::cluster("a/b"), Some("a"), "b"),
            (ObjectKey::namespaced("a", ""), Some("a"), ""),
            (ObjectKey::cluster("/b"), None, "/b"),
        ] {
            assert_eq!((key.namespace(), key.name()), (namespace, name), "{key}");
        }
    }

    #[test]
    fn order_is_the_storage_order_of_the_server() {
        let mut keys = [("a", "x"), ("ab", "x"), ("a-b", "x"), ("a", "w")].map(ObjectKey::from);
        keys.sort();
        assert_eq!(keys.map(|k| k.to_string()), ["a-b/x", "a/w", "a/x", "ab/x"]);
    }
}
