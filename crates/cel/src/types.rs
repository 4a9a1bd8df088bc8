//! Static types of expressions.

use std::fmt;
use std::sync::Arc;

use crate::declared::Declared;

/// A type. Printed as in the messages of kube-apiserver.
#[derive(Debug, Clone)]
pub(crate) enum Type {
    Dyn,
    /// The type of an expression with an error that is reported already.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<Type>),
    Map(Arc<(Type, Type)>),
    /// An object of the schema; the name is its path from `selfType`.
    Object(Arc<str>, Arc<Declared>),
    /// A type of a Kubernetes library that behaves like a message without fields.
    Message(&'static str),
    /// A type of a Kubernetes library without parameters.
    Opaque(&'static str),
    Optional(Arc<Type>),
    /// The type of a type, with the type if it is known.
    Meta(Option<Arc<Type>>),
    /// A type parameter of a declaration.
    Param(char),
    /// A type that unification may still determine.
    Variable(usize),
}

pub(crate) const URL: Type = Type::Message("kubernetes.URL");
pub(crate) const QUANTITY: Type = Type::Message("kubernetes.Quantity");
pub(crate) const SEMVER: Type = Type::Message("kubernetes.Semver");
pub(crate) const FORMAT: Type = Type::Message("kubernetes.NamedFormat");
pub(crate) const IP: Type = Type::Opaque("net.IP");
pub(crate) const CIDR: Type = Type::Opaque("net.CIDR");

impl Type {
    pub(crate) fn list(element: Type) -> Self {
        Self::List(Arc::new(element))
    }

    pub(crate) fn map(key: Type, value: Type) -> Self {
        Self::Map(Arc::new((key, value)))
    }

    pub(crate) fn optional(inner: Type) -> Self {
        Self::Optional(Arc::new(inner))
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn)
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// Returns whether all values have the same size, for the estimate of costs.
    pub(crate) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool | Self::Double | Self::Duration | Self::Int | Self::Timestamp | Self::Uint => true,
            Self::Optional(inner) => inner.is_scalar(),
            _ => false,
        }
    }

    /// Returns whether two types are the same, parameters included.
    pub(crate) fn is_exact(&self, other: &Type) -> bool {
        use Type::{List, Map, Message, Object, Opaque, Optional, Param, Variable};
        match (self, other) {
            (List(a), List(b)) | (Optional(a), Optional(b)) => a.is_exact(b),
            (Map(a), Map(b)) => a.0.is_exact(&b.0) && a.1.is_exact(&b.1),
            (Object(a, _), Object(b, _)) => a == b,
            (Message(a), Message(b)) | (Opaque(a), Opaque(b)) => a == b,
            (Self::Meta(a), Self::Meta(b)) => match (a, b) {
                (Some(a), Some(b)) => a.is_exact(b),
                (a, b) => a.is_none() == b.is_none(),
            },
            (Param(a), Param(b)) => a == b,
            (Variable(a), Variable(b)) => a == b,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }

    /// The name of the type without its parameters.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Dyn => "dyn",
            Self::Error => "!error!",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "google.protobuf.Duration",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Object(name, _) => name,
            Self::Message(name) | Self::Opaque(name) => name,
            Self::Optional(_) => "optional_type",
            Self::Meta(_) => "type",
            Self::Param(_) | Self::Variable(_) => "param",
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::List(element) => write!(f, "list({element})"),
            Self::Map(entry) => write!(f, "map({}, {})", entry.0, entry.1),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Meta(Some(inner)) => write!(f, "type({inner})"),
            Self::Param(name) => write!(f, "{name}"),
            Self::Variable(n) => write!(f, "_var{n}"),
            other => f.write_str(other.name()),
        }
    }
}
