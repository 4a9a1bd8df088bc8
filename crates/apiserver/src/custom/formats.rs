//! The `format` keyword of strings. Unknown formats are accepted.

use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Returns whether `text` matches `format`.
pub(super) fn matches(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => is_time(text),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "duration" => is_duration(text),
        "byte" => STANDARD.decode(text).is_ok(),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => is_uuid(format, text),
        "uri" => is_uri(text),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "hexcolor" => is_hex_color(text),
        _ => true,
    }
}

fn is_time(text: &str) -> bool {
    // jiff also accepts a space instead of the `T`.
    text.parse::<jiff::Timestamp>().is_ok()
        && text.as_bytes().get(10).is_some_and(|b| matches!(b, b'T' | b't'))
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

fn is_uuid(format: &str, text: &str) -> bool {
    let version = match format.strip_prefix("uuid") {
        Some("") | None => None,
        Some(digit) => digit.parse::<usize>().ok(),
    };
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

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn each_format_accepts_valid_and_rejects_invalid_text() {
        for (format, good, bad) in [
            ("date-time", "2026-01-02T03:04:05.5+01:00", "2026-01-02 03:04:05Z"),
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
        ] {
            assert!(matches(format, good), "{format} {good}");
            assert!(!matches(format, bad), "{format} {bad}");
        }
        assert!(matches("password", "anything"));
    }
}
