//! API groups and versions, as `apiVersion` writes them.

use std::borrow::Borrow;
use std::fmt;

use serde::Serialize;

/// The name of an API group. That of the core group is empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub(crate) struct Group(String);

/// The name of a version of an API group: `v1`, `v2beta1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub(crate) struct Version(String);

/// `apps/v1`, or `v1` in the core group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupVersion<'a> {
    /// Empty for the core group.
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
}

impl Group {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_core(&self) -> bool {
        self.0.is_empty()
    }

    /// `deployments.apps`, or `pods` in the core group.
    pub(crate) fn qualify(&self, name: &str) -> String {
        if self.is_core() { name.to_owned() } else { format!("{name}.{}", self.0) }
    }
}

impl Version {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Group {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Version {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'a> GroupVersion<'a> {
    /// Parses an `apiVersion`. Text without a slash is a version of the core group.
    pub(crate) fn parse(api_version: &'a str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group, version }
    }
}

impl fmt::Display for GroupVersion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group {
            "" => f.write_str(self.version),
            group => write!(f, "{group}/{}", self.version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for (text, group, version) in [("v1", "", "v1"), ("apps/v1", "apps", "v1")] {
            assert_eq!(GroupVersion::parse(text), GroupVersion { group, version });
            assert_eq!(GroupVersion { group, version }.to_string(), text);
        }
    }

    #[test]
    fn names_are_qualified_outside_the_core_group() {
        assert_eq!(Group::new("").qualify("pods"), "pods");
        assert_eq!(Group::new("apps").qualify("deployments"), "deployments.apps");
    }
}
