//! Configuration, services, nodes, namespaces, events.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::Object;
use super::networking::balancers;
use super::{AGE, Column, Fixed, NAME, age, born, count, items, or_none, pairs, text, wide};

fn size(object: &Object, field: &str) -> usize {
    object.root().get(field).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

pub(in crate::registry) const CONFIG_MAP: Fixed = Fixed {
    columns: &[NAME, text("Data"), AGE],
    cells: |o, now| vec![o.name().into(), (size(o, "data") + size(o, "binaryData")).into(), born(o, now)],
};

pub(in crate::registry) const COMPONENT_STATUS: Fixed = Fixed {
    columns: &[NAME, text("Status"), text("Message"), text("Error")],
    cells: |o, _| {
        let health = items(o, "/conditions").iter().find(|condition| condition["type"] == "Healthy");
        let field = |name: &str| health.map_or("", |health| health[name].as_str().unwrap_or_default());
        let status = if field("status") == "True" { "Healthy" } else { "Unhealthy" };
        vec![o.name().into(), status.into(), field("message").into(), field("error").into()]
    },
};

pub(in crate::registry) const SECRET: Fixed = Fixed {
    columns: &[NAME, text("Type"), text("Data"), AGE],
    cells: |o, now| vec![o.name().into(), o.str_at("/type").into(), size(o, "data").into(), born(o, now)],
};

pub(in crate::registry) const LEASE: Fixed = Fixed {
    columns: &[NAME, text("Holder"), AGE],
    cells: |o, now| vec![o.name().into(), o.str_at("/spec/holderIdentity").into(), born(o, now)],
};

pub(in crate::registry) const NAMESPACE: Fixed = Fixed {
    columns: &[NAME, text("Status"), AGE],
    cells: |o, now| vec![o.name().into(), o.str_at("/status/phase").into(), born(o, now)],
};

pub(in crate::registry) const SERVICE: Fixed = Fixed {
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
            or_none(o.str_at("/spec/clusterIPs/0")),
            external_address(o),
            or_none(&ports(o)),
            born(o, now),
            or_none(&pairs(o.at("/spec/selector"))),
        ]
    },
};

fn external_address(service: &Object) -> Value {
    let given: Vec<&str> = items(service, "/spec/externalIPs").iter().filter_map(Value::as_str).collect();
    match service.str_at("/spec/type") {
        "ExternalName" => service.str_at("/spec/externalName").into(),
        "LoadBalancer" => {
            let balanced = balancers(service, "/status/loadBalancer/ingress");
            let all: Vec<&str> =
                [balanced.as_str()].into_iter().filter(|b| !b.is_empty()).chain(given).collect();
            if all.is_empty() { "<pending>".into() } else { all.join(",").into() }
        }
        _ => or_none(&given.join(",")),
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

pub(in crate::registry) const NODE: Fixed = Fixed {
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
            match (info("kernelVersion"), o.str_at("/status/nodeInfo/architecture")) {
                (version, "") => version,
                (version, arch) => format!("{} ({arch})", version.as_str().unwrap_or_default()).into(),
            },
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
    let roles: BTreeSet<String> =
        labels.into_iter().flatten().filter_map(role).filter(|r| !r.is_empty()).collect();
    roles.into_iter().collect::<Vec<_>>().join(",")
}

pub(in crate::registry) const EVENT: Fixed = Fixed {
    columns: &[
        text("Last Seen"),
        text("Type"),
        text("Reason"),
        text("Object"),
        wide("Subobject"),
        wide("Source"),
        text("Message"),
        wide("First Seen"),
        wide("Count"),
        Column { priority: 1, ..NAME },
    ],
    cells: event,
};

/// The two event APIs have different names for the same fields.
fn event(o: &Object, now: i64) -> Vec<Value> {
    let either =
        |names: [&str; 2]| names.iter().map(|name| o.str_at(name)).find(|v| !v.is_empty()).unwrap_or("");
    let regarding = |field: &str| {
        either([&format!("/involvedObject/{field}"), &format!("/regarding/{field}")]).to_owned()
    };
    let first = match either(["/firstTimestamp", "/deprecatedFirstTimestamp"]) {
        "" => o.str_at("/eventTime"),
        first => first,
    };
    let series = o.at("/series").filter(|series| series.is_object());
    let (last, count) = match series {
        Some(_) => (o.str_at("/series/lastObservedTime"), count(o, "/series/count")),
        None => {
            let last = either(["/lastTimestamp", "/deprecatedLastTimestamp"]);
            let times = count(o, "/count").max(count(o, "/deprecatedCount")).max(1);
            (if last.is_empty() { first } else { last }, times)
        }
    };
    let name = regarding("name");
    let object = [regarding("kind").to_lowercase(), name];
    let parts: Vec<&str> = object.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    vec![
        age(last, now),
        o.str_at("/type").into(),
        o.str_at("/reason").into(),
        parts.join("/").into(),
        regarding("fieldPath").into(),
        source(o).into(),
        either(["/message", "/note"]).trim().into(),
        age(first, now),
        count.into(),
        o.name().into(),
    ]
}

fn source(event: &Object) -> String {
    let any = |names: &[&str]| {
        names.iter().map(|name| event.str_at(name)).find(|v| !v.is_empty()).unwrap_or_default().to_owned()
    };
    let component = any(&[
        "/source/component",
        "/deprecatedSource/component",
        "/reportingComponent",
        "/reportingController",
    ]);
    match any(&["/source/host", "/deprecatedSource/host", "/reportingInstance"]).as_str() {
        "" => component,
        instance => format!("{component}, {instance}"),
    }
}
