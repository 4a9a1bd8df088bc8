//! Ingresses, ingress classes and network policies.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::container::{among, port_number};
use super::read::{cidr, each, ip, is_empty, named, network, path_segment, port_name, required, text};
use super::selector;
use crate::registry::Object;
use crate::registry::names::{label, subdomain};
use crate::status::{FieldError, FieldErrors};

pub(in crate::registry) fn ingress(object: &Object) -> FieldErrors {
    let none = json!({});
    let spec = object.at("/spec").unwrap_or(&none);
    let mut errors = FieldErrors::new();
    if is_empty(&spec["rules"]) && spec["defaultBackend"].is_null() {
        let why = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid("spec", Value::Null, why));
    }
    if spec["defaultBackend"].is_object() {
        errors.extend(backend(&spec["defaultBackend"], "spec.defaultBackend"));
    }
    for (i, rule) in each(spec, "rules") {
        errors.extend(ingress_rule(rule, &format!("spec.rules[{i}]")));
    }
    for (i, tls) in each(spec, "tls") {
        for (j, name) in each(tls, "hosts") {
            errors.extend(host(name.as_str().unwrap_or_default(), &format!("spec.tls[{i}].hosts[{j}]")));
        }
        let secret = text(tls, "secretName");
        if !secret.is_empty() {
            errors.extend(named(subdomain, secret, &format!("spec.tls[{i}].secretName")));
        }
    }
    if let Some(class) = spec["ingressClassName"].as_str() {
        errors.extend(named(subdomain, class, "spec.ingressClassName"));
    }
    errors
}

fn ingress_rule(rule: &Value, at: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let name = text(rule, "host");
    if !name.is_empty() {
        let field = format!("{at}.host");
        if ip(name).is_empty() {
            errors.push(FieldError::invalid(&field, name, "must be a DNS name, not an IP address"));
        }
        errors.extend(host(name, &field));
    }
    if rule["http"].is_object() {
        if is_empty(&rule["http"]["paths"]) {
            errors.push(FieldError::required(format!("{at}.http.paths"), ""));
        }
        for (i, path) in each(&rule["http"], "paths") {
            errors.extend(http_path(path, &format!("{at}.http.paths[{i}]")));
        }
    }
    errors
}

/// Returns the errors of a host name, whose first label may be `*`.
fn host(name: &str, field: &str) -> FieldErrors {
    match name.strip_prefix("*.") {
        Some(rest) if subdomain(rest).is_empty() => FieldErrors::new(),
        _ if name.contains('*') => {
            let why = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower \
                       case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used \
                       for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
            [FieldError::invalid(field, name, why)].into()
        }
        _ => named(subdomain, name, field),
    }
}

fn http_path(path: &Value, at: &str) -> FieldErrors {
    const FORBIDDEN: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
    let mut errors = FieldErrors::new();
    let (kind, place) = (text(path, "pathType"), text(path, "path"));
    let field = format!("{at}.path");
    let absolute = place.starts_with('/');
    match kind {
        "" => return [FieldError::required(format!("{at}.pathType"), "pathType must be specified")].into(),
        "Exact" | "Prefix" => {
            if !absolute {
                errors.push(FieldError::invalid(&field, place, "must be an absolute path"));
            }
            for part in FORBIDDEN.iter().filter(|part| place.contains(**part)) {
                errors.push(FieldError::invalid(&field, place, format!("must not contain '{part}'")));
            }
            for end in ["/..", "/."].iter().filter(|end| place.ends_with(**end)) {
                errors.push(FieldError::invalid(&field, place, format!("cannot end with '{end}'")));
            }
        }
        "ImplementationSpecific" if !place.is_empty() && !absolute => {
            errors.push(FieldError::invalid(&field, place, "must be an absolute path"));
        }
        "ImplementationSpecific" => {}
        other => {
            let kinds = ["Exact", "ImplementationSpecific", "Prefix"];
            errors.push(FieldError::not_supported(format!("{at}.pathType"), other, &kinds));
        }
    }
    errors.extend(backend(&path["backend"], &format!("{at}.backend")));
    errors
}

fn backend(backend: &Value, at: &str) -> FieldErrors {
    let (service, resource) = (&backend["service"], &backend["resource"]);
    match (service.is_object(), resource.is_object()) {
        (true, true) => [FieldError::invalid(at, "", "cannot set both resource and service backends")].into(),
        (false, false) => [FieldError::invalid(at, "", "resource or service backend is required")].into(),
        (false, true) => ["kind", "name"]
            .iter()
            .flat_map(|field| {
                required(path_segment, text(resource, field), &format!("{at}.resource.{field}"))
            })
            .collect(),
        (true, false) => {
            let mut errors = required(label, text(service, "name"), &format!("{at}.service.name"));
            let (name, number) =
                (text(&service["port"], "name"), service["port"]["number"].as_i64().unwrap_or(0));
            match (name, number) {
                ("", 0) => errors.push(FieldError::required(at, "port name or number is required")),
                ("", number) => errors.extend(port_number(number, format!("{at}.service.port.number"))),
                (name, 0) => errors.extend(named(port_name, name, &format!("{at}.service.port.name"))),
                _ => errors.push(FieldError::invalid(at, "", "cannot set both port name & port number")),
            }
            errors
        }
    }
}

pub(in crate::registry) fn ingress_class(object: &Object) -> FieldErrors {
    let controller = object.str_at("/spec/controller");
    let mut errors = required(domain_path, controller, "spec.controller");
    let Some(parameters) = object.at("/spec/parameters").filter(|p| p.is_object()) else { return errors };
    let at = "spec.parameters";
    for field in ["kind", "name"] {
        errors.extend(required(path_segment, text(parameters, field), &format!("{at}.{field}")));
    }
    let namespace = format!("{at}.namespace");
    match (text(parameters, "scope"), parameters["namespace"].as_str()) {
        ("Namespace", None) => {
            errors.push(FieldError::required(namespace, "`parameters.scope` is set to 'Namespace'"));
        }
        ("Namespace", Some(name)) => errors.extend(named(label, name, &namespace)),
        ("Cluster", Some(_)) => {
            errors.push(FieldError::forbidden(namespace, "`parameters.scope` is set to 'Cluster'"));
        }
        (scope, _) => errors.extend(among(scope, &["Cluster", "Namespace"], format!("{at}.scope"))),
    }
    errors
}

fn domain_path(text: &str) -> Vec<String> {
    match text.split_once('/') {
        Some((domain, path)) if !path.is_empty() => subdomain(domain),
        _ => vec!["must be a domain-prefixed path (such as \"acme.io/foo\")".to_owned()],
    }
}

pub(in crate::registry) fn network_policy(object: &Object) -> FieldErrors {
    let none = json!({});
    let spec = object.at("/spec").unwrap_or(&none);
    let empty = Map::new();
    let mut errors =
        selector::validate(spec["podSelector"].as_object().unwrap_or(&empty), "spec.podSelector");
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for (i, rule) in each(spec, rules) {
            let at = format!("spec.{rules}[{i}]");
            for (j, port) in each(rule, "ports") {
                errors.extend(policy_port(port, &format!("{at}.ports[{j}]")));
            }
            for (j, one) in each(rule, peers) {
                errors.extend(peer(one, &format!("{at}.{peers}[{j}]")));
            }
        }
    }
    let kinds = &spec["policyTypes"];
    if kinds.as_array().is_some_and(|kinds| kinds.len() > 2) {
        errors.push(FieldError::invalid(
            "spec.policyTypes",
            kinds,
            "may not specify more than two policyTypes",
        ));
        return errors;
    }
    for (i, kind) in each(spec, "policyTypes") {
        let kind = kind.as_str().unwrap_or_default();
        errors.extend(among(kind, &["Ingress", "Egress"], format!("spec.policyTypes[{i}]")));
    }
    errors
}

fn policy_port(port: &Value, at: &str) -> FieldErrors {
    let protocols = ["TCP", "UDP", "SCTP"];
    let mut errors: FieldErrors =
        among(text(port, "protocol"), &protocols, format!("{at}.protocol")).into_iter().collect();
    let end = port["endPort"].as_i64();
    let end_at = format!("{at}.endPort");
    match &port["port"] {
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or_default();
            errors.extend(port_number(number, format!("{at}.port")));
            if end.is_some_and(|end| end < number) {
                errors.push(FieldError::invalid(&end_at, number, "must be greater than or equal to `port`"));
            }
            errors.extend(end.and_then(|end| port_number(end, end_at)));
        }
        Value::String(name) => {
            let why = "may not be specified when `port` is non-numeric";
            errors.extend(end.map(|end| FieldError::invalid(&end_at, end, why)));
            errors.extend(named(port_name, name, &format!("{at}.port")));
        }
        _ => {
            let why = "may not be specified when `port` is not specified";
            errors.extend(end.map(|end| FieldError::invalid(&end_at, end, why)));
        }
    }
    errors
}

fn peer(peer: &Value, at: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut chosen = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if let Some(fields) = peer[field].as_object() {
            chosen += 1;
            errors.extend(selector::validate(fields, &format!("{at}.{field}")));
        }
    }
    let block = peer["ipBlock"].is_object();
    if block {
        errors.extend(ip_block(&peer["ipBlock"], &format!("{at}.ipBlock")));
    }
    match (chosen, block) {
        (0, false) => errors.push(FieldError::required(at, "must specify a peer")),
        (1.., true) => {
            errors.push(FieldError::forbidden(at, "may not specify both ipBlock and another peer"))
        }
        _ => {}
    }
    errors
}

fn ip_block(block: &Value, at: &str) -> FieldErrors {
    let mut errors = required(cidr, text(block, "cidr"), &format!("{at}.cidr"));
    let outer = network(text(block, "cidr"));
    for (i, inner) in each(block, "except") {
        let (inner, field) = (inner.as_str().unwrap_or_default(), format!("{at}.except[{i}]"));
        let wrong = named(cidr, inner, &field);
        if wrong.is_empty() && !within(network(inner), outer) {
            errors.push(FieldError::invalid(&field, inner, "must be a strict subset of `cidr`"));
        }
        errors.extend(wrong);
    }
    errors
}

/// Whether a network is a strict subset of another.
fn within(inner: Option<(IpAddr, u8)>, outer: Option<(IpAddr, u8)>) -> bool {
    let (Some((inner, inner_bits)), Some((outer, outer_bits))) = (inner, outer) else { return false };
    let (width, inner, outer) = match (inner, outer) {
        (IpAddr::V4(inner), IpAddr::V4(outer)) => (32, inner.to_bits().into(), outer.to_bits().into()),
        (IpAddr::V6(inner), IpAddr::V6(outer)) => (128, inner.to_bits(), outer.to_bits()),
        _ => return false,
    };
    let shift = u32::from(width - outer_bits);
    let head = |bits: u128| bits.checked_shr(shift).unwrap_or_default();
    inner_bits > outer_bits && head(inner) == head(outer)
}
