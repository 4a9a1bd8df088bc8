//! Shard selectors (`shardSelector`, KEP-5866): objects whose uid or namespace has a hash in one of some ranges.
//!
//! kube-apiserver parses them as CEL and permits `shardRange()` and `||` only. Here exactly that subset is parsed.

use std::fmt;

/// Objects whose uid or namespace has a hash in one of some ranges; all objects by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShardSelector {
    field: ShardField,
    /// Empty: all objects.
    ranges: Vec<Range>,
}

/// The hashed field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ShardField {
    #[default]
    Uid,
    Namespace,
}

impl ShardField {
    const ALL: [Self; 2] = [Self::Uid, Self::Namespace];

    fn path(self) -> &'static str {
        match self {
            Self::Uid => "object.metadata.uid",
            Self::Namespace => "object.metadata.namespace",
        }
    }
}

/// The hashes from `start` to before `end`, which may be 2^64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    start: u128,
    end: u128,
}

/// A text that is not a shard selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid shard selector: {0}")]
pub struct ShardSelectorError(String);

impl ShardSelector {
    /// Parses a selector.
    ///
    /// ```
    /// use kube_embedded_apiserver::watch_cache::ShardSelector;
    ///
    /// let first_half = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";
    /// assert_eq!(ShardSelector::parse(first_half)?.to_string(), first_half);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, ShardSelectorError> {
        if text.trim().is_empty() {
            let why = "empty shard selector is not allowed; omit the parameter for unfiltered lists";
            return Err(ShardSelectorError(why.to_owned()));
        }
        let mut parser = Parser { rest: text };
        let calls = parser.alternatives().map_err(ShardSelectorError)?;
        if let Some(next) = parser.peek() {
            return Err(ShardSelectorError(unexpected(next)));
        }
        let field = calls.first().map(|(field, _)| *field).unwrap_or_default();
        if let Some((other, _)) = calls.iter().find(|(other, _)| *other != field) {
            let (field, other) = (field.path(), other.path());
            let why = format!("all shard ranges must use the same field, got {field:?} and {other:?}");
            return Err(ShardSelectorError(why));
        }
        Ok(Self { field, ranges: calls.into_iter().map(|(_, range)| range).collect() })
    }

    /// Whether it selects all objects.
    pub fn is_everything(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The hashed field.
    pub(crate) fn field(&self) -> ShardField {
        self.field
    }

    /// Whether it selects objects with this value of the field.
    pub(crate) fn matches(&self, value: &str) -> bool {
        let hash = u128::from(fnv1a(value));
        self.is_everything() || self.ranges.iter().any(|range| (range.start..range.end).contains(&hash))
    }
}

impl fmt::Display for ShardSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Range { start, end }) in self.ranges.iter().enumerate() {
            let separator = if index == 0 { "" } else { " || " };
            write!(f, "{separator}shardRange({}, '{start:#018x}', '{end:#018x}')", self.field.path())?;
        }
        Ok(())
    }
}

/// The 64-bit FNV-1a hash.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn unexpected(next: char) -> String {
    format!("CEL parse error: unexpected {next:?}; only shardRange() and || are allowed")
}

/// Reads a selector from the front of a text.
struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    /// `call || call || ...`
    fn alternatives(&mut self) -> Result<Vec<(ShardField, Range)>, String> {
        let mut calls = Vec::new();
        loop {
            calls.push(self.call()?);
            if !self.accept("||") {
                return Ok(calls);
            }
        }
    }

    /// `shardRange(path, 'start', 'end')`
    fn call(&mut self) -> Result<(ShardField, Range), String> {
        let function = self.path();
        if function != "shardRange" {
            return Err(match self.peek() {
                Some(next) if function.is_empty() => unexpected(next),
                Some('(') => {
                    format!("unsupported function {function:?}; only shardRange() and || are allowed")
                }
                _ => "expected shardRange() call or || operator".to_owned(),
            });
        }
        self.expect("(")?;
        let path = self.path();
        let field = ShardField::ALL.into_iter().find(|field| field.path() == path).ok_or_else(|| {
            format!(
                "unsupported field path {path:?}; supported: object.metadata.uid, object.metadata.namespace"
            )
        })?;
        self.expect(",")?;
        let (start, start_text) = self.bound("hexStart")?;
        self.expect(",")?;
        let (end, end_text) = self.bound("hexEnd")?;
        self.expect(")")?;
        if start >= end {
            return Err(format!("shard range start {start_text} must be less than end {end_text}"));
        }
        Ok((field, Range { start, end }))
    }

    /// A string literal with a hexadecimal number of 16 digits, or 2^64.
    fn bound(&mut self, name: &str) -> Result<(u128, &'a str), String> {
        let quote = self.peek().filter(|next| matches!(next, '\'' | '"'));
        let quote = quote.ok_or_else(|| format!("{name} must be a string literal (e.g. '0xff')"))?;
        let inner = &self.rest[1..];
        let end = inner.find(quote).ok_or_else(|| "CEL parse error: unterminated string".to_owned())?;
        let text = &inner[..end];
        self.rest = &inner[end + 1..];
        let digits =
            text.strip_prefix("0x").ok_or_else(|| format!("{name} must have '0x' prefix, got {text:?}"))?;
        if let Some(other) = digits.chars().find(|c| !matches!(c, '0'..='9' | 'a'..='f')) {
            return Err(format!("{name}: invalid hex character {other:?} in {text:?}"));
        }
        match digits.len() {
            0 => Err(format!("{name}: hex value is required after '0x'")),
            16 => Ok((u128::from_str_radix(digits, 16).unwrap_or_default(), text)),
            17 if text == "0x10000000000000000" => Ok((1 << 64, text)),
            17 => {
                Err(format!("{name}: 17-digit hex value must be '0x10000000000000000' (2^64), got {text:?}"))
            }
            18.. => Err(format!("{name}: hex value too long ({} chars, max 17): {digits:?}", digits.len())),
            _ => Err(format!(
                "{name} must be a 0x-prefixed 16-digit hex value, got {text:?} (did you mean \"0x{digits:0>16}\"?)"
            )),
        }
    }

    /// A name, or names separated by dots; empty if there is none.
    fn path(&mut self) -> &'a str {
        self.skip_space();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (path, rest) = self.rest.split_at(end);
        self.rest = rest;
        path
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.accept(token) {
            return Ok(());
        }
        Err(match self.peek() {
            Some(next) => format!("CEL parse error: expected {token:?}, found {next:?}"),
            None => format!("CEL parse error: expected {token:?} at the end"),
        })
    }

    fn accept(&mut self, token: &str) -> bool {
        self.skip_space();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.rest.chars().next()
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: &str = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";
    const HIGH: &str = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')";

    #[test]
    fn hashes_are_those_of_fnv_1a() {
        // Test vectors of the authors of FNV.
        assert_eq!(fnv1a(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn ranges_divide_all_values() {
        let [low, high] = [LOW, HIGH].map(|text| ShardSelector::parse(text).unwrap());
        assert!(!low.matches("foobar") && high.matches("foobar"));
        assert!(!low.matches("a") && high.matches("a"));
        let both = ShardSelector::parse(&format!(" {LOW}||{HIGH} ")).unwrap();
        for number in 0..100 {
            let value = number.to_string();
            assert!(low.matches(&value) != high.matches(&value) && both.matches(&value), "{value}");
        }
        assert_eq!(both.to_string(), format!("{LOW} || {HIGH}"));
        assert!(ShardSelector::default().matches("anything"));
        let exact = "shardRange(object.metadata.namespace, \"0xaf63dc4c8601ec8c\", '0xaf63dc4c8601ec8d')";
        let exact = ShardSelector::parse(exact).unwrap();
        assert!(exact.matches("a") && !exact.matches("b"), "the start is included, the end is not");
        assert_eq!(exact.field(), ShardField::Namespace);
    }

    #[test]
    fn everything_else_is_rejected() {
        let range = |arguments: &str| format!("shardRange({arguments})");
        for (text, why) in [
            ("  ".to_owned(), "empty shard selector"),
            ("true".to_owned(), "expected shardRange() call"),
            ("hash(object.metadata.uid)".to_owned(), "unsupported function \"hash\""),
            (format!("{LOW} && {HIGH}"), "unexpected '&'"),
            (format!("!{LOW}"), "unexpected '!'"),
            (format!("{LOW} ||"), "expected shardRange() call"),
            (range("object.metadata.name, '0x0', '0x1'"), "unsupported field path \"object.metadata.name\""),
            (range("object.metadata.uid, '0x0', '0x1'"), "did you mean \"0x0000000000000000\"?"),
            (range("object.metadata.uid, 0, 1"), "hexStart must be a string literal"),
            (range("object.metadata.uid, '0000000000000000', '0x'"), "hexStart must have '0x' prefix"),
            (range("object.metadata.uid, '0x000000000000000A', '0x'"), "invalid hex character 'A'"),
            (range("object.metadata.uid, '0x', '0x'"), "hex value is required"),
            (range("object.metadata.uid, '0x0000000000000000', '0x20000000000000000'"), "17-digit hex value"),
            (range("object.metadata.uid, '0x0000000000000001', '0x0000000000000001'"), "must be less than"),
            (range("object.metadata.uid, '0x0000000000000001"), "unterminated string"),
            (range("object.metadata.uid"), "expected \",\""),
            (format!("{LOW} || {}", HIGH.replace("uid", "namespace")), "must use the same field"),
        ] {
            let error = ShardSelector::parse(&text).unwrap_err().to_string();
            assert!(error.starts_with("invalid shard selector: ") && error.contains(why), "{text}: {error}");
        }
    }
}
