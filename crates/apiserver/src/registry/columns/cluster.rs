//! Configuration, services, nodes, namespaces, events.

use serde_json::Value;

use super::super::Object;
use super::{AGE, Column, Fixed, NAME, age, count, items, number, or_none, pairs, text, wide};

fn size(object: &Object, field: &str) -> usize {
    object.root().get(field).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

fn born(object: &Object, now: i64) -> Value {
    age(object.meta_str("creationTimestamp"), now)
}

pub(super) const CONFIG_MAP: Fixed = Fixed {
    columns: &[NAME, number("Data"), AGE],
    cells: |o, now| vec![o.name().into(), (size(o, "data") + size(o, "binaryData")).into(), born(o, now)],
};

pub(super) const SECRET: Fixed = Fixed {
    columns: &[NAME, text("Type"), number("Data"), AGE],
    cells: |o, now| vec![o.name().into(), o.str_at("/type").into(), size(o, "data").into(), born(o, now)],
};

pub(super) const SERVICE_ACCOUNT: Fixed =
    Fixed { columns: &[NAME, AGE], cells: |o, now| vec![o.name().into(), born(o, now)] };

pub(super) const LEASE: Fixed = Fixed {
    columns: &[NAME, text("Holder"), AGE],
    cells: |o, now| vec![o.name().into(), o.str_at("/spec/holderIdentity").into(), born(o, now)],
};

pub(super) const NAMESPACE: Fixed = Fixed {
    columns: &[NAME, text("Status"), AGE],
    cells: |o, now| vec![o.name().into(), o.str_at("/status/phase").into(), born(o, now)],
};

pub(super) const SERVICE: Fixed = Fixed {
    columns: &[
        NAME,
        text("Type"),
        text("Cluster-IP"),
        text("External-IP"),
        text("Port(s)"),
        AGE,
        wide("Selector"),
    ],
    cells: |o, now| {
        vec![
            o.name().into(),
            o.str_at("/spec/type").into(),
            or_none(o.str_at("/spec/clusterIP")),
            external_address(o),
            or_none(&ports(o)),
            born(o, now),
            or_none(&pairs(o.at("/spec/selector"))),
        ]
    },
};

fn external_address(service: &Object) -> Value {
    let given = items(service, "/spec/externalIPs").iter().filter_map(Value::as_str);
    let balanced = items(service, "/status/loadBalancer/ingress");
    let balanced = balanced.iter().filter_map(|i| i["ip"].as_str().or(i["hostname"].as_str()));
    let all: Vec<&str> = given.chain(balanced).collect();
    match service.str_at("/spec/type") {
        "ExternalName" => or_none(service.str_at("/spec/externalName")),
        "LoadBalancer" if all.is_empty() => "<pending>".into(),
        _ => or_none(&all.join(",")),
    }
}

fn ports(service: &Object) -> String {
    let port = |p: &Value| {
        let node = p["nodePort"].as_i64().filter(|n| *n > 0).map(|n| format!(":{n}")).unwrap_or_default();
        format!(
            "{}{node}/{}",
            p["port"].as_i64().unwrap_or_default(),
            p["protocol"].as_str().unwrap_or("TCP")
        )
    };
    items(service, "/spec/ports").iter().map(port).collect::<Vec<_>>().join(",")
}

pub(super) const NODE: Fixed = Fixed {
    columns: &[
        NAME,
        text("Status"),
        text("Roles"),
        AGE,
        text("Version"),
        wide("Internal-IP"),
        wide("External-IP"),
        wide("OS-Image"),
        wide("Kernel-Version"),
        wide("Container-Runtime"),
    ],
    cells: |o, now| {
        let info = |field: &str| match o.str_at(&format!("/status/nodeInfo/{field}")) {
            "" => "<unknown>".into(),
            known => Value::from(known),
        };
        let address = |kind: &str| {
            let found = items(o, "/status/addresses").iter().find(|a| a["type"] == kind);
            or_none(found.and_then(|a| a["address"].as_str()).unwrap_or_default())
        };
        vec![
            o.name().into(),
            node_status(o).into(),
            or_none(&roles(o)),
            born(o, now),
            o.str_at("/status/nodeInfo/kubeletVersion").into(),
            address("InternalIP"),
            address("ExternalIP"),
            info("osImage"),
            info("kernelVersion"),
            info("containerRuntimeVersion"),
        ]
    },
};

fn node_status(node: &Object) -> String {
    let ready = items(node, "/status/conditions").iter().find(|c| c["type"] == "Ready");
    let mut status = match ready.map(|c| c["status"] == "True") {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node.at("/spec/unschedulable") == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn roles(node: &Object) -> String {
    let labels = node.metadata().get("labels").and_then(Value::as_object);
    let role = |(key, value): (&String, &Value)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => Some(role.to_owned()),
        None if key == "kubernetes.io/role" => value.as_str().map(str::to_owned),
        None => None,
    };
    labels.into_iter().flatten().filter_map(role).collect::<Vec<_>>().join(",")
}

pub(super) const EVENT: Fixed = Fixed {
    columns: &[
        text("Last Seen"),
        text("Type"),
        text("Reason"),
        text("Object"),
        wide("Subobject"),
        wide("Source"),
        text("Message"),
        wide("First Seen"),
        Column { priority: 1, ..number("Count") },
        Column { priority: 1, ..NAME },
    ],
    cells: |o, now| {
        let first = [o.str_at("/firstTimestamp"), o.str_at("/eventTime"), o.meta_str("creationTimestamp")];
        let last = [o.str_at("/series/lastObservedTime"), o.str_at("/lastTimestamp")];
        let seen =
            |times: &[&str]| age(times.iter().find(|t| !t.is_empty()).copied().unwrap_or_default(), now);
        let kind = o.str_at("/involvedObject/kind").to_lowercase();
        let source = [o.str_at("/source/component"), o.str_at("/source/host")];
        vec![
            seen(&[&last[..], &first[..]].concat()),
            o.str_at("/type").into(),
            o.str_at("/reason").into(),
            format!("{kind}/{}", o.str_at("/involvedObject/name")).into(),
            o.str_at("/involvedObject/fieldPath").into(),
            source.iter().filter(|s| !s.is_empty()).copied().collect::<Vec<_>>().join(", ").into(),
            o.str_at("/message").trim().into(),
            seen(&first),
            count(o, "/count").max(1).into(),
            o.name().into(),
        ]
    },
};
