//! Values as text: CEL literals.

use std::fmt;

use super::{Value, format_g, format_seconds, quote};

impl fmt::Display for Value<'_> {
    /// Prints the value as a literal of the language where it has one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Int(n) => write!(f, "{n}"),
            Self::Uint(n) => write!(f, "{n}u"),
            Self::Double(d) if d.is_nan() => f.write_str("double(\"NaN\")"),
            Self::Double(d) if d.is_infinite() => {
                write!(f, "double(\"{}Infinity\")", if *d < 0.0 { "-" } else { "" })
            }
            Self::Double(d) if d.fract() == 0.0 => write!(f, "{d}.0"),
            Self::Double(d) => write!(f, "{d}"),
            Self::String(text) => f.write_str(&quote(text)),
            Self::Bytes(bytes) => {
                f.write_str("b\"")?;
                bytes.iter().try_for_each(|b| write!(f, "\\{b:03o}"))?;
                f.write_str("\"")
            }
            Self::Duration(nanos) => write!(f, "duration(\"{}\")", format_seconds(*nanos)),
            Self::Timestamp(t) => write!(f, "timestamp(\"{}\")", t.in_utc()),
            Self::List(list) => {
                f.write_str("[")?;
                for (i, item) in list.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    write_or_invalid(f, item.ok().as_ref())?;
                }
                f.write_str("]")
            }
            Self::Map(map) => {
                let mut entries = Vec::new();
                for key in map.keys() {
                    entries.push((key.to_string(), map.find(&key).ok().flatten()));
                }
                entries.sort_by(|(a, _), (b, _)| a.cmp(b));
                f.write_str("{")?;
                for (i, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{key}: ", if i > 0 { ", " } else { "" })?;
                    write_or_invalid(f, value.as_ref())?;
                }
                f.write_str("}")
            }
            Self::Type(name) => f.write_str(name),
            Self::Optional(Some(value)) => write!(f, "optional.of({value})"),
            Self::Optional(None) => f.write_str("optional.none()"),
            Self::Url(url) => f.write_str(&url.text),
            Self::Ip(ip) => write!(f, "{ip}"),
            Self::Cidr(cidr) => write!(f, "{cidr}"),
            Self::Quantity(_) => f.write_str("quantity"),
            Self::Semver(version) => write!(f, "{version}"),
            Self::Format(format) => f.write_str(format.name),
            Self::Preserved(_) => f.write_str("unknown"),
        }
    }
}

/// Prints a value inside another one. A value that does not fit its schema cannot be read; an error here would be a panic of the caller.
fn write_or_invalid(f: &mut fmt::Formatter<'_>, value: Option<&Value<'_>>) -> fmt::Result {
    match value {
        Some(value) => write!(f, "{value}"),
        None => f.write_str("<invalid>"),
    }
}

impl Value<'_> {
    /// Prints a key in an error message: without quotes and suffixes.
    pub(crate) fn plain(&self) -> String {
        match self {
            Self::String(text) => text.to_string(),
            Self::Uint(n) => n.to_string(),
            Self::Double(d) => format_g(*d),
            other => other.to_string(),
        }
    }
}
