//! Rules for names, with the messages of kube-apiserver.

/// The rule for the names of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// DNS-1123 subdomain: most kinds.
    Subdomain,
    /// DNS-1123 label: namespaces, pods' hostnames and services.
    Label,
    /// Any segment of a URL path: RBAC.
    PathSegment,
}

const LABEL_REGEX: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_REGEX: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL1035_REGEX: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";

impl NameRule {
    /// The errors of `name`. A `prefix` (of a generated name) may end in `-`.
    pub(crate) fn check(self, name: &str, prefix: bool) -> Vec<String> {
        let masked;
        let name = if prefix && name.len() > 1 && name.ends_with('-') {
            masked = format!("{}a", &name[..name.len() - 1]);
            &masked
        } else {
            name
        };
        match self {
            Self::Subdomain => subdomain(name),
            Self::Label => label(name),
            Self::PathSegment => path_segment(name),
        }
    }
}

/// DNS-1123 label.
pub(crate) fn label(name: &str) -> Vec<String> {
    let mut errors = too_long(name, 63);
    if !is_label(name) {
        errors.push(if is_subdomain(name) {
            "must not contain dots".to_owned()
        } else {
            explain(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with \
                 an alphanumeric character",
                LABEL_REGEX,
                &["my-name", "123-abc"],
            )
        });
    }
    errors
}

/// DNS-1123 subdomain.
pub(crate) fn subdomain(name: &str) -> Vec<String> {
    let mut errors = too_long(name, 253);
    if !is_subdomain(name) {
        errors.push(explain(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and \
             end with an alphanumeric character",
            SUBDOMAIN_REGEX,
            &["example.com"],
        ));
    }
    errors
}

/// DNS-1035 label.
pub(crate) fn label_1035(name: &str) -> Vec<String> {
    let mut errors = too_long(name, 63);
    if !is_label(name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        errors.push(explain(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and \
             end with an alphanumeric character",
            LABEL1035_REGEX,
            &["my-name", "abc-123"],
        ));
    }
    errors
}

fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"].iter().filter(|c| name.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}

fn too_long(name: &str, limit: usize) -> Vec<String> {
    if name.len() > limit { vec![format!("must be no more than {limit} bytes")] } else { Vec::new() }
}

fn is_label(name: &str) -> bool {
    let ok = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    !bytes.is_empty()
        && ok(bytes[0])
        && ok(bytes[bytes.len() - 1])
        && bytes.iter().all(|b| ok(*b) || *b == b'-')
}

fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
}

fn explain(what: &str, regex: &str, examples: &[&str]) -> String {
    let examples = examples.iter().map(|e| format!("'{e}'")).collect::<Vec<_>>().join(",  or ");
    format!("{what} (e.g. {examples}, regex used for validation is '{regex}')")
}

/// The errors of a label key, annotation key or finalizer: `[prefix/]name`.
pub(crate) fn qualified_name(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let name = match value.split_once('/') {
        None => value,
        Some((_, name)) if name.contains('/') => {
            return vec![
                explain(
                    "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                     alphanumeric character",
                    QUALIFIED_REGEX,
                    &["MyName", "my.name", "123-abc"],
                ) + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
            ];
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                errors.extend(subdomain(prefix).into_iter().map(|e| format!("prefix part {e}")));
            }
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_word(name) {
        errors.push(explain(
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
             character",
            QUALIFIED_REGEX,
            &["MyName", "my.name", "123-abc"],
        ));
    }
    errors
}

const QUALIFIED_REGEX: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// The errors of a label value.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut errors = too_long(value, 63);
    if !value.is_empty() && !is_word(value) {
        errors.push(explain(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end \
             with an alphanumeric character",
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
            &["MyValue", "my_value", "12345"],
        ));
    }
    errors
}

/// The errors of a key in the data of a config map or secret.
pub(crate) fn data_key(key: &str) -> Vec<String> {
    let mut errors = too_long(key, 253);
    if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')) {
        errors.push(explain(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    if key == "." {
        errors.push("must not be '.'".to_owned());
    } else if key == ".." {
        errors.push("must not be '..'".to_owned());
    } else if key.starts_with("..") {
        errors.push("must not start with '..'".to_owned());
    }
    errors
}

fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ok = |b: u8| b.is_ascii_alphanumeric();
    !bytes.is_empty()
        && ok(bytes[0])
        && ok(bytes[bytes.len() - 1])
        && bytes.iter().all(|b| ok(*b) || matches!(b, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_rule() {
        for (rule, good, bad) in [
            (NameRule::Subdomain, ["a", "a.b-c", "0"], ["A", "a_", ""]),
            (NameRule::Label, ["a", "a-b", "0"], ["a.b", "-a", "a-"]),
            (NameRule::PathSegment, ["system:x", "A_b", "a b"], [".", "a/b", "50%"]),
        ] {
            for name in good {
                assert_eq!(rule.check(name, false), Vec::<String>::new(), "{rule:?} {name}");
            }
            for name in bad {
                assert!(!rule.check(name, false).is_empty(), "{rule:?} {name}");
            }
        }
        assert!(NameRule::Subdomain.check("gen-", true).is_empty());
        assert!(!NameRule::Subdomain.check("gen-", false).is_empty());
        assert!(!NameRule::Subdomain.check(&"a".repeat(254), false).is_empty());
        assert_eq!(label("a.b"), ["must not contain dots"]);
    }

    #[test]
    fn qualified_names() {
        for good in ["a", "example.com/hold", "A.b_c-9"] {
            assert!(qualified_name(good).is_empty(), "{good}");
        }
        for bad in ["", "/a", "a/", "a/b/c", "Ex.com/a", "-a", "a b"] {
            assert!(!qualified_name(bad).is_empty(), "{bad}");
        }
        assert!(
            label_value("").is_empty()
                && !label_value("-").is_empty()
                && !label_value(&"x".repeat(64)).is_empty()
        );
        assert!(
            data_key("a.b").is_empty() && !data_key("bad key!").is_empty() && !data_key("..x").is_empty()
        );
    }
}
