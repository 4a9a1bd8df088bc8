//! Resource versions.

use std::{cmp::Ordering, fmt, sync::Arc};

/// The resource version of an object or a collection, as the server sent it.
///
/// The versions of Kubernetes are decimal numbers of one sequence, and since 1.35 clients may compare them. A version that
/// is not such a number equals itself and is neither older nor newer than any other, so that no change counts as stale
/// because of it.
///
/// ```
/// use kube_informer_wire::ResourceVersion;
///
/// let (nine, ten) = (ResourceVersion::from("9"), ResourceVersion::from("10"));
/// assert!(nine < ten);
/// let opaque = ResourceVersion::from("v1-abc");
/// assert!(!(opaque < ten) && !(opaque > ten) && opaque == opaque.clone());
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResourceVersion(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Number(u64),
    /// Anything but a decimal u64 without leading zeros; empty if the server sent no version.
    Opaque(Arc<str>),
}

impl ResourceVersion {
    /// The number, if the version is one.
    pub fn number(&self) -> Option<u64> {
        match self.0 {
            Repr::Number(n) => Some(n),
            Repr::Opaque(_) => None,
        }
    }

    /// Whether the server sent no version.
    pub fn is_unset(&self) -> bool {
        matches!(&self.0, Repr::Opaque(text) if text.is_empty())
    }

    /// The version of an object that has none.
    pub fn unset() -> Self {
        Self(Repr::Opaque(Arc::from("")))
    }

    /// Whether this version is known to be older than `other`: both are numbers and this one is smaller.
    pub fn is_older_than(&self, other: &Self) -> bool {
        matches!(self.partial_cmp(other), Some(Ordering::Less))
    }
}

impl From<u64> for ResourceVersion {
    fn from(number: u64) -> Self {
        Self(Repr::Number(number))
    }
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        let canonical = !text.starts_with(['0', '+']) || text == "0";
        match text.parse::<u64>() {
            Ok(number) if canonical => Self(Repr::Number(number)),
            _ => Self(Repr::Opaque(text.into())),
        }
    }
}

impl PartialOrd for ResourceVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (&self.0, &other.0) {
            (Repr::Number(a), Repr::Number(b)) => Some(a.cmp(b)),
            (a, b) => (a == b).then_some(Ordering::Equal),
        }
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Number(n) => write!(f, "{n}"),
            Repr::Opaque(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_unchanged() {
        for text in ["0", "1", "18446744073709551615", "18446744073709551616", "007", "+5", "abc", ""] {
            assert_eq!(ResourceVersion::from(text).to_string(), text);
        }
        assert_eq!(ResourceVersion::from("007").number(), None);
        assert!(ResourceVersion::from("").is_unset());
        assert_eq!(size_of::<ResourceVersion>(), 2 * size_of::<usize>(), "every cached object has one");
    }

    #[test]
    fn only_numbers_have_an_order() {
        assert!(ResourceVersion::from("9").is_older_than(&ResourceVersion::from("10")));
        assert!(!ResourceVersion::from("x").is_older_than(&ResourceVersion::from("10")));
        assert!(!ResourceVersion::from("9").is_older_than(&ResourceVersion::from("x")));
        let compare = |a: &str, b: &str| ResourceVersion::from(a).partial_cmp(&ResourceVersion::from(b));
        assert_eq!((compare("x", "x"), compare("x", "y")), (Some(Ordering::Equal), None));
    }
}
