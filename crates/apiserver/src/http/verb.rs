//! The verb of a method on a path.

use http::Method;

use super::route::ResourcePath;
use crate::verb::Verb;

impl Verb {
    /// `None` if the path does not have the method. `watch` is the query parameter, which only collections have.
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
}
