//! Field selectors: `metadata.name=a,status.phase!=Running`.

use std::fmt;
use std::str::FromStr;

use super::{Lookup, SelectorError, bounded};
use crate::ObjectKey;

/// A conjunction of comparisons of fields. The empty one matches everything.
///
/// `Display` is the canonical form, in the order given; parsing it gives an equal selector.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct FieldSelector {
    terms: Box<[FieldTerm]>,
}

/// One comparison of a field selector.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldTerm {
    /// The path of the field.
    pub field: Box<str>,
    /// The value to compare with.
    pub value: Box<str>,
    /// Whether the field must have the value (`=`, `==`) or must not (`!=`).
    pub equal: bool,
}

impl FieldSelector {
    /// The selector that matches everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// A selector of these terms.
    pub fn new(terms: impl IntoIterator<Item = FieldTerm>) -> Self {
        Self { terms: terms.into_iter().collect() }
    }

    /// Selects the object with this key.
    pub(crate) fn of_key(key: &ObjectKey) -> Self {
        let term =
            |field: &str, value: &str| FieldTerm { field: field.into(), value: value.into(), equal: true };
        let namespace = key.namespace().map(|namespace| term("metadata.namespace", namespace));
        Self::new([term("metadata.name", key.name())].into_iter().chain(namespace))
    }

    /// Parses a selector. Empty text and empty terms match everything.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let parts = split_terms(bounded(text)?).into_iter().filter(|part| !part.is_empty());
        let terms: Result<Vec<_>, _> = parts.map(|part| read_term(text, part)).collect();
        Ok(Self { terms: terms?.into() })
    }

    /// A selector that matches what both match.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        match self.is_everything() {
            true => other.clone(),
            false => Self::new(self.terms.into_iter().chain(other.terms.iter().cloned())),
        }
    }

    /// Whether these fields meet every term. A missing field counts as empty.
    pub fn matches<L: Lookup + ?Sized>(&self, fields: &L) -> bool {
        self.terms.iter().all(|term| (fields.lookup(&term.field).unwrap_or("") == &*term.value) == term.equal)
    }

    /// Whether it matches all fields.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The comparisons, in the order given.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// The value that the selector requires of a field, if any.
    pub fn required(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| term.equal && *term.field == *field).map(|term| &*term.value)
    }
}

/// Splits at commas without a backslash before them.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn read_term(selector: &str, term: &str) -> Result<FieldTerm, SelectorError> {
    let Some((field, equal, value)) = split_term(term) else {
        return Err(SelectorError::Term { selector: selector.to_owned(), term: term.to_owned() });
    };
    Ok(FieldTerm { field: field.into(), value: unescape(value)?.into(), equal })
}

/// Splits at the first operator without a backslash before it.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let mut escaped = false;
    for (at, c) in term.char_indices() {
        let rest = &term[at..];
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else {
            for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
                if let Some(value) = rest.strip_prefix(operator) {
                    return Some((&term[..at], equal, value));
                }
            }
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => plain.push(c),
                Some(c) => return Err(SelectorError::Escape(format!("\\{c}"))),
                None => return Err(SelectorError::Escape("\\".to_owned())),
            },
            ',' | '=' => return Err(SelectorError::Unescaped(c)),
            c => plain.push(c),
        }
    }
    Ok(plain)
}

impl FromStr for FieldSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        Self::parse(text)
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{}{}", term.field, if term.equal { "=" } else { "!=" })?;
            for c in term.value.chars() {
                if matches!(c, '\\' | ',' | '=') {
                    f.write_str("\\")?;
                }
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
