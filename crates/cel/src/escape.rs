//! Property names as identifiers of expressions.

use crate::syntax::RESERVED;
use std::borrow::Cow;

/// Words of the grammar. Neither they nor those in [`RESERVED`] are identifiers.
const KEYWORDS: [&str; 4] = ["true", "false", "null", "in"];
const SEQUENCES: [(&str, &str); 4] =
    [("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")];

fn is_reserved(word: &str) -> bool {
    KEYWORDS.contains(&word) || RESERVED.contains(&word)
}

/// Returns the identifier of a property, or `None` if expressions cannot name it.
pub(crate) fn escape(name: &str) -> Option<Cow<'_, str>> {
    let first = name.bytes().next()?;
    if first.is_ascii_digit() {
        return None;
    }
    if is_reserved(name) {
        return Some(Cow::Owned(format!("__{name}__")));
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-/".contains(&b)) {
        return None;
    }
    if !name.contains(['.', '-', '/']) && !name.contains("__") {
        return Some(Cow::Borrowed(name));
    }
    let mut out = String::with_capacity(name.len() + 16);
    let mut rest = name;
    'next: while let Some(c) = rest.chars().next() {
        for (plain, sequence) in SEQUENCES {
            if let Some(after) = rest.strip_prefix(plain) {
                out.push_str(sequence);
                rest = after;
                continue 'next;
            }
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    Some(Cow::Owned(out))
}

/// Returns the property of an identifier, or `None` if the identifier has an unknown escape sequence.
pub(crate) fn unescape(identifier: &str) -> Option<Cow<'_, str>> {
    if !identifier.contains("__") {
        return Some(Cow::Borrowed(identifier));
    }
    let mut out = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while let Some(start) = rest.find("__") {
        let Some((word, length)) = sequence(&rest[start..]) else {
            // Not a sequence from here; the next underscore may start one.
            out.push_str(&rest[..=start]);
            rest = &rest[start + 1..];
            continue;
        };
        out.push_str(&rest[..start]);
        match SEQUENCES.iter().find(|(_, sequence)| sequence.trim_matches('_') == word) {
            Some((plain, _)) => out.push_str(plain),
            None if is_reserved(word) && length == identifier.len() => out.push_str(word),
            None => return None,
        }
        rest = &rest[start + length..];
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

/// Returns the word between two pairs of underscores at the start of `text`, and the length of the whole.
fn sequence(text: &str) -> Option<(&str, usize)> {
    let inner = &text[2..];
    let end = inner.find('_')?;
    (end > 0 && inner[end..].starts_with("__")).then(|| (&inner[..end], end + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_identifiers_and_back() {
        for (name, identifier) in [
            ("a", "a"),
            ("a.b", "a__dot__b"),
            ("a-b/c", "a__dash__b__slash__c"),
            ("a__b", "a__underscores__b"),
            ("namespace", "__namespace__"),
            ("_a", "_a"),
            ("___", "__underscores___"),
        ] {
            assert_eq!(escape(name).as_deref(), Some(identifier), "{name}");
            assert_eq!(unescape(identifier).as_deref(), Some(name), "{identifier}");
        }
        for name in ["", "1a", "a b", "é", "a$"] {
            assert_eq!(escape(name), None, "{name}");
        }
        for identifier in ["a__nothing__b", "a__namespace__"] {
            assert_eq!(unescape(identifier), None, "{identifier}");
        }
    }
}
