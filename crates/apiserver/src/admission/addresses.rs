//! The addresses and node ports of Services: each belongs to one Service.
//!
//! They start at a value that is derived from the uid, so that the same seed gives the same ones, and skip those in use. Updates that run at
//! the same time may get the same one; creates wait for each other.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use serde_json::{Value, json};

use super::index::Index;
use crate::registry::Object;
use crate::status::{FieldError, FieldErrors};

/// The ports of nodes that Services may have, as in kube-apiserver.
const NODE_PORTS: RangeInclusive<u32> = 30_000..=32_767;

/// What other Services have.
#[derive(Debug, Default)]
struct InUse {
    addresses: HashSet<String>,
    ports: HashSet<u32>,
}

impl InUse {
    fn by_others(services: &Index, service: &Object) -> Self {
        let mut used = Self::default();
        let id = |object: &Object| (object.namespace().map(str::to_owned), object.name().map(str::to_owned));
        for other in services.all().iter().filter(|other| id(other) != id(service)) {
            let addresses = other.at("/spec/clusterIPs").and_then(Value::as_array).into_iter().flatten();
            used.addresses.extend(addresses.filter_map(Value::as_str).map(str::to_owned));
            used.ports.extend(node_ports(other).into_iter().flatten());
            used.ports.extend(health_port(other));
        }
        used
    }
}

/// Assigns the addresses and ports that a Service needs and does not have, and rejects those that another one has.
pub(super) fn assign(services: &Index, service: &mut Object, old: Option<&Object>) -> FieldErrors {
    let mut used = InUse::by_others(services, service);
    let [high, low] = fold(service.uid().unwrap_or_default());
    let mut errors = FieldErrors::new();
    if service.str_at("/spec/type") != "ExternalName" {
        errors.extend(assign_address(service, &used, high, low));
    }
    if errors.is_empty() && matches!(service.str_at("/spec/type"), "NodePort" | "LoadBalancer") {
        errors = assign_ports(service, old, &mut used, u32::from(high) * 10);
    }
    errors
}

fn assign_address(service: &mut Object, used: &InUse, high: u8, low: u8) -> Option<FieldError> {
    let spec = service.section_mut("spec");
    let first = spec.get("clusterIPs").and_then(|addresses| addresses.get(0));
    let given = spec.get("clusterIP").or(first).and_then(Value::as_str).unwrap_or_default().to_owned();
    if used.addresses.contains(&given) && given != "None" {
        let all = spec.get("clusterIPs").cloned().unwrap_or_else(|| json!([given]));
        let why = format!("failed to allocate IP {given}: provided IP is already allocated");
        return Some(FieldError::invalid("spec.clusterIPs", all, why));
    }
    if given.is_empty() {
        // 10.96.0.1 is the Service `kubernetes`.
        let from = u32::from(Ipv4Addr::new(10, 96, high, low.max(2)));
        let (start, end) =
            (u32::from(Ipv4Addr::new(10, 96, 0, 2)), u32::from(Ipv4Addr::new(10, 96, 255, 254)));
        let mut candidates = (from..=end).chain(start..from).map(|bits| Ipv4Addr::from(bits).to_string());
        let free = candidates.find(|address| !used.addresses.contains(address)).unwrap_or_default();
        spec.insert("clusterIP".to_owned(), free.into());
    } else {
        spec.insert("clusterIP".to_owned(), given.into());
    }
    let address = spec["clusterIP"].clone();
    if spec.get("clusterIPs").is_none_or(Value::is_null) {
        spec.insert("clusterIPs".to_owned(), json!([address]));
    }
    None
}

fn assign_ports(service: &mut Object, old: Option<&Object>, used: &mut InUse, from: u32) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let former: HashSet<u32> = old.map(node_ports).unwrap_or_default().into_iter().flatten().collect();
    for (i, port) in node_ports(service).into_iter().enumerate() {
        let Some(port) = port.filter(|port| !former.contains(port)) else { continue };
        if let Some(why) = fault(port, used) {
            errors.push(FieldError::invalid(format!("spec.ports[{i}].nodePort"), port, why));
        }
    }
    let health = health_port(service).filter(|port| old.and_then(health_port) != Some(*port));
    if let Some((port, why)) = health.and_then(|port| Some((port, fault(port, used)?))) {
        errors.push(FieldError::invalid("spec.healthCheckNodePort", port, why));
    }
    if !errors.is_empty() {
        return errors;
    }
    used.ports.extend(node_ports(service).into_iter().flatten().chain(health_port(service)));
    let next = |used: &mut InUse| {
        let (start, end) = (*NODE_PORTS.start(), *NODE_PORTS.end());
        let free = (start + from..=end).chain(start..start + from).find(|port| !used.ports.contains(port));
        free.inspect(|port| {
            used.ports.insert(*port);
        })
    };
    let balanced = service.str_at("/spec/type") == "LoadBalancer";
    let has_health = balanced && service.str_at("/spec/externalTrafficPolicy") == "Local";
    let wanted = !balanced || service.at("/spec/allocateLoadBalancerNodePorts") != Some(&Value::Bool(false));
    let spec = service.section_mut("spec");
    // A port for two protocols is one port of the nodes.
    let mut known: HashMap<u64, u64> = HashMap::new();
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten().filter(|_| wanted) {
        let own = port["port"].as_u64().unwrap_or_default();
        if port["nodePort"].as_u64().unwrap_or_default() == 0 {
            port["nodePort"] = known.get(&own).copied().map_or_else(|| next(used).into(), Value::from);
        }
        known.entry(own).or_insert(port["nodePort"].as_u64().unwrap_or_default());
    }
    if has_health && spec.get("healthCheckNodePort").is_none_or(|port| *port == 0) {
        spec.insert("healthCheckNodePort".to_owned(), next(used).into());
    }
    errors
}

/// Why a Service cannot have this port.
fn fault(port: u32, used: &InUse) -> Option<String> {
    let (start, end) = (NODE_PORTS.start(), NODE_PORTS.end());
    if !NODE_PORTS.contains(&port) {
        let why = "provided port is not in the valid range. The range of valid ports is";
        return Some(format!("{why} {start}-{end}"));
    }
    used.ports.contains(&port).then(|| "provided port is already allocated".to_owned())
}

/// The node port of each port, if it has one.
fn node_ports(service: &Object) -> Vec<Option<u32>> {
    let ports = service.at("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    ports.map(|port| number(&port["nodePort"])).collect()
}

fn health_port(service: &Object) -> Option<u32> {
    number(service.at("/spec/healthCheckNodePort")?)
}

/// A port that is set.
fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|port| u32::try_from(port).ok()).filter(|port| *port != 0)
}

fn fold(uid: &str) -> [u8; 2] {
    uid.bytes().filter(u8::is_ascii_hexdigit).enumerate().fold([0, 0], |mut sum, (i, b)| {
        sum[i % 2] = sum[i % 2].wrapping_mul(31).wrapping_add(b);
        sum
    })
}
