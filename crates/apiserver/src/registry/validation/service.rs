//! Services.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::container::{among, port_number};
use super::read::{cidr, each, endpoint_ip, ip, is_empty, named, port_name, required, text};
use crate::registry::Object;
use crate::registry::metadata::validate_labels;
use crate::registry::names::{label, qualified_name, subdomain};
use crate::status::{FieldError, FieldErrors};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];
const POLICIES: [&str; 2] = ["Cluster", "Local"];
const FAMILY_POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];
const ONE_DAY: i64 = 86_400;

pub(in crate::registry) fn service(object: &Object) -> FieldErrors {
    let none = json!({});
    let spec = object.at("/spec").unwrap_or(&none);
    let headless = spec["clusterIPs"][0] == "None";
    let mut errors = by_type(spec, headless);
    errors.extend(ports(spec));
    errors.extend(validate_labels(spec.get("selector"), "spec.selector"));
    errors.extend(affinity(spec));
    if text(spec, "type") != "ExternalName" {
        errors.extend(addresses(spec, headless));
    }
    for (i, address) in each(spec, "externalIPs") {
        let address = address.as_str().unwrap_or_default();
        let field = format!("spec.externalIPs[{i}]");
        errors.extend(named(ip, address, &field));
        errors.extend(named(endpoint_ip, address, &field));
    }
    match text(spec, "type") {
        "" => errors.push(FieldError::required("spec.type", "")),
        kind => errors.extend(among(kind, &TYPES, "spec.type".to_owned())),
    }
    errors.extend(repeated_ports(spec));
    errors.extend(load_balancer(spec));
    errors.extend(policies(spec));
    errors
}

/// The cluster IP may change only together with the type, to or from one without a cluster IP.
pub(in crate::registry) fn service_update(new: &Object, old: &Object) -> FieldErrors {
    let external = |o: &Object| o.str_at("/spec/type") == "ExternalName";
    let (is, was) = (new.at("/spec/clusterIPs"), old.at("/spec/clusterIPs"));
    let first = |ips: Option<&Value>| ips.and_then(|ips| ips.get(0).cloned());
    if external(new) || external(old) || was.is_none() || first(is) == first(was) {
        return FieldErrors::new();
    }
    let why = if is.is_none_or(is_empty) {
        "primary clusterIP can not be unset"
    } else {
        "may not change once set"
    };
    [FieldError::invalid("spec.clusterIPs[0]", is, why)].into()
}

fn by_type(spec: &Value, headless: bool) -> FieldErrors {
    let kind = text(spec, "type");
    let mut errors = FieldErrors::new();
    if is_empty(&spec["ports"]) && !headless && kind != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let why = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid("spec.clusterIPs[0]", "None", why));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if !spec[field].is_null() {
                    let why = "may not be set for ExternalName services";
                    errors.push(FieldError::forbidden(format!("spec.{field}"), why));
                }
            }
            let name = text(spec, "externalName");
            errors.extend(required(subdomain, name.strip_suffix('.').unwrap_or(name), "spec.externalName"));
        }
        _ => {}
    }
    errors
}

fn ports(spec: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut names = HashSet::new();
    let many = spec["ports"].as_array().is_some_and(|ports| ports.len() > 1);
    for (i, port) in each(spec, "ports") {
        let at = format!("spec.ports[{i}]");
        let name = text(port, "name");
        if many || !name.is_empty() {
            errors.extend(required(label, name, &format!("{at}.name")));
        }
        if !name.is_empty() && !names.insert(name) {
            errors.push(FieldError::duplicate(format!("{at}.name"), name));
        }
        errors.extend(port_number(port["port"].as_i64().unwrap_or_default(), format!("{at}.port")));
        errors.extend(among(text(port, "protocol"), &PROTOCOLS, format!("{at}.protocol")));
        match &port["targetPort"] {
            Value::Number(number) => {
                errors.extend(port_number(number.as_i64().unwrap_or_default(), format!("{at}.targetPort")));
            }
            Value::String(name) => errors.extend(named(port_name, name, &format!("{at}.targetPort"))),
            _ => {}
        }
        if let Some(protocol) = port["appProtocol"].as_str() {
            errors.extend(named(qualified_name, protocol, &format!("{at}.appProtocol")));
        }
    }
    errors
}

fn affinity(spec: &Value) -> FieldErrors {
    let kind = text(spec, "sessionAffinity");
    let mut errors: FieldErrors =
        among(kind, &["ClientIP", "None"], "spec.sessionAffinity".to_owned()).into_iter().collect();
    let timeout = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"].as_i64();
    if let Some(seconds) = timeout.filter(|s| kind == "ClientIP" && !(1..=ONE_DAY).contains(s)) {
        let field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
        let why = format!("must be greater than 0 and less than {ONE_DAY}");
        errors.push(FieldError::invalid(field, seconds, why));
    }
    errors
}

fn addresses(spec: &Value, headless: bool) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (one, all) = (text(spec, "clusterIP"), &spec["clusterIPs"]);
    if !one.is_empty() && !is_empty(all) && all[0] != one {
        errors.push(FieldError::invalid("spec.clusterIPs", all, "first value must match `clusterIP`"));
    }
    for (i, family) in each(spec, "ipFamilies") {
        let family = family.as_str().unwrap_or_default();
        errors.extend(among(family, &["IPv4", "IPv6"], format!("spec.ipFamilies[{i}]")));
    }
    let policy = text(spec, "ipFamilyPolicy");
    errors.extend(among(policy, &FAMILY_POLICIES, "spec.ipFamilyPolicy".to_owned()));
    for (i, address) in each(spec, "clusterIPs").filter(|(i, _)| *i > 0 || !headless) {
        errors.extend(named(ip, address.as_str().unwrap_or_default(), &format!("spec.clusterIPs[{i}]")));
    }
    let families = spec["ipFamilies"].as_array().map_or(0, Vec::len);
    if errors.is_empty() && policy == "SingleStack" && families > 1 {
        let why = "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified";
        errors.push(FieldError::invalid("spec.ipFamilyPolicy", policy, why));
    }
    // The endpoints of a service without address and selector may be of any family.
    let selects = spec["selector"].as_object().is_some_and(|labels| !labels.is_empty());
    if errors.is_empty() && (!headless || selects) {
        errors.extend(only_ipv4(spec));
    }
    errors
}

/// The server assigns addresses of one family, as a kube-apiserver with one range for services.
fn only_ipv4(spec: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let all = &spec["clusterIPs"];
    for (i, address) in each(spec, "clusterIPs") {
        if address.as_str().is_some_and(|address| address.contains(':')) {
            let why = "IPv6 is not configured on this cluster";
            errors.push(FieldError::invalid(format!("spec.clusterIPs[{i}]"), all, why));
        }
    }
    let policy = text(spec, "ipFamilyPolicy");
    if policy == "SingleStack" && all.as_array().is_some_and(|all| all.len() > 1) {
        let why = "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified";
        errors.push(FieldError::invalid("spec.ipFamilyPolicy", policy, why));
    }
    if !errors.is_empty() {
        return errors;
    }
    if policy == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid("spec.ipFamilyPolicy", policy, why));
    }
    for (i, family) in each(spec, "ipFamilies").filter(|(_, family)| **family != "IPv4") {
        let why = "not configured on this cluster";
        errors.push(FieldError::invalid(format!("spec.ipFamilies[{i}]"), family, why));
    }
    errors
}

fn repeated_ports(spec: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (mut on_nodes, mut seen) = (HashSet::new(), HashSet::new());
    let node_port = |port: &Value| port["nodePort"].as_i64().filter(|number| *number != 0);
    if text(spec, "type") == "ClusterIP" {
        for (i, _) in each(spec, "ports").filter(|(_, port)| node_port(port).is_some()) {
            let why = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(format!("spec.ports[{i}].nodePort"), why));
        }
    }
    for (i, port) in each(spec, "ports") {
        if let Some(number) =
            node_port(port).filter(|number| !on_nodes.insert((text(port, "protocol"), *number)))
        {
            let why = "provided port is already allocated";
            errors.push(FieldError::invalid(format!("spec.ports[{i}].nodePort"), number, why));
        }
    }
    for (i, port) in each(spec, "ports") {
        let (protocol, number) = (text(port, "protocol"), port["port"].as_i64().unwrap_or_default());
        if !seen.insert((protocol, number)) {
            let key = format!(
                "{{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
            );
            errors.push(FieldError::duplicate_json(format!("spec.ports[{i}]"), &key));
        }
    }
    errors
}

fn load_balancer(spec: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let balanced = text(spec, "type") == "LoadBalancer";
    let only = "may only be used when `type` is 'LoadBalancer'";
    let ranges = "spec.LoadBalancerSourceRanges"; // the name in kube-apiserver
    if !balanced && !is_empty(&spec["loadBalancerSourceRanges"]) {
        errors.push(FieldError::forbidden(ranges, only));
    }
    for (i, range) in each(spec, "loadBalancerSourceRanges") {
        let range = range.as_str().unwrap_or_default().trim();
        errors.extend(named(cidr, range, &format!("{ranges}[{i}]")));
    }
    for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        if !balanced && !spec[field].is_null() {
            errors.push(FieldError::forbidden(format!("spec.{field}"), only));
        }
    }
    if let Some(class) = spec["loadBalancerClass"].as_str().filter(|_| balanced) {
        errors.extend(named(qualified_name, class, "spec.loadBalancerClass"));
    }
    errors
}

fn policies(spec: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let outward = matches!(text(spec, "type"), "LoadBalancer" | "NodePort")
        || (text(spec, "type") == "ClusterIP" && !is_empty(&spec["externalIPs"]));
    let policy = text(spec, "externalTrafficPolicy");
    if !outward && !policy.is_empty() {
        let why = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid("spec.externalTrafficPolicy", policy, why));
    } else {
        errors.extend(among(policy, &POLICIES, "spec.externalTrafficPolicy".to_owned()));
    }
    let checked = text(spec, "type") == "LoadBalancer" && policy == "Local";
    if let Some(port) = spec["healthCheckNodePort"].as_i64().filter(|port| *port != 0 && !checked) {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(FieldError::invalid("spec.healthCheckNodePort", port, why));
    }
    let within = text(spec, "internalTrafficPolicy");
    errors.extend(among(within, &POLICIES, "spec.internalTrafficPolicy".to_owned()));
    let distribution = text(spec, "trafficDistribution");
    errors.extend(among(distribution, &DISTRIBUTIONS, "spec.trafficDistribution".to_owned()));
    errors
}
