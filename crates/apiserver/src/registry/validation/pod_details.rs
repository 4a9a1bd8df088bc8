//! Parts of a pod spec that schedulers, kubelets and container runtimes read: spreading, affinity, DNS, users and probes.

use serde_json::Value;

use super::container::{among, port_number};
use super::read::{each, ip, named, port_name, text};
use crate::registry::names::qualified_name;
use crate::status::{FieldError, FieldErrors};

const UNSATISFIABLE: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];
const RESIZE_POLICIES: [&str; 2] = ["NotRequired", "RestartContainer"];
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
/// Fields of users and groups.
const IDS: [&str; 3] = ["fsGroup", "runAsUser", "runAsGroup"];

/// The errors of what is not a container or a volume.
pub(super) fn spec(spec: &Value, at: &str) -> FieldErrors {
    let mut errors = ids(&spec["securityContext"], &format!("{at}.securityContext"));
    errors.extend(host_ports(spec, at));
    errors.extend(dns(spec, at));
    for (i, gate) in each(spec, "readinessGates") {
        let field = format!("{at}.readinessGates[{i}].conditionType");
        errors.extend(named(qualified_name, text(gate, "conditionType"), &field));
    }
    errors.extend(affinity(spec, at));
    for (i, alias) in each(spec, "hostAliases") {
        errors.extend(named(ip, text(alias, "ip"), &format!("{at}.hostAliases[{i}].ip")));
    }
    errors.extend(spreading(spec, &format!("{at}.topologySpreadConstraints")));
    errors.extend(among(text(&spec["os"], "name"), &["linux", "windows"], format!("{at}.os")));
    errors
}

/// The errors of the probes, users and resize policies of a container.
pub(super) fn container(container: &Value, at: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for probe in PROBES {
        if container[probe].is_object() {
            errors.extend(handler(&container[probe], &format!("{at}.{probe}")));
        }
    }
    for (_, policy) in each(container, "resizePolicy") {
        let policy = text(policy, "restartPolicy");
        errors.extend(among(policy, &RESIZE_POLICIES, format!("{at}.resizePolicy")));
    }
    errors.extend(ids(&container["securityContext"], &format!("{at}.securityContext")));
    errors
}

fn handler(probe: &Value, at: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if probe["exec"].is_object() && each(&probe["exec"], "command").next().is_none() {
        errors.push(FieldError::required(format!("{at}.exec.command"), ""));
    }
    for action in ["httpGet", "tcpSocket"] {
        if probe[action].is_object() {
            errors.extend(port(&probe[action]["port"], &format!("{at}.{action}.port")));
        }
    }
    errors
}

/// A number or the name of a port; an absent one is zero.
fn port(port: &Value, field: &str) -> FieldErrors {
    match port.as_str() {
        Some(name) => named(port_name, name, field),
        None => port_number(port.as_i64().unwrap_or_default(), field.to_owned()).into_iter().collect(),
    }
}

fn ids(context: &Value, at: &str) -> FieldErrors {
    let wrong = |field: &&str| context[*field].as_i64().filter(|id| !(0..=i64::from(i32::MAX)).contains(id));
    let why = "must be between 0 and 2147483647, inclusive";
    let wrong = IDS.iter().filter_map(|field| Some((field, wrong(field)?)));
    wrong.map(|(field, id)| FieldError::invalid(format!("{at}.{field}"), id, why)).collect()
}

/// With the network of the node, a container has the ports of the node. In a template they may be absent.
fn host_ports(spec: &Value, at: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if spec["hostNetwork"] != true {
        return errors;
    }
    for (i, container) in each(spec, "containers") {
        for (j, port) in each(container, "ports") {
            let host = port["hostPort"].as_i64().unwrap_or_default();
            if host != 0 && Some(host) != port["containerPort"].as_i64() {
                let field = format!("{at}.containers[{i}].ports[{j}].hostPort");
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(field, host, why));
            }
        }
    }
    errors
}

fn dns(spec: &Value, at: &str) -> FieldErrors {
    let (config, at) = (&spec["dnsConfig"], format!("{at}.dnsConfig"));
    let mut errors = FieldErrors::new();
    if text(spec, "dnsPolicy") == "None" {
        if config.is_null() {
            let why = "must provide `dnsConfig` when `dnsPolicy` is None";
            errors.push(FieldError::required(at, why));
            return errors;
        }
        if each(config, "nameservers").next().is_none() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(FieldError::required(format!("{at}.nameservers"), why));
        }
    }
    for (i, server) in each(config, "nameservers") {
        let field = format!("{at}.nameservers[{i}]");
        errors.extend(named(ip, server.as_str().unwrap_or_default(), &field));
    }
    errors
}

fn affinity(spec: &Value, at: &str) -> Option<FieldError> {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let required = &spec["affinity"]["nodeAffinity"][REQUIRED];
    let field = format!("{at}.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms");
    let is_empty = required.is_object() && each(required, "nodeSelectorTerms").next().is_none();
    is_empty.then(|| FieldError::required(field, "must have at least one node selector term"))
}

fn spreading(spec: &Value, at: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (i, constraint) in each(spec, "topologySpreadConstraints") {
        let at = format!("{at}[{i}]");
        if let skew @ ..=0 = constraint["maxSkew"].as_i64().unwrap_or_default() {
            errors.push(FieldError::invalid(format!("{at}.maxSkew"), skew, "must be greater than zero"));
        }
        if text(constraint, "topologyKey").is_empty() {
            errors.push(FieldError::required(format!("{at}.topologyKey"), "can not be empty"));
        }
        let otherwise = text(constraint, "whenUnsatisfiable");
        if !UNSATISFIABLE.contains(&otherwise) {
            let field = format!("{at}.whenUnsatisfiable");
            errors.push(FieldError::not_supported(field, otherwise, &UNSATISFIABLE));
        }
    }
    errors
}
