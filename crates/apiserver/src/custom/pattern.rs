//! Regular expressions of schemas: with limits, and with the syntax of Go.

use std::collections::HashMap;

use regex::{Regex, RegexBuilder};
use thiserror::Error;

/// The most memory of one compiled expression. Matching takes time linear in the text for every expression.
const MAX_COMPILED: usize = 512 * 1024;
/// The length of the longest expression.
const MAX_LENGTH: usize = 4 * 1024;
/// The most distinct expressions in one CRD.
const MAX_PATTERNS: usize = 512;

/// The error of compiling an expression.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub(super) enum PatternError {
    #[error("{0}")]
    Syntax(String),
    #[error("it is longer than {MAX_LENGTH} bytes")]
    TooLong,
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
        let compiled = compile(pattern);
        self.0.insert(pattern.to_owned(), compiled.clone());
        compiled
    }
}

fn compile(pattern: &str) -> Result<Regex, PatternError> {
    if pattern.len() > MAX_LENGTH {
        return Err(PatternError::TooLong);
    }
    let mut builder = RegexBuilder::new(&translate(pattern));
    builder.size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED).nest_limit(64);
    builder.build().map_err(|e| PatternError::Syntax(first_line(&e)))
}

/// Returns the message without the excerpt of the expression above it.
fn first_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let reason = text.lines().find_map(|line| line.strip_prefix("error: "));
    reason.map_or_else(|| text.lines().next().unwrap_or_default().to_owned(), str::to_owned)
}

/// Translates Go syntax to that of the `regex` crate: in Go, `\d`, `\w`, `\s` and `\b` are ASCII-only, and character classes have no
/// set operators.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    // The start of the open character class; a `]` right after it is an ordinary character.
    let mut class_start: Option<usize> = None;
    while let Some(c) = chars.next() {
        match (c, class_start) {
            ('\\', class) => match chars.next() {
                None => out.push('\\'),
                Some(escaped) => push_escaped(&mut out, escaped, class.is_some()),
            },
            ('[', None) => {
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if chars.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
                class_start = Some(out.len());
            }
            ('[', Some(_)) if chars.peek() == Some(&':') => out.push('['),
            (':', Some(_)) if chars.peek() == Some(&']') && named_class_is_open(&out) => {
                out.push_str(":]");
                chars.next();
            }
            ('[' | '&' | '~', Some(_)) => {
                out.push('\\');
                out.push(c);
            }
            (']', Some(_)) => {
                out.push(']');
                class_start = None;
            }
            (c, _) => out.push(c),
        }
    }
    out
}

fn named_class_is_open(out: &str) -> bool {
    out.rfind("[:").is_some_and(|at| !out[at..].contains(":]"))
}

fn push_escaped(out: &mut String, escaped: char, in_class: bool) {
    let (inside, negated) = match escaped {
        'd' => ("0-9", false),
        'D' => ("0-9", true),
        'w' => ("0-9A-Za-z_", false),
        'W' => ("0-9A-Za-z_", true),
        's' => ("\\t\\n\\f\\r ", false),
        'S' => ("\\t\\n\\f\\r ", true),
        'b' if !in_class => return out.push_str("(?-u:\\b)"),
        'B' if !in_class => return out.push_str("(?-u:\\B)"),
        other => {
            out.push('\\');
            return out.push(other);
        }
    };
    match (negated, in_class) {
        (false, true) => out.push_str(inside),
        (false, false) => out.push_str(&format!("[{inside}]")),
        (true, _) => out.push_str(&format!("[^{inside}]")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        compile(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}")).is_match(text)
    }

    #[test]
    fn escaped_classes_are_ascii_as_in_go() {
        assert!(matches(r"^\d+$", "12") && !matches(r"^\d+$", "١٢"));
        assert!(matches(r"^[\w-]+$", "a-b_9") && !matches(r"^\w+$", "é"));
        assert!(matches(r"^[^\s]+$", "é") && matches(r"^\S+$", "é") && !matches(r"^[\S]$", " "));
        assert!(matches(r"\bx\b", "a x b") && !matches(r"\bx\b", "axb"));
    }

    #[test]
    fn operators_of_the_regex_crate_are_escaped() {
        assert!(matches(r"^[a&&b]+$", "a&b"));
        assert!(matches(r"^[[x]+$", "[x"));
        assert!(matches(r"^[]a]+$", "]a") && matches(r"^[^]a]+$", "b"));
        assert!(matches(r"^[[:alpha:]_]+$", "aZ_") && !matches(r"^[[:alpha:]_]+$", "1"));
        assert!(matches(r"^\/x$", "/x"));
    }

    #[test]
    fn invalid_and_expensive_expressions_are_rejected() {
        assert!(matches!(compile("["), Err(PatternError::Syntax(_))));
        assert!(matches!(compile(r"(\pL{1000}){1000}"), Err(PatternError::Syntax(_))));
        assert_eq!(compile(&"a".repeat(MAX_LENGTH + 1)).unwrap_err(), PatternError::TooLong);
        let mut patterns = Patterns::default();
        for i in 0..MAX_PATTERNS {
            assert!(patterns.get(&format!("a{i}")).is_ok());
        }
        assert_eq!(patterns.get("b").unwrap_err(), PatternError::TooMany);
        assert!(patterns.get("a0").is_ok());
    }
}
