//! Namespaces, secrets, services, volumes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::Object;
use super::{child, default_to, each};

/// The label by which a namespace can be selected by name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(in super::super) fn namespace(object: &mut Object) {
    let name = object.name().to_owned();
    if !name.is_empty() {
        let labels = child(object.metadata_mut(), "labels");
        labels.insert(NAME_LABEL.to_owned(), name.into());
    }
}

pub(in super::super) fn new_namespace(object: &mut Object) {
    let finalizers = object.section_mut("spec").entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = finalizers.as_array_mut()
        && !list.iter().any(|f| f == "kubernetes")
    {
        list.push("kubernetes".into());
    }
    object.section_mut("status").insert("phase".to_owned(), "Active".into());
}

/// Only `/finalize` takes a namespace's finalizers away.
pub(in super::super) fn keep_namespace_finalizers(new: &mut Object, old: &Object) {
    new.copy_field("spec", old);
}

/// `stringData` is for writing only: it ends up in `data`.
pub(in super::super) fn secret(object: &mut Object) {
    default_to(object.root_mut(), "type", "Opaque");
    if let Some(Value::Object(plain)) = object.root_mut().remove("stringData") {
        let data = object.section_mut("data");
        for (key, value) in plain {
            let text = value.as_str().unwrap_or_default();
            data.insert(key, STANDARD.encode(text).into());
        }
    }
}

pub(in super::super) fn service(object: &mut Object) {
    let spec = object.section_mut("spec");
    default_to(spec, "type", "ClusterIP");
    default_to(spec, "sessionAffinity", "None");
    for port in each(spec, "ports") {
        default_to(port, "protocol", "TCP");
        if let Some(number) = port.get("port").cloned() {
            default_to(port, "targetPort", number);
        }
    }
    if spec["type"] != "ExternalName" {
        default_to(spec, "internalTrafficPolicy", "Cluster");
        default_to(spec, "ipFamilyPolicy", "SingleStack");
        default_to(spec, "ipFamilies", json!(["IPv4"]));
    }
    if matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
        default_to(spec, "externalTrafficPolicy", "Cluster");
    }
    if spec["type"] == "LoadBalancer" {
        default_to(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// Gives a service its address. Addresses come from the uid: no allocator, no state, and two services practically never meet.
pub(in super::super) fn new_service(object: &mut Object) {
    let [high, low, ..] = fold(object.uid());
    let spec = object.section_mut("spec");
    if spec["type"] != "ExternalName" {
        if !spec.contains_key("clusterIP") {
            let given =
                spec.get("clusterIPs").and_then(|ips| ips.get(0)).and_then(Value::as_str).map(str::to_owned);
            spec.insert(
                "clusterIP".to_owned(),
                given.unwrap_or(format!("10.96.{high}.{}", low.max(1))).into(),
            );
        }
        let address = spec["clusterIP"].clone();
        default_to(spec, "clusterIPs", json!([address]));
    }
    if matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
        let base = 30_000 + u32::from(high) * 10;
        for (i, port) in each(spec, "ports").enumerate() {
            default_to(port, "nodePort", base + i as u32);
        }
    }
    object.section_mut("status").insert("loadBalancer".to_owned(), json!({}));
}

/// A PUT that leaves the address out keeps it.
pub(in super::super) fn keep_cluster_ip(new: &mut Object, old: &Object) {
    let same_type = old.str_at("/spec/type") != "ExternalName" && new.str_at("/spec/type") != "ExternalName";
    if !same_type {
        return;
    }
    for field in ["clusterIP", "clusterIPs"] {
        if let Some(value) = old.at(&format!("/spec/{field}")) {
            default_to(new.section_mut("spec"), field, value.clone());
        }
    }
}

fn fold(uid: &str) -> [u8; 2] {
    uid.bytes().filter(u8::is_ascii_hexdigit).enumerate().fold([0, 0], |mut sum, (i, b)| {
        sum[i % 2] = sum[i % 2].wrapping_mul(31).wrapping_add(b);
        sum
    })
}

pub(in super::super) fn claim(object: &mut Object) {
    default_to(object.section_mut("spec"), "volumeMode", "Filesystem");
}

/// The original also adds a protecting finalizer that a controller lifts; without that controller the claim could never go.
pub(in super::super) fn new_claim(object: &mut Object) {
    object.section_mut("status").insert("phase".to_owned(), "Pending".into());
}

pub(in super::super) fn volume(object: &mut Object) {
    let spec = object.section_mut("spec");
    default_to(spec, "persistentVolumeReclaimPolicy", "Retain");
    default_to(spec, "volumeMode", "Filesystem");
}

pub(in super::super) fn new_volume(object: &mut Object) {
    object.section_mut("status").insert("phase".to_owned(), "Pending".into());
}
