//! Names of namespaces.

/// Namespaces whose names sort differently as text than as prefixes of `namespace/name` keys.
pub const NAMESPACES: [&str; 4] = ["a", "a-b", "ab", "default"];
