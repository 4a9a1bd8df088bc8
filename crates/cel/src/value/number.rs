//! Numbers and strings as Go prints and parses them.

use std::fmt::Write as _;

/// Prints a double like `%g`: the shortest digits that are read back as the same number.
pub(crate) fn format_g(f: f64) -> String {
    if f.is_nan() {
        return "NaN".to_owned();
    }
    if f.is_infinite() {
        return if f > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{f:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{f}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Parses a double like Go: decimal and hexadecimal numbers, infinities and NaN.
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    let lower = unsigned.to_ascii_lowercase();
    match lower.as_str() {
        "inf" | "infinity" => return Some(sign * f64::INFINITY),
        "nan" => return Some(f64::NAN),
        _ => {}
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if let Some(hex) = lower.strip_prefix("0x") {
        return parse_hex(hex).map(|f| sign * f);
    }
    // Underscores may separate digits.
    let digit =
        |at: Option<usize>| at.and_then(|at| unsigned.as_bytes().get(at)).is_some_and(u8::is_ascii_digit);
    if !unsigned.match_indices('_').all(|(at, _)| digit(at.checked_sub(1)) && digit(Some(at + 1))) {
        return None;
    }
    // A number out of range is an error in Go, not infinite.
    text.replace('_', "").parse::<f64>().ok().filter(|f| f.is_finite())
}

fn parse_hex(hex: &str) -> Option<f64> {
    let (mantissa, exponent) = hex.split_once('p')?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() || mantissa.len() > 17 {
        return None;
    }
    let digits = u128::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
    let scale = exponent.checked_sub(4 * i32::try_from(fraction.len()).ok()?)?;
    let value = digits as f64 * 2f64.powi(scale);
    value.is_finite().then_some(value)
}

/// The escape sequence of a character that has one of two characters.
pub(crate) fn short_escape(c: char) -> Option<&'static str> {
    Some(match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{b}' => "\\v",
        _ => return None,
    })
}

/// Quotes a string like `%q`.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        if let Some(escape) = short_escape(c) {
            out.push_str(escape);
            continue;
        }
        let code = c as u32;
        let _ = match c {
            _ if code < 0x20 || code == 0x7f => write!(out, "\\x{code:02x}"),
            c if is_printable(c) => out.write_char(c),
            _ if code < 0x10000 => write!(out, "\\u{code:04x}"),
            _ => write!(out, "\\U{code:08x}"),
        };
    }
    out.push('"');
    out
}

/// Letters, marks, numbers, punctuation, symbols and the ASCII space are printed as they are.
fn is_printable(c: char) -> bool {
    c == ' '
        || !(c.is_control()
            || c.is_whitespace()
            || matches!(c as u32, 0xad | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xe000..=0xf8ff | 0xfeff | 0xfff0..=0xfffb))
}
