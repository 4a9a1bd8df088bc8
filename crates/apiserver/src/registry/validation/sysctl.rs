//! Kernel parameters of pods.

use std::collections::HashSet;

use serde_json::Value;

use super::read::{each, text};
use crate::status::{FieldError, FieldErrors};

/// The longest name.
const MAX_LENGTH: usize = 253;
const REGEX: &str = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// The errors in `securityContext.sysctls`. Parameters of a namespace that the pod shares with its node are not its own.
pub(super) fn sysctls(spec: &Value, at: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut names = HashSet::new();
    for (i, parameter) in each(&spec["securityContext"], "sysctls") {
        let (field, name) = (format!("{at}.securityContext.sysctls[{i}].name"), text(parameter, "name"));
        if name.is_empty() {
            errors.push(FieldError::required(field.as_str(), ""));
        } else if !is_name(name) {
            let why = format!("must have at most {MAX_LENGTH} characters and match regex {REGEX}");
            errors.push(FieldError::invalid(field.as_str(), name, why));
        } else if !names.insert(name) {
            errors.push(FieldError::duplicate(field.as_str(), name));
        }
        for (shared, is_of) in [("hostNetwork", is_of_network as fn(&str) -> bool), ("hostIPC", is_of_ipc)] {
            if spec[shared] == true && is_of(name) {
                let why = format!("may not be specified when '{shared}' is true");
                errors.push(FieldError::invalid(field.as_str(), name, why));
            }
        }
    }
    errors
}

fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_segment = |segment: &str| {
        segment.bytes().all(|b| plain(b) || matches!(b, b'-' | b'_'))
            && segment.bytes().next().is_some_and(plain)
            && segment.bytes().last().is_some_and(plain)
    };
    name.len() <= MAX_LENGTH && name.split(['.', '/']).all(is_segment)
}

fn is_of_network(name: &str) -> bool {
    name.replace('/', ".").starts_with("net.")
}

fn is_of_ipc(name: &str) -> bool {
    let name = name.replace('/', ".");
    name == "kernel.sem"
        || ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_of_kernel_parameters_are_checked() {
        let errors = |names: &[&str], spec: Value| -> Vec<String> {
            let list: Vec<Value> = names.iter().map(|name| json!({"name": name, "value": "1"})).collect();
            let mut spec = spec;
            spec["securityContext"] = json!({"sysctls": list});
            sysctls(&spec, "spec").iter().map(FieldError::text).collect()
        };
        let own = json!({});
        assert!(
            errors(&["kernel.shm_rmid_forced", "net/ipv4/tcp_syncookies", "a", "net.a-b.c"], own.clone())
                .is_empty()
        );
        for name in ["A.b", "a..b", "-a", "a.", "a b", &"a".repeat(254)] {
            let found = errors(&[name], own.clone());
            assert!(found.len() == 1 && found[0].contains("match regex ^("), "{name}: {found:?}");
        }
        assert_eq!(errors(&[""], own.clone()), ["spec.securityContext.sysctls[0].name: Required value"]);
        assert_eq!(
            errors(&["a.b", "a.b"], own),
            [r#"spec.securityContext.sysctls[1].name: Duplicate value: "a.b""#]
        );
        let shared = json!({"hostNetwork": true, "hostIPC": true});
        let found = errors(&["net.core.somaxconn", "kernel.msgmax", "kernel.sem", "kernel.pid_max"], shared);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].ends_with("may not be specified when 'hostNetwork' is true"), "{found:?}");
        assert!(found[1].ends_with("may not be specified when 'hostIPC' is true"), "{found:?}");
    }
}
