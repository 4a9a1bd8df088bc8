//! Tokens of an expression.

use super::source::{Issues, Offset};

/// A token with its place.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) at: u32,
    pub(super) end: u32,
}

/// The kinds of tokens. The text of the last six is in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// Punctuation, an operator, or one of the words `in`, `true`, `false` and `null`.
    Fixed(&'static str),
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Ident,
    EscapedIdent,
    End,
}

/// Longer ones first: the longest match wins.
const FIXED: [&str; 25] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":",
    "+", "*", "/", "%", "",
];
const WORDS: [&str; 4] = ["in", "true", "false", "null"];

/// Splits `text` into tokens, the last of which is `End`. Reports characters that are no token and skips them.
pub(super) fn tokens(text: &[char], issues: &mut Issues) -> Vec<Token> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if matches!(text[at], '\t' | ' ' | '\r' | '\n' | '\u{c}') {
            at += 1;
            continue;
        }
        if text[at..].starts_with(&['/', '/']) {
            at = text[at..].iter().position(|c| *c == '\n').map_or(text.len(), |n| at + n);
            continue;
        }
        match token(&text[at..]) {
            Ok((kind, length)) => {
                out.push(Token { kind, at: offset(at), end: offset(at + length) });
                at += length;
            }
            Err(length) => {
                let bad: String = text[at..at + length].iter().collect();
                report(issues, at, &bad);
                at += length;
            }
        }
    }
    out.push(Token { kind: TokenKind::End, at: offset(at), end: offset(at) });
    out
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn report(issues: &mut Issues, at: usize, bad: &str) {
    let place: Offset = Some(offset(at));
    issues.report(place, format!("Syntax error: token recognition error at: '{bad}'"));
}

/// Returns the token at the start of `text` and its length, or the length of what is not a token.
fn token(text: &[char]) -> Result<(TokenKind, usize), usize> {
    let first = text[0];
    if let Some(found) = string(text) {
        return found;
    }
    if first.is_ascii_digit() || first == '.' && text.get(1).is_some_and(char::is_ascii_digit) {
        return Ok(number(text));
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let length = count(text, |c| c.is_ascii_alphanumeric() || c == '_');
        let word: String = text[..length].iter().collect();
        let fixed = WORDS.iter().find(|fixed| **fixed == word);
        return Ok((fixed.map_or(TokenKind::Ident, |fixed| TokenKind::Fixed(fixed)), length));
    }
    if first == '`' {
        let inner = count(&text[1..], |c| c.is_ascii_alphanumeric() || "_.-/ ".contains(c));
        return match text.get(inner + 1) {
            Some('`') if inner > 0 => Ok((TokenKind::EscapedIdent, inner + 2)),
            _ => Err((inner + 2).min(text.len())),
        };
    }
    let matches = |fixed: &&&str| {
        !fixed.is_empty() && fixed.chars().zip(text).filter(|(a, b)| a == *b).count() == fixed.len()
    };
    match FIXED.iter().find(matches) {
        Some(fixed) => Ok((TokenKind::Fixed(fixed), fixed.len())),
        // A lone `=`, `&` or `|` is reported with the character after it, with which it might have been an operator.
        None if matches!(first, '=' | '&' | '|') => Err(2.min(text.len())),
        None => Err(1),
    }
}

fn count(text: &[char], matches: impl Fn(char) -> bool) -> usize {
    text.iter().take_while(|c| matches(**c)).count()
}

fn number(text: &[char]) -> (TokenKind, usize) {
    let unsigned = |length: usize, kind| match text.get(length) {
        Some('u' | 'U') => (TokenKind::Uint, length + 1),
        _ => (kind, length),
    };
    if text.starts_with(&['0', 'x']) {
        let digits = count(&text[2..], |c| c.is_ascii_hexdigit());
        if digits > 0 {
            return unsigned(digits + 2, TokenKind::Int);
        }
    }
    let whole = count(text, |c| c.is_ascii_digit());
    let mut length = whole;
    let mut float = false;
    if text.get(length) == Some(&'.') {
        let fraction = count(&text[length + 1..], |c| c.is_ascii_digit());
        if fraction > 0 {
            length += 1 + fraction;
            float = true;
        }
    }
    if matches!(text.get(length), Some('e' | 'E')) {
        let sign = usize::from(matches!(text.get(length + 1), Some('+' | '-')));
        let digits = text.get(length + 1 + sign..).map_or(0, |rest| count(rest, |c| c.is_ascii_digit()));
        if digits > 0 {
            length += 1 + sign + digits;
            float = true;
        }
    }
    if float { (TokenKind::Float, length) } else { unsigned(length, TokenKind::Int) }
}

/// Returns the string or bytes literal at the start of `text`, if there is the start of one.
fn string(text: &[char]) -> Option<Result<(TokenKind, usize), usize>> {
    let mut prefix = 0;
    let bytes = matches!(text[0], 'b' | 'B');
    prefix += usize::from(bytes);
    let raw = matches!(text.get(prefix), Some('r' | 'R'));
    prefix += usize::from(raw);
    let quote = *text.get(prefix).filter(|c| matches!(c, '"' | '\''))?;
    let kind = if bytes { TokenKind::Bytes } else { TokenKind::String };
    let body = &text[prefix..];
    let length = if body.starts_with(&[quote; 3]) {
        // Without its end, the three quotes are an empty string and the start of another.
        Ok(long_string(body, quote, raw).unwrap_or(2))
    } else {
        short_string(body, quote, raw)
    };
    Some(match length {
        Ok(length) => Ok((kind, prefix + length)),
        // Without its end, the prefix is an identifier.
        Err(_) if prefix > 0 => Ok((TokenKind::Ident, prefix)),
        Err(length) => Err(length),
    })
}

fn long_string(body: &[char], quote: char, raw: bool) -> Option<usize> {
    let mut at = 3;
    while at < body.len() {
        if body[at..].starts_with(&[quote; 3]) {
            return Some(at + 3);
        }
        at += if body[at] == '\\' && !raw { escape(&body[at..]).ok()? } else { 1 };
    }
    None
}

/// Returns the length of the string, or of what cannot be the start of one.
fn short_string(body: &[char], quote: char, raw: bool) -> Result<usize, usize> {
    let mut at = 1;
    while at < body.len() {
        match body[at] {
            c if c == quote => return Ok(at + 1),
            '\n' | '\r' => return Err(at + 1),
            '\\' if !raw => at += escape(&body[at..]).map_err(|length| at + length)?,
            _ => at += 1,
        }
    }
    Err(body.len())
}

/// Returns the length of the escape sequence at the start of `text`, or of what is not one.
fn escape(text: &[char]) -> Result<usize, usize> {
    let digits = |n: usize, matches: fn(&char) -> bool| {
        let valid = text[2..].iter().take(n).take_while(|c| matches(c)).count();
        if valid == n { Ok(2 + n) } else { Err((2 + valid + 1).min(text.len())) }
    };
    match text.get(1) {
        Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`') => Ok(2),
        Some('x' | 'X') => digits(2, char::is_ascii_hexdigit),
        Some('u') => digits(4, char::is_ascii_hexdigit),
        Some('U') => digits(8, char::is_ascii_hexdigit),
        Some('0'..='3') => digits(2, |c| ('0'..='7').contains(c)),
        Some(_) => Err(2),
        None => Err(1),
    }
}
