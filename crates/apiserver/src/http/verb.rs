//! Verbs: what a method means on a path.

use http::Method;

use super::route::ResourcePath;

/// What a request does to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Follow a collection.
    Watch,
    /// Add an object.
    Create,
    /// Replace an object.
    Update,
    /// Change a part of an object.
    Patch,
    /// Remove an object.
    Delete,
    /// Remove all objects of a collection.
    DeleteCollection,
}

impl Verb {
    /// All of them.
    pub(crate) const ALL: [Self; 8] = [
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Create,
        Self::Update,
        Self::Patch,
        Self::Delete,
        Self::DeleteCollection,
    ];

    /// `None` if the method means nothing here. `watch` is the query parameter; it matters on collections alone.
    pub(crate) fn of(method: &Method, path: &ResourcePath, watch: bool) -> Option<Self> {
        let named = path.name.is_some();
        match (method.as_str(), named) {
            ("GET", _) if path.watch => Some(Self::Watch),
            _ if path.watch => None,
            ("GET", true) => Some(Self::Get),
            ("GET", false) if watch => Some(Self::Watch),
            ("GET", false) => Some(Self::List),
            ("POST", false) => Some(Self::Create),
            ("POST", true) if path.subresource.is_some() => Some(Self::Create),
            ("PUT", true) => Some(Self::Update),
            ("PATCH", true) => Some(Self::Patch),
            ("DELETE", true) => Some(Self::Delete),
            ("DELETE", false) => Some(Self::DeleteCollection),
            _ => None,
        }
    }

    /// The word used in discovery and authorization.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    pub(crate) fn has_body(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}
