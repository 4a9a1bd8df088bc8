//! Services: defaults, and the addresses and ports that an update keeps.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::super::Object;
use super::{child, default_to, each};

/// The default session affinity timeout, in seconds.
const THREE_HOURS: i32 = 10_800;

pub(in super::super) fn service(object: &mut Object) {
    let spec = object.section_mut("spec");
    default_to(spec, "type", "ClusterIP");
    default_to(spec, "sessionAffinity", "None");
    for port in each(spec, "ports") {
        default_to(port, "protocol", "TCP");
        if let Some(number) = port.get("port").cloned()
            && port.get("targetPort").is_none_or(|target| *target == 0 || target == "")
        {
            port.insert("targetPort".to_owned(), number);
        }
    }
    if spec["type"] != "ExternalName" {
        // The endpoints of such a service may be of any family.
        let headless = spec.get("clusterIP").is_some_and(|ip| ip == "None") && !spec.contains_key("selector");
        let (policy, families) = if headless {
            ("RequireDualStack", json!(["IPv4", "IPv6"]))
        } else {
            ("SingleStack", json!(["IPv4"]))
        };
        default_to(spec, "internalTrafficPolicy", "Cluster");
        default_to(spec, "ipFamilyPolicy", policy);
        default_to(spec, "ipFamilies", families);
    }
    match spec["sessionAffinity"].as_str() {
        Some("ClientIP") => {
            let config = child(child(spec, "sessionAffinityConfig"), "clientIP");
            default_to(config, "timeoutSeconds", THREE_HOURS);
        }
        Some("None") => {
            spec.remove("sessionAffinityConfig");
        }
        _ => {}
    }
    if matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
        default_to(spec, "externalTrafficPolicy", "Cluster");
    }
    if spec["type"] == "LoadBalancer" {
        default_to(spec, "allocateLoadBalancerNodePorts", true);
        let balancer = object.root_mut().get_mut("status").and_then(|status| status.get_mut("loadBalancer"));
        for ingress in balancer.and_then(Value::as_object_mut).into_iter().flat_map(|b| each(b, "ingress")) {
            if ingress.contains_key("ip") {
                default_to(ingress, "ipMode", "VIP");
            }
        }
    }
}

pub(in super::super) fn new_service(object: &mut Object) {
    if let Some(address) = object.at("/spec/clusterIP").cloned() {
        default_to(object.section_mut("spec"), "clusterIPs", json!([address]));
    }
}

/// The addresses that the type of a service needs.
fn has_address(service: &Object) -> bool {
    service.str_at("/spec/type") != "ExternalName"
}

fn has_node_ports(service: &Object) -> bool {
    matches!(service.str_at("/spec/type"), "NodePort" | "LoadBalancer")
}

fn has_health_check(service: &Object) -> bool {
    service.str_at("/spec/type") == "LoadBalancer" && service.str_at("/spec/externalTrafficPolicy") == "Local"
}

/// An update keeps the assigned addresses and ports that the type still needs; admission assigns those it newly needs. Fields that the
/// type does not have are removed if the client only sent them back.
pub(in super::super) fn settle_service(new: &mut Object, old: &Object) {
    normalize_addresses(new, old);
    if has_address(new) && has_address(old) {
        for field in ["clusterIP", "clusterIPs"] {
            keep(new, old, field);
        }
    }
    if has_node_ports(new) && has_node_ports(old) {
        keep_node_ports(new, old);
    }
    if has_health_check(new) && has_health_check(old) {
        keep(new, old, "healthCheckNodePort");
    }
    if has_address(old) && !has_address(new) {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            drop_unchanged(new, old, field);
        }
    }
    if has_node_ports(old) && !has_node_ports(new) {
        drop_unchanged(new, old, "externalTrafficPolicy");
        drop_node_ports(new, old);
    }
    if has_health_check(old) && !has_health_check(new) {
        drop_unchanged(new, old, "healthCheckNodePort");
    }
    if old.str_at("/spec/type") == "LoadBalancer" && new.str_at("/spec/type") != "LoadBalancer" {
        drop_unchanged(new, old, "allocateLoadBalancerNodePorts");
        drop_unchanged(new, old, "loadBalancerClass");
    }
}

/// Old clients know only `clusterIP`: if they change it, `clusterIPs` follows.
fn normalize_addresses(new: &mut Object, old: &Object) {
    let of = |o: &Object, field: &str| o.at(&format!("/spec/{field}")).cloned();
    let (one, many) = (of(new, "clusterIP"), of(new, "clusterIPs"));
    if one != of(old, "clusterIP") && many == of(old, "clusterIPs") {
        let spec = new.section_mut("spec");
        match one {
            Some(one) => spec.insert("clusterIPs".to_owned(), json!([one])),
            None => spec.remove("clusterIPs"),
        };
    }
}

fn keep(new: &mut Object, old: &Object, field: &str) {
    if let Some(value) = old.at(&format!("/spec/{field}")) {
        default_to(new.section_mut("spec"), field, value.clone());
    }
}

fn drop_unchanged(new: &mut Object, old: &Object, field: &str) {
    let at = format!("/spec/{field}");
    if new.at(&at) == old.at(&at) {
        new.section_mut("spec").remove(field);
    }
}

fn ports(service: &Object) -> Vec<Value> {
    service.at("/spec/ports").and_then(Value::as_array).cloned().unwrap_or_default()
}

fn keep_node_ports(new: &mut Object, old: &Object) {
    let identity =
        |port: &Map<String, Value>| Some((port.get("port")?.to_string(), port.get("protocol")?.to_string()));
    let mut before = HashMap::new();
    for port in ports(old) {
        if let Some((id, port)) = port.as_object().and_then(|port| Some((identity(port)?, port))) {
            before.entry(id).or_insert_with(|| port.get("nodePort").cloned());
        }
    }
    for port in each(new.section_mut("spec"), "ports") {
        if let Some(Some(number)) = identity(port).and_then(|id| before.get(&id)) {
            default_to(port, "nodePort", number.clone());
        }
    }
}

fn drop_node_ports(new: &mut Object, old: &Object) {
    let numbers = |o: &Object| ports(o).iter().map(|port| port["nodePort"].clone()).collect::<Vec<_>>();
    if numbers(new) == numbers(old) {
        each(new.section_mut("spec"), "ports").for_each(|port| {
            port.remove("nodePort");
        });
    }
}
