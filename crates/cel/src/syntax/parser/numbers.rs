//! Literals of numbers.

/// An integer, decimal or hexadecimal.
pub(super) fn parse_int(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(&format!("{sign}{hex}"), 16).ok(),
        None => text.parse().ok(),
    }
}

/// An unsigned integer with its suffix.
pub(super) fn parse_uint(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['u', 'U']);
    match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    }
}
