//! Access to values, and checks that many kinds share.

use std::net::IpAddr;

use serde_json::Value;

use crate::status::{FieldError, FieldErrors};

/// The text of a field; anything else is empty.
pub(super) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

/// The elements of a list field with their paths.
pub(super) fn each<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = (usize, &'v Value)> {
    value[field].as_array().into_iter().flatten().enumerate()
}

pub(super) fn is_empty(list: &Value) -> bool {
    list.as_array().is_none_or(Vec::is_empty)
}

/// The errors of a name rule for a value, as errors of a field.
pub(super) fn named(rule: fn(&str) -> Vec<String>, value: &str, field: &str) -> FieldErrors {
    rule(value).into_iter().map(|why| FieldError::invalid(field, value, why)).collect()
}

/// The same for a required value.
pub(super) fn required(rule: fn(&str) -> Vec<String>, value: &str, field: &str) -> FieldErrors {
    if value.is_empty() { [FieldError::required(field, "")].into() } else { named(rule, value, field) }
}

/// A valid segment of a URL path.
pub(super) fn path_segment(name: &str) -> Vec<String> {
    match name {
        "." | ".." => vec![format!("may not be '{name}'")],
        _ => ["/", "%"]
            .iter()
            .filter(|part| name.contains(**part))
            .map(|part| format!("may not contain '{part}'"))
            .collect(),
    }
}

/// The name of a port, which is a word of letters, digits and single hyphens.
pub(super) fn port_name(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 15 {
        wrong.push("must be no more than 15 characters");
    }
    if !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        wrong.push("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        wrong.push("must not begin or end with a hyphen");
    }
    wrong.into_iter().map(str::to_owned).collect()
}

pub(super) fn ip(text: &str) -> Vec<String> {
    match text.parse::<IpAddr>() {
        Ok(_) => Vec::new(),
        Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
    }
}

/// The errors of an address that is unspecified, loopback or link-local.
pub(super) fn endpoint_ip(text: &str) -> Vec<String> {
    let Ok(ip) = text.parse::<IpAddr>() else { return Vec::new() };
    let (local, local_group) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    [
        (ip.is_unspecified(), format!("may not be unspecified ({text})")),
        (ip.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()),
        (local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()),
        (local_group, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()),
    ]
    .into_iter()
    .filter_map(|(wrong, why)| wrong.then_some(why))
    .collect()
}

/// A parsed CIDR: address and prefix length.
pub(super) fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (ip, bits) = text.split_once('/')?;
    let ip: IpAddr = ip.parse().ok()?;
    let bits = bits.parse().ok()?;
    (bits <= if ip.is_ipv4() { 32 } else { 128 }).then_some((ip, bits))
}

pub(super) fn cidr(text: &str) -> Vec<String> {
    match network(text) {
        Some(_) => Vec::new(),
        None => vec!["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned()],
    }
}
