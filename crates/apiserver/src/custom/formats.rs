//! The `format` keyword. A format that is not recognized accepts every value, and is a warning when the CRD is written.

use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A check of a text.
type Check = fn(&str) -> bool;

/// The formats of strings. `-` in a name does not count: `date-time` is `datetime`.
const OF_STRINGS: &[(&str, Check)] = &[
    ("bsonobjectid", |text| text.len() == 24 && is_hex(text)),
    ("byte", |text| STANDARD.decode(text).is_ok()),
    ("cidr", is_cidr),
    ("creditcard", is_credit_card),
    ("date", is_date),
    ("datetime", is_time),
    ("duration", is_duration),
    ("email", is_email),
    ("hexcolor", is_hex_color),
    ("hostname", is_hostname),
    ("ipv4", |text| text.parse::<Ipv4Addr>().is_ok()),
    ("ipv6", |text| text.parse::<Ipv6Addr>().is_ok()),
    ("isbn", |text| is_isbn10(text) || is_isbn13(text)),
    ("isbn10", is_isbn10),
    ("isbn13", is_isbn13),
    ("k8slongname", |text| text.len() <= 253 && text.split('.').all(is_name)),
    ("k8sshortname", |text| text.len() <= 63 && is_name(text)),
    ("mac", is_mac),
    ("password", |_| true),
    ("rgbcolor", is_rgb_color),
    ("ssn", is_social_security_number),
    ("uri", is_uri),
    ("uuid", |text| is_uuid(text, None)),
    ("uuid3", |text| is_uuid(text, Some(3))),
    ("uuid4", |text| is_uuid(text, Some(4))),
    ("uuid5", |text| is_uuid(text, Some(5))),
];

fn of_strings(format: &str) -> Option<Check> {
    let name = format.replace('-', "");
    OF_STRINGS.iter().find(|(known, _)| *known == name).map(|(_, check)| *check)
}

/// Returns whether `text` matches `format`.
pub(super) fn matches(format: &str, text: &str) -> bool {
    of_strings(format).is_none_or(|check| check(text))
}

/// Returns whether values of this type are checked for this format.
pub(super) fn is_recognized(format: &str, schema_type: &str) -> bool {
    match schema_type {
        "" | "string" => of_strings(format).is_some(),
        "integer" => matches!(format, "int32" | "int64"),
        // JSON has no other numbers than these.
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

/// A date, a time and an offset. The times of jiff end before the year 9999 does, and Go's do not.
fn is_time(text: &str) -> bool {
    let Some((date, rest)) = text.split_once(['T', 't']) else { return false };
    let is_pair = |text: &str, most: u8| {
        text.len() == 2
            && text.bytes().all(|b| b.is_ascii_digit())
            && text.parse().is_ok_and(|n: u8| n <= most)
    };
    let is_clock = |text: &str, most: &[u8]| {
        let parts: Vec<&str> = text.split(':').collect();
        parts.len() == most.len() && parts.iter().zip(most).all(|(part, most)| is_pair(part, *most))
    };
    let Some((clock, end)) = rest.split_at_checked(8) else { return false };
    let fraction = end.strip_prefix('.');
    let offset = fraction.map_or(end, |rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    let has_digits = fraction.is_none_or(|rest| rest.len() > offset.len());
    let is_offset = match offset.strip_prefix(['+', '-']) {
        Some(hours) => is_clock(hours, &[99, 99]),
        None => offset.eq_ignore_ascii_case("z"),
    };
    is_date(date) && is_clock(clock, &[23, 59, 59]) && has_digits && is_offset
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

/// Go durations, and days and weeks: `1h30m`, `2 days`.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 26] = [
        "ns", "nano", "us", "µs", "micro", "ms", "milli", "s", "sec", "second", "m", "min", "minute", "h",
        "hr", "hour", "d", "day", "w", "wk", "week", "seconds", "minutes", "hours", "days", "weeks",
    ];
    let mut rest = text.trim().trim_start_matches(['+', '-']);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        if digits == 0 || rest[..digits].parse::<f64>().is_err() {
            return false;
        }
        rest = rest[digits..].trim_start();
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.' || c == ' ').unwrap_or(rest.len());
        if !UNITS.contains(&&rest[..unit]) {
            return false;
        }
        rest = rest[unit..].trim_start();
    }
    true
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let max_bits = match address.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(_)) => 32,
        Ok(std::net::IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    !bits.starts_with('+') && bits.parse::<u8>().is_ok_and(|bits| bits <= max_bits)
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    matches!(parts.len(), 6 | 8 | 20) && parts.iter().all(|p| p.len() == 2 && is_hex(p))
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_uuid(text: &str, version: Option<usize>) -> bool {
    uuid::Uuid::try_parse(text).is_ok_and(|id| version.is_none_or(|v| id.get_version_num() == v))
}

fn is_uri(text: &str) -> bool {
    let blank = text.chars().any(|c| c.is_control() || c == ' ');
    let scheme = text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    });
    !blank && (scheme || text.starts_with('/'))
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"()<>[],;:\\\"@".contains(c);
    !local.is_empty()
        && local.len() <= 64
        && local.chars().all(plain)
        && !local.starts_with('.')
        && !local.ends_with('.')
        && is_hostname(domain)
}

fn is_hostname(text: &str) -> bool {
    let label = |part: &str| {
        !part.is_empty()
            && part.len() <= 63
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || !c.is_ascii())
    };
    !text.is_empty() && text.len() <= 255 && text.strip_suffix('.').unwrap_or(text).split('.').all(label)
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && is_hex(digits)
}

fn is_rgb_color(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) else { return false };
    let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    let is_byte = |part: &&str| {
        part.bytes().all(|b| b.is_ascii_digit())
            && (part.len() == 1 || !part.starts_with('0'))
            && part.parse::<u8>().is_ok()
    };
    parts.len() == 3 && parts.iter().all(is_byte)
}

/// A name of Kubernetes: lower case letters, digits, and `-` inside.
fn is_name(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(allowed) && !text.starts_with('-') && !text.ends_with('-')
}

/// Three, two and four digits, with a `-` or a space between them or without.
fn is_social_security_number(text: &str) -> bool {
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|b| b.is_ascii_digit());
    let rest = |text: &str, count: usize| {
        let (part, rest) = text.split_at_checked(count)?;
        digits(part, count).then(|| rest.strip_prefix(['-', ' ']).unwrap_or(rest).to_owned())
    };
    rest(text, 3).and_then(|text| rest(&text, 2)).is_some_and(|text| digits(&text, 4))
}

/// The characters of a number in groups.
fn ungrouped(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| !b.is_ascii_whitespace() && *b != b'-').collect()
}

fn is_isbn10(text: &str) -> bool {
    let text = ungrouped(text);
    let value = |(i, b): (usize, &u8)| match b {
        b'0'..=b'9' => Some(usize::from(b - b'0') * (i + 1)),
        b'X' if i == 9 => Some(10 * 10),
        _ => None,
    };
    text.len() == 10
        && text.iter().enumerate().map(value).sum::<Option<usize>>().is_some_and(|sum| sum % 11 == 0)
}

fn is_isbn13(text: &str) -> bool {
    let text = ungrouped(text);
    let weighted = |(i, b): (usize, &u8)| usize::from(b - b'0') * if i % 2 == 0 { 1 } else { 3 };
    text.len() == 13
        && text.iter().all(u8::is_ascii_digit)
        && text.iter().enumerate().map(weighted).sum::<usize>() % 10 == 0
}

/// Digits, with anything between them, that begin like the numbers of an issuer and have its length and the right check digit.
fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let prefix = |count: usize| digits.iter().take(count).fold(0, |number, digit| number * 10 + digit);
    let is_issued = match digits.len() {
        13 => prefix(1) == 4,
        14 => (300..=305).contains(&prefix(3)) || matches!(prefix(2), 36 | 38),
        15 => matches!(prefix(2), 34 | 37) || matches!(prefix(4), 2131 | 1800),
        16 => {
            prefix(1) == 4
                || (51..=55).contains(&prefix(2))
                || matches!(prefix(2), 35 | 65)
                || prefix(4) == 6011
        }
        _ => false,
    };
    let doubled = |(i, digit): (usize, &u32)| match i % 2 {
        0 => *digit,
        _ => digit * 2 % 10 + digit * 2 / 10,
    };
    is_issued && digits.iter().rev().enumerate().map(doubled).sum::<u32>() % 10 == 0
}

#[cfg(test)]
mod tests {
    use super::{is_recognized, matches};

    #[test]
    fn each_format_accepts_valid_and_rejects_invalid_text() {
        for (format, good, bad) in [
            ("date-time", "2026-01-02T03:04:05.5+01:00", "2026-01-02 03:04:05Z"),
            ("date-time", "9999-12-31T23:59:59Z", "2026-01-02T24:00:00Z"),
            ("date-time", "2026-01-02t03:04:05.123456789z", "2026-01-02T03:04:05.Z"),
            ("date-time", "2026-01-02T03:04:05-23:30", "2026-01-02T03:04:05"),
            ("datetime", "2024-02-29T00:00:00Z", "2026-02-29T00:00:00Z"),
            ("date", "2026-02-28", "2026-02-30"),
            ("duration", "1h30m", "1x"),
            ("duration", "2 days", ""),
            ("byte", "aGk=", "a!"),
            ("ipv4", "10.0.0.1", "10.0.0.256"),
            ("ipv6", "::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("mac", "01:23:45:67:89:ab", "01:23"),
            ("uuid", "9b2d2c3e-0000-4000-8000-000000000000", "9b2d"),
            ("uuid4", "9b2d2c3e-0000-4000-8000-000000000000", "9b2d2c3e-0000-3000-8000-000000000000"),
            ("uri", "https://example.com/a?b=c", "not a uri"),
            ("email", "a.b@example.com", "a@b@"),
            ("hostname", "a-b.example.com", "-a"),
            ("hexcolor", "#fff", "#ggg"),
            ("rgbcolor", "rgb(0, 255,17)", "rgb(0,256,0)"),
            ("rgbcolor", "rgb(1,2,3)", "rgb(01,2,3)"),
            ("isbn", "0321751043", "0321751044"),
            ("isbn", "978-0321751041", "978-0321751042"),
            ("isbn10", "0-8044-2957-X", "978-0321751041"),
            ("isbn13", "978 0321751041", "0321751043"),
            ("creditcard", "4111-1111-1111-1111", "4111-1111-1111-1112"),
            ("creditcard", "378282246310005", "1234567812345670"),
            ("creditcard", "30569309025904", "39569309025904"),
            ("ssn", "123-45 6789", "123-456-789"),
            ("bsonobjectid", "507f1f77bcf86cd799439011", "507f1f77bcf86cd79943901"),
            ("k8s-short-name", "a-1", "a.b"),
            ("k8s-long-name", "a-1.b", "a..b"),
        ] {
            assert!(matches(format, good), "{format} {good}");
            assert!(!matches(format, bad), "{format} {bad}");
        }
        assert!(matches("password", "anything") && matches("unknown", "anything"));
    }

    #[test]
    fn a_format_is_recognized_for_its_type_only() {
        for (format, schema_type, recognized) in [
            ("date-time", "string", true),
            ("datetime", "", true),
            ("k8s-short-name", "string", true),
            ("int32", "string", false),
            ("phone", "string", false),
            ("int64", "integer", true),
            ("double", "integer", false),
            ("float", "number", true),
            ("date", "object", false),
        ] {
            assert_eq!(is_recognized(format, schema_type), recognized, "{format} of {schema_type:?}");
        }
    }
}
