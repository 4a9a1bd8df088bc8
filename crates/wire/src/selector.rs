//! Label and field selectors, parsed, printed and matched as by kube-apiserver.

mod field;
mod label;
mod syntax;

pub use field::FieldSelector;
pub use field::FieldTerm;
pub use label::LabelSelector;
pub use label::Operator;
pub use label::Requirement;

/// Maximum length of a selector in bytes. Longer ones do not fit into a request line.
pub const MAX_SELECTOR_BYTES: usize = 64 * 1024;

/// Labels or fields that a selector can match.
///
/// Values are borrowed, so that an implementation with a compact encoding needs no map or string.
pub trait Lookup {
    /// The value of a key, if there is one.
    fn lookup(&self, key: &str) -> Option<&str>;
}

impl Lookup for crate::Labels {
    fn lookup(&self, key: &str) -> Option<&str> {
        self.get(key)
    }
}

impl<S: std::hash::BuildHasher> Lookup for std::collections::HashMap<String, String, S> {
    fn lookup(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl Lookup for std::collections::BTreeMap<String, String> {
    fn lookup(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl<K: AsRef<str>, V: AsRef<str>> Lookup for [(K, V)] {
    fn lookup(&self, key: &str) -> Option<&str> {
        self.iter().find(|(k, _)| k.as_ref() == key).map(|(_, v)| v.as_ref())
    }
}

/// A malformed selector. The messages are those of kube-apiserver in a response with status 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectorError {
    /// The selector is longer than [`MAX_SELECTOR_BYTES`].
    #[error("selector has {0} bytes, at most {MAX_SELECTOR_BYTES} are read: use fewer terms")]
    TooLong(usize),
    /// A label selector that is not a list of requirements separated by commas.
    #[error("found '{found}', expected: {expected}")]
    Unexpected {
        /// The token.
        found: String,
        /// The tokens that are allowed there.
        expected: &'static str,
    },
    /// A malformed requirement of a label selector.
    #[error("unable to parse requirement: {0}")]
    Requirement(String),
    /// A term of a field selector without `=`, `==` or `!=`.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    Term {
        /// The whole selector.
        selector: String,
        /// The term.
        term: String,
    },
    /// A backslash before a character that must not be escaped.
    #[error("invalid field selector: invalid escape sequence: {0}")]
    Escape(String),
    /// A `,` or `=` in a value without a backslash.
    #[error("invalid field selector: unescaped character in value: {0}")]
    Unescaped(char),
}

fn bounded(text: &str) -> Result<&str, SelectorError> {
    if text.len() > MAX_SELECTOR_BYTES { Err(SelectorError::TooLong(text.len())) } else { Ok(text) }
}
