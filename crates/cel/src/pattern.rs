//! Regular expressions in the syntax of Go, with limits. Matching takes time linear in the text.

use regex::{Regex, RegexBuilder};

/// The most memory of one compiled expression.
const MAX_COMPILED: usize = 512 * 1024;
/// The length of the longest expression.
const MAX_LENGTH: usize = 4 * 1024;
/// The deepest nesting of groups.
const MAX_NESTING: u32 = 64;

/// Compiles an expression in the syntax of Go.
///
/// # Errors
///
/// The expression is invalid, longer than 4 KiB, or takes more than 512 KiB of memory. The message has no excerpt of it.
pub fn compile_pattern(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > MAX_LENGTH {
        return Err(format!("it is longer than {MAX_LENGTH} bytes"));
    }
    let mut builder = RegexBuilder::new(&translate(pattern));
    builder.size_limit(MAX_COMPILED).dfa_size_limit(2 * MAX_COMPILED).nest_limit(MAX_NESTING);
    builder.build().map_err(|e| reason(&e))
}

/// Returns the message without the excerpt of the expression above it.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let reason = text.lines().find_map(|line| line.strip_prefix("error: "));
    match reason {
        // As Go says it.
        Some("unclosed group") => "missing closing )".to_owned(),
        Some("unopened group") => "unexpected )".to_owned(),
        Some(reason) => reason.to_owned(),
        None => text.lines().next().unwrap_or_default().to_owned(),
    }
}

/// Translates Go syntax to that of the `regex` crate: in Go, `\d`, `\w`, `\s` and `\b` are ASCII-only, character classes have no set
/// operators, `\Q` quotes, and a brace that starts no repetition is an ordinary character.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    let mut in_class = false;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = match c {
            '\\' if after.starts_with('Q') && !in_class => push_quoted(&mut out, &after[1..]),
            '\\' => push_escaped(&mut out, after, in_class),
            '[' if !in_class => {
                in_class = true;
                open_class(&mut out, after)
            }
            '[' if after.starts_with(':') => match after.find(":]") {
                Some(end) => {
                    out.push_str(&rest[..end + 3]);
                    &rest[end + 3..]
                }
                None => push_literal(&mut out, c, after),
            },
            '[' | '&' | '~' if in_class => push_literal(&mut out, c, after),
            ']' if in_class => {
                in_class = false;
                out.push(']');
                after
            }
            '{' if !in_class && !is_repetition(after) => push_literal(&mut out, c, after),
            '}' if !in_class && !out.ends_with(|c: char| c.is_ascii_digit() || c == ',') => {
                push_literal(&mut out, c, after)
            }
            c => {
                out.push(c);
                after
            }
        };
    }
    out
}

fn push_literal<'r>(out: &mut String, c: char, after: &'r str) -> &'r str {
    out.push('\\');
    out.push(c);
    after
}

/// A `]` right after the start of a class is an ordinary character.
fn open_class<'r>(out: &mut String, after: &'r str) -> &'r str {
    out.push('[');
    let mut rest = after;
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    if let Some(after) = rest.strip_prefix(']') {
        out.push_str("\\]");
        rest = after;
    }
    rest
}

fn push_quoted<'r>(out: &mut String, after: &'r str) -> &'r str {
    let (quoted, rest) = after.split_once("\\E").unwrap_or((after, ""));
    out.push_str(&regex::escape(quoted));
    rest
}

/// Returns whether what follows a brace makes it `{2}`, `{2,}` or `{2,3}`.
fn is_repetition(after: &str) -> bool {
    let Some((inner, _)) = after.split_once('}') else { return false };
    let (low, high) = inner.split_once(',').unwrap_or((inner, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    !low.is_empty() && digits(low) && digits(high)
}

fn push_escaped<'r>(out: &mut String, after: &'r str, in_class: bool) -> &'r str {
    let Some(escaped) = after.chars().next() else {
        out.push('\\');
        return after;
    };
    let rest = &after[escaped.len_utf8()..];
    let (inside, negated) = match escaped {
        'd' => ("0-9", false),
        'D' => ("0-9", true),
        'w' => ("0-9A-Za-z_", false),
        'W' => ("0-9A-Za-z_", true),
        's' => ("\\t\\n\\f\\r ", false),
        'S' => ("\\t\\n\\f\\r ", true),
        'b' if !in_class => {
            out.push_str("(?-u:\\b)");
            return rest;
        }
        'B' if !in_class => {
            out.push_str("(?-u:\\B)");
            return rest;
        }
        other => {
            out.push('\\');
            out.push(other);
            return rest;
        }
    };
    match (negated, in_class) {
        (false, true) => out.push_str(inside),
        (false, false) => out.push_str(&format!("[{inside}]")),
        (true, _) => out.push_str(&format!("[^{inside}]")),
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        compile_pattern(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}")).is_match(text)
    }

    #[test]
    fn escaped_classes_are_ascii_as_in_go() {
        assert!(matches(r"^\d+$", "12") && !matches(r"^\d+$", "١٢"));
        assert!(matches(r"^[\w-]+$", "a-b_9") && !matches(r"^\w+$", "é"));
        assert!(matches(r"^[^\s]+$", "é") && matches(r"^\S+$", "é") && !matches(r"^[\S]$", " "));
        assert!(matches(r"\bx\b", "a x b") && !matches(r"\bx\b", "axb"));
    }

    #[test]
    fn operators_of_the_regex_crate_are_ordinary_characters() {
        assert!(matches(r"^[a&&b]+$", "a&b"));
        assert!(matches(r"^[[x]+$", "[x"));
        assert!(matches(r"^[]a]+$", "]a") && matches(r"^[^]a]+$", "b"));
        assert!(matches(r"^[[:alpha:]_]+$", "aZ_") && !matches(r"^[[:alpha:]_]+$", "1"));
        assert!(matches(r"^\/x$", "/x"));
        assert!(matches(r"^{a}$", "{a}") && matches(r"^a{2}$", "aa") && matches("^a{,2}$", "a{,2}"));
        assert!(matches(r"^\Qa.b\E+$", "a.bb") && !matches(r"^\Qa.b\E$", "axb"));
    }

    #[test]
    fn invalid_and_expensive_expressions_are_rejected() {
        assert!(compile_pattern("[").is_err());
        assert!(compile_pattern(r"(\pL{1000}){1000}").is_err());
        assert!(compile_pattern(&"a".repeat(MAX_LENGTH + 1)).is_err());
        assert!(compile_pattern(&"(".repeat(200)).is_err());
    }
}
