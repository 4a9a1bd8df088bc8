//! Places in an object that a response names.

use std::fmt;

/// Places that are named; further ones are not.
const MAX_PLACES: usize = 1000;
/// Bytes of their texts, about.
const MAX_BYTES: usize = 1 << 20;

/// Paths of fields, not more than a response can hold: a client can send a million unknown fields below one long key.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    paths: Vec<String>,
    bytes: usize,
}

impl Reported {
    /// Notes a path, unless there are too many.
    pub(crate) fn push(&mut self, path: impl fmt::Display) {
        if self.paths.len() < MAX_PLACES && self.bytes < MAX_BYTES {
            let path = path.to_string();
            self.bytes += path.len();
            self.paths.push(path);
        }
    }

    pub(crate) fn into_paths(self) -> Vec<String> {
        self.paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_limited_in_number_and_length() {
        let noted = |count: usize, path: &str| {
            let mut reported = Reported::default();
            (0..count).for_each(|_| reported.push(path));
            reported.into_paths().len()
        };
        assert_eq!(noted(3, "a.b"), 3);
        assert_eq!(noted(1_000_000, "a.b"), MAX_PLACES);
        assert_eq!(noted(100, &"a".repeat(MAX_BYTES / 2)), 2);
    }
}
