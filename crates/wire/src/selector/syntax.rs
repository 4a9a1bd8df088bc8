//! Tokens of a label selector, and rules for keys and values.

/// A token of a label selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A key, a value, `in` or `notin`, depending on its place.
    Word(&'a str),
    /// `!`, `=`, `==`, `!=`, `(`, `)`, `,`, `>`, `<`.
    Symbol(&'static str),
    End,
}

impl Token<'_> {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Word(text) => text,
            Self::Symbol(text) => text,
            Self::End => "",
        }
    }
}

/// Longer symbols first: `==` is one symbol.
const SYMBOLS: [&str; 9] = ["!=", "==", "=", "!", "(", ")", ",", ">", "<"];

/// Splits a text into tokens.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    pub(super) fn peek(&self) -> Token<'a> {
        self.clone().next()
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_start_matches(is_space);
        if self.rest.is_empty() {
            return Token::End;
        }
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| self.rest.starts_with(**symbol)) {
            self.rest = &self.rest[symbol.len()..];
            return Token::Symbol(symbol);
        }
        let end = self.rest.find(|c| is_space(c) || "=!(),><".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Token::Word(word)
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation \
                         is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
                          and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
                          '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const PREFIX_RULE: &str = "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
                           '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex \
                           used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// The error in a label key, if any. A key is an optional DNS subdomain with `/`, then a name.
pub(super) fn key_error(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if name.contains('/') {
        return Some(format!(
            "a valid label key {NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ));
    }
    match prefix {
        Some("") => return Some("prefix part must be non-empty".to_owned()),
        Some(prefix) if !is_subdomain(prefix) => {
            return Some(PREFIX_RULE.to_owned());
        }
        _ => {}
    }
    match name {
        "" => Some(format!("name part must be non-empty; name part {NAME_RULE}")),
        name if name.len() > 63 => Some("name part must be no more than 63 bytes".to_owned()),
        name if !is_name(name) => Some(format!("name part {NAME_RULE}")),
        _ => None,
    }
}

/// The error in a label value, if any. A value is empty, or like the name of a key.
pub(super) fn value_error(value: &str) -> Option<String> {
    if value.len() > 63 {
        Some("must be no more than 63 bytes".to_owned())
    } else if value.is_empty() || is_name(value) {
        None
    } else {
        Some(VALUE_RULE.to_owned())
    }
}

fn is_name(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.chars().all(inner)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
}

fn is_subdomain(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let label = |part: &str| {
        part.starts_with(edge) && part.ends_with(edge) && part.chars().all(|c| edge(c) || c == '-')
    };
    text.len() <= 253 && text.split('.').all(label)
}
