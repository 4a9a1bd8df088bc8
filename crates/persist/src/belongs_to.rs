//! The pairs that a log belongs to.

/// The pairs that a log belongs to: the cluster, the resource, the selectors and everything else on which its content depends.
///
/// A log is restored only if it was written for equal pairs. The pairs are not encrypted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BelongsTo {
    pairs: Vec<(String, String)>,
}

impl BelongsTo {
    /// No pairs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a pair. The order of pairs does not matter; a name that is added twice has its last value.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (name.into(), value.into());
        match self.pairs.binary_search_by(|(other, _)| other.cmp(&name)) {
            Ok(at) => self.pairs[at].1 = value,
            Err(at) => self.pairs.insert(at, (name, value)),
        }
        self
    }

    /// Returns the pairs, in the order of their names.
    #[must_use]
    pub fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// Returns the value of a pair.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// Returns the name of the first pair that differs.
    pub(crate) fn difference<'a>(&'a self, other: &'a Self) -> Option<&'a str> {
        let names = self.pairs.iter().chain(&other.pairs).map(|(name, _)| name.as_str());
        names.into_iter().find(|name| self.get(name) != other.get(name))
    }
}
