//! A group and version, as `apiVersion` writes them.

use std::fmt;

/// `apps/v1`, or `v1` in the core group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupVersion<'a> {
    /// Empty for the core group.
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
}

impl<'a> GroupVersion<'a> {
    /// Reads an `apiVersion`. Text without a slash is a version of the core group.
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
}
