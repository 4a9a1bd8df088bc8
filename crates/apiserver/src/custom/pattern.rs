//! Regular expressions of schemas, compiled once for each CRD.

use std::collections::HashMap;

use kube_informer_cel::compile_pattern;
use regex::Regex;
use thiserror::Error;

/// The most distinct expressions in one CRD.
const MAX_PATTERNS: usize = 512;

/// The error of compiling an expression.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub(super) enum PatternError {
    #[error("{0}")]
    Invalid(String),
    #[error("this CRD has more than {MAX_PATTERNS} different expressions")]
    TooMany,
}

/// The expressions of one CRD; equal ones are compiled once.
#[derive(Debug, Default)]
pub(super) struct Patterns(HashMap<String, Result<Regex, PatternError>>);

impl Patterns {
    pub(super) fn get(&mut self, pattern: &str) -> Result<Regex, PatternError> {
        if let Some(known) = self.0.get(pattern) {
            return known.clone();
        }
        if self.0.len() >= MAX_PATTERNS {
            return Err(PatternError::TooMany);
        }
        let compiled = compile_pattern(pattern).map_err(PatternError::Invalid);
        self.0.insert(pattern.to_owned(), compiled.clone());
        compiled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_expressions_is_limited() {
        let mut patterns = Patterns::default();
        assert!(matches!(patterns.get("["), Err(PatternError::Invalid(_))));
        for i in 1..MAX_PATTERNS {
            assert!(patterns.get(&format!("a{i}")).is_ok());
        }
        assert_eq!(patterns.get("b").unwrap_err(), PatternError::TooMany);
        assert!(patterns.get("a1").is_ok());
    }
}
