//! Values of expressions. JSON is not copied: a value borrows the object it comes from.

mod compare;
mod display;
mod json;
mod list;
mod map;
mod number;
mod time;

use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::functions::{Cidr, NamedFormat, Quantity, Semver, Url};

pub(crate) use compare::compare;
pub(crate) use json::to_value;
pub(crate) use list::{Items, List};
pub(crate) use map::{Key, Map};
pub(crate) use number::{format_g, parse_double, quote, short_escape};
pub(crate) use time::{Timestamp, format_seconds, parse_duration};

/// A value of an expression.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Arc<[u8]>),
    /// Nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    List(List<'a>),
    Map(Map<'a>),
    /// A type as a value, by its name.
    Type(Arc<str>),
    Optional(Option<Arc<Value<'a>>>),
    Url(Arc<Url>),
    Ip(std::net::IpAddr),
    Cidr(Cidr),
    Quantity(Arc<Quantity>),
    Semver(Arc<Semver>),
    Format(&'static NamedFormat),
    /// Data without a type that `x-kubernetes-preserve-unknown-fields` kept; it can only be compared.
    Preserved(&'a Json),
}

/// A string that is borrowed from JSON or shared.
#[derive(Debug, Clone)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Arc<str>),
}

/// Why an evaluation has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// An error of the expression; `&&` and `||` may ignore it.
    Error(Arc<str>),
    /// The evaluation cost too much; it ends.
    Exceeded,
}

/// The result of an evaluation.
pub(crate) type Eval<'a> = Result<Value<'a>, Failure>;

/// Makes the error of an expression.
pub(crate) fn error<T>(message: impl Into<Arc<str>>) -> Result<T, Failure> {
    Err(Failure::Error(message.into()))
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl<'a> Value<'a> {
    pub(crate) fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Shared(text.into()))
    }

    pub(crate) fn list(items: Vec<Value<'a>>) -> Self {
        Self::List(List::owned(items))
    }

    pub(crate) fn some(value: Value<'a>) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// The name of the type of the value.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Type(_) => "type",
            Self::Optional(_) => "optional_type",
            Self::Url(_) => "kubernetes.URL",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Preserved(_) => "unknown",
        }
    }

    /// The name of the type in Go, which one error message has.
    pub(crate) fn go_type_name(&self) -> &'static str {
        match self {
            Self::Null => "types.Null",
            Self::Bool(_) => "types.Bool",
            Self::Int(_) => "types.Int",
            Self::Uint(_) => "types.Uint",
            Self::Double(_) => "types.Double",
            Self::String(_) => "types.String",
            Self::Bytes(_) => "types.Bytes",
            Self::Duration(_) => "types.Duration",
            Self::Timestamp(_) => "types.Timestamp",
            other => other.type_name(),
        }
    }

    /// The size of the value for costs: characters, bytes, elements or entries, and 1 for everything else.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::String(text) => text.chars().count() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => list.len() as u64,
            Self::Map(map) => map.len() as u64,
            Self::Ip(std::net::IpAddr::V4(_)) => 4,
            Self::Ip(std::net::IpAddr::V6(_)) => 16,
            Self::Cidr(cidr) => u64::from(cidr.prefix.div_ceil(8)),
            Self::Optional(Some(value)) => value.size(),
            _ => 1,
        }
    }

    /// Returns whether the value is the empty or zero value of its type.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(b) => !b,
            Self::Int(n) | Self::Duration(n) => *n == 0,
            Self::Uint(n) => *n == 0,
            Self::Double(f) => *f == 0.0,
            Self::String(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Timestamp(t) => t.is_zero(),
            // Lists and maps of the object have no zero value in kube-apiserver.
            Self::List(List { items: Items::Owned(items), .. }) => items.is_empty(),
            Self::Map(Map::Owned(entries)) => entries.is_empty(),
            _ => false,
        }
    }
}
