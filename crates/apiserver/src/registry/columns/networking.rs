//! Endpoints, ingresses and network policies.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::Object;
use super::selector::{selector, some_of};
use super::{AGE, Fixed, NAME, born, items, or_none, text};

/// The most addresses, ports or hosts of a row.
const SHOWN: usize = 3;

pub(in crate::registry) const ENDPOINTS: Fixed = Fixed {
    columns: &[NAME, text("Endpoints"), AGE],
    cells: |o, now| vec![o.name().into(), endpoints(o).into(), born(o, now)],
};

fn endpoints(object: &Object) -> String {
    let subsets = items(object, "/subsets");
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = || list(&subset["addresses"]).iter().map(|address| string(&address["ip"]));
        let ports = list(&subset["ports"]);
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            let number = port["port"].as_i64().unwrap_or_default();
            all.extend(addresses().map(|ip| match ip.contains(':') {
                true => format!("[{ip}]:{number}"),
                false => format!("{ip}:{number}"),
            }));
        }
    }
    some_of(&all, SHOWN, ",")
}

pub(in crate::registry) const API_SERVICE: Fixed = Fixed {
    columns: &[NAME, text("Service"), text("Available"), AGE],
    cells: |o, now| {
        let service = match o.at("/spec/service") {
            Some(service) if service.is_object() => {
                format!("{}/{}", string(&service["namespace"]), string(&service["name"]))
            }
            _ => "Local".to_owned(),
        };
        let available =
            items(o, "/status/conditions").iter().find(|condition| condition["type"] == "Available");
        let available =
            available.map_or("Unknown".to_owned(), |condition| match string(&condition["status"]) {
                "True" => "True".to_owned(),
                status => format!("{status} ({})", string(&condition["reason"])),
            });
        vec![o.name().into(), service.into(), available.into(), born(o, now)]
    },
};

pub(in crate::registry) const ENDPOINT_SLICE: Fixed = Fixed {
    columns: &[NAME, text("AddressType"), text("Ports"), text("Endpoints"), AGE],
    cells: |o, now| {
        let port = |port: &Value| match port["port"].as_i64() {
            Some(number) => number.to_string(),
            None => port["name"].as_str().unwrap_or("*").to_owned(),
        };
        let ports: Vec<String> = items(o, "/ports").iter().map(port).collect();
        let addresses: Vec<String> = items(o, "/endpoints")
            .iter()
            .flat_map(|endpoint| list(&endpoint["addresses"]))
            .map(|address| string(address).to_owned())
            .collect();
        let shown = |all: &[String]| match some_of(all, SHOWN, ",").as_str() {
            "" => Value::from("<unset>"),
            some => some.into(),
        };
        vec![o.name().into(), o.str_at("/addressType").into(), shown(&ports), shown(&addresses), born(o, now)]
    },
};

pub(in crate::registry) const INGRESS: Fixed = Fixed {
    columns: &[NAME, text("Class"), text("Hosts"), text("Address"), text("Ports"), AGE],
    cells: |o, now| {
        let ports = if items(o, "/spec/tls").is_empty() { "80" } else { "80, 443" };
        vec![
            o.name().into(),
            o.at("/spec/ingressClassName").cloned().unwrap_or("<none>".into()),
            hosts(o).into(),
            balancers(o, "/status/loadBalancer/ingress").into(),
            ports.into(),
            born(o, now),
        ]
    },
};

fn hosts(ingress: &Object) -> String {
    let rules = items(ingress, "/spec/rules");
    let hosts: Vec<&str> = rules.iter().map(|rule| string(&rule["host"])).filter(|h| !h.is_empty()).collect();
    if hosts.is_empty() {
        return "*".to_owned();
    }
    // The rest counts rules after the last shown host, including rules without a host.
    let last = rules.iter().rposition(|rule| Some(&string(&rule["host"])) == hosts.get(SHOWN - 1));
    match last {
        Some(last) if last + 1 < rules.len() => {
            format!("{} + {} more...", hosts[..SHOWN].join(","), rules.len() - SHOWN)
        }
        _ => hosts.join(","),
    }
}

pub(super) fn balancers(object: &Object, at: &str) -> String {
    let address = |one: &Value| match string(&one["ip"]) {
        "" => string(&one["hostname"]).to_owned(),
        ip => ip.to_owned(),
    };
    let all: BTreeSet<String> = items(object, at).iter().map(address).filter(|a| !a.is_empty()).collect();
    all.into_iter().collect::<Vec<_>>().join(",")
}

pub(in crate::registry) const INGRESS_CLASS: Fixed = Fixed {
    columns: &[NAME, text("Controller"), text("Parameters"), AGE],
    cells: |o, now| {
        let default = "ingressclass.kubernetes.io/is-default-class";
        let parameters = o.at("/spec/parameters").map(|p| match p["apiGroup"].as_str() {
            Some(group) => format!("{}.{group}/{}", string(&p["kind"]), string(&p["name"])),
            None => format!("{}/{}", string(&p["kind"]), string(&p["name"])),
        });
        vec![
            super::marked_default(o, &[default]),
            o.str_at("/spec/controller").into(),
            parameters.map_or("<none>".into(), Value::from),
            born(o, now),
        ]
    },
};

pub(in crate::registry) const NETWORK_POLICY: Fixed = Fixed {
    columns: &[NAME, text("Pod-Selector"), AGE],
    cells: |o, now| vec![o.name().into(), or_none(&selector(o.at("/spec/podSelector"))), born(o, now)],
};

pub(in crate::registry) const SERVICE_CIDR: Fixed = Fixed {
    columns: &[NAME, text("CIDRs"), AGE],
    cells: |o, now| {
        let all: Vec<&str> = items(o, "/spec/cidrs").iter().map(string).collect();
        vec![o.name().into(), all.join(",").into(), born(o, now)]
    },
};

/// One cell more than columns, as in kube-apiserver.
pub(in crate::registry) const IP_ADDRESS: Fixed = Fixed {
    columns: &[NAME, text("ParentRef")],
    cells: |o, now| {
        let parent = o.at("/spec/parentRef").map(|parent| {
            let part = |field: &str| string(&parent[field]);
            let resource = match part("group") {
                "" => part("resource").to_lowercase(),
                group => format!("{}.{group}", part("resource")).to_lowercase(),
            };
            let path = [part("namespace"), part("name")];
            path.iter().filter(|p| !p.is_empty()).fold(resource, |all, part| format!("{all}/{part}"))
        });
        vec![o.name().into(), parent.map_or("<none>".into(), Value::from), born(o, now)]
    },
};

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
