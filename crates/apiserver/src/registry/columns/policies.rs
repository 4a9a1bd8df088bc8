//! Budgets, quotas, autoscaling, access, classes, admission.

use serde_json::Value;

use super::super::Object;
use super::super::conversion::as_v2;
use super::age::human;
use super::selector::{selector, some_of};
use super::{AGE, Fixed, NAME, born, count, flag, items, number, text, truth, wide};

pub(in crate::registry) const BUDGET: Fixed = Fixed {
    columns: &[NAME, text("Min Available"), text("Max Unavailable"), number("Allowed Disruptions"), AGE],
    cells: |o, now| {
        let share = |at: &str| match o.at(at) {
            Some(Value::String(text)) => text.clone(),
            Some(number) => number.to_string(),
            None => "N/A".to_owned(),
        };
        vec![
            o.name().into(),
            share("/spec/minAvailable").into(),
            share("/spec/maxUnavailable").into(),
            count(o, "/status/disruptionsAllowed").into(),
            born(o, now),
        ]
    },
};

pub(in crate::registry) const QUOTA: Fixed = Fixed {
    columns: &[NAME, text("Request"), text("Limit"), AGE],
    cells: |o, now| {
        let (mut requests, mut limits) = (Vec::new(), Vec::new());
        for (name, hard) in o.at("/status/hard").and_then(Value::as_object).into_iter().flatten() {
            let used = o.at("/status/used").and_then(|used| used[name].as_str()).unwrap_or("0");
            let column = if name.starts_with("limits.") { &mut limits } else { &mut requests };
            column.push(format!("{name}: {used}/{}", hard.as_str().unwrap_or_default()));
        }
        vec![o.name().into(), requests.join(", ").into(), limits.join(", ").into(), born(o, now)]
    },
};

pub(in crate::registry) const AUTOSCALER: Fixed = Fixed {
    columns: &[
        NAME,
        text("Reference"),
        text("Targets"),
        text("MinPods"),
        text("MaxPods"),
        text("Replicas"),
        AGE,
    ],
    cells: |o, now| {
        let target = (o.str_at("/spec/scaleTargetRef/kind"), o.str_at("/spec/scaleTargetRef/name"));
        let least = o.at("/spec/minReplicas").map_or("<unset>".to_owned(), Value::to_string);
        vec![
            o.name().into(),
            format!("{}/{}", target.0, target.1).into(),
            metrics(o).into(),
            least.into(),
            count(o, "/spec/maxReplicas").into(),
            count(o, "/status/currentReplicas").into(),
            born(o, now),
        ]
    },
};

pub(in crate::registry) const AUTOSCALER_V1: Fixed =
    Fixed { cells: |o, now| (AUTOSCALER.cells)(&as_v2(o), now), ..AUTOSCALER };

/// Current and target values, as `cpu: 20%/80%`.
fn metrics(autoscaler: &Object) -> String {
    const SHOWN: usize = 2;
    let (wanted, found) = (items(autoscaler, "/spec/metrics"), items(autoscaler, "/status/currentMetrics"));
    let all: Vec<String> =
        wanted.iter().enumerate().map(|(i, wanted)| metric(wanted, found.get(i))).collect();
    if all.is_empty() { "<none>".to_owned() } else { some_of(&all, SHOWN, ", ") }
}

fn metric(metric: &Value, found: Option<&Value>) -> String {
    let source = match metric["type"].as_str().unwrap_or_default() {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let target = &metric[source]["target"];
    let current = |field: &str| match found.map(|found| &found[source]["current"][field]) {
        Some(Value::String(quantity)) => quantity.clone(),
        Some(Value::Number(percent)) => format!("{percent}%"),
        _ => "<unknown>".to_owned(),
    };
    let resource = metric[source]["name"].as_str().unwrap_or_default();
    match (source, target["averageValue"].as_str()) {
        ("external" | "object", Some(average)) => format!("{}/{average} (avg)", current("averageValue")),
        ("external" | "object", None) => {
            format!("{}/{}", current("value"), target["value"].as_str().unwrap_or("0"))
        }
        ("pods", average) => format!("{}/{}", current("averageValue"), average.unwrap_or("0")),
        (_, Some(average)) => format!("{resource}: {}/{average}", current("averageValue")),
        (_, None) => {
            let wished =
                target["averageUtilization"].as_i64().map_or("<auto>".to_owned(), |n| format!("{n}%"));
            format!("{resource}: {}/{wished}", current("averageUtilization"))
        }
    }
}

pub(in crate::registry) const BINDING: Fixed = Fixed {
    columns: &[NAME, text("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")],
    cells: |o, now| {
        let subjects = |kind: &str| {
            let named = items(o, "/subjects").iter().filter(|subject| subject["kind"] == kind);
            let name = |subject: &Value| {
                let name = subject["name"].as_str().unwrap_or_default();
                match subject["namespace"].as_str() {
                    Some(namespace) if kind == "ServiceAccount" => format!("{namespace}/{name}"),
                    _ => name.to_owned(),
                }
            };
            Value::from(named.map(name).collect::<Vec<_>>().join(", "))
        };
        vec![
            o.name().into(),
            format!("{}/{}", o.str_at("/roleRef/kind"), o.str_at("/roleRef/name")).into(),
            born(o, now),
            subjects("User"),
            subjects("Group"),
            subjects("ServiceAccount"),
        ]
    },
};

pub(in crate::registry) const PRIORITY_CLASS: Fixed = Fixed {
    columns: &[NAME, number("Value"), truth("Global-Default"), AGE, text("PreemptionPolicy")],
    cells: |o, now| {
        vec![
            o.name().into(),
            count(o, "/value").into(),
            flag(o, "/globalDefault", false),
            born(o, now),
            o.str_at("/preemptionPolicy").into(),
        ]
    },
};

pub(in crate::registry) const RUNTIME_CLASS: Fixed = Fixed {
    columns: &[NAME, text("Handler"), AGE],
    cells: |o, now| vec![o.name().into(), o.str_at("/handler").into(), born(o, now)],
};

pub(in crate::registry) const SIGNING_REQUEST: Fixed = Fixed {
    columns: &[
        NAME,
        AGE,
        text("SignerName"),
        text("Requestor"),
        text("RequestedDuration"),
        text("Condition"),
    ],
    cells: |o, now| {
        let duration = o.at("/spec/expirationSeconds").and_then(Value::as_i64);
        let signer = o.str_at("/spec/signerName");
        vec![
            o.name().into(),
            born(o, now),
            if signer.is_empty() { "<none>".into() } else { signer.into() },
            o.str_at("/spec/username").into(),
            duration.map_or("<none>".to_owned(), human).into(),
            request_state(o).into(),
        ]
    },
};

fn request_state(request: &Object) -> String {
    let has = |kind: &str| items(request, "/status/conditions").iter().any(|c| c["type"] == kind);
    let mut state = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        state.push_str(",Failed");
    }
    if !request.str_at("/status/certificate").is_empty() {
        state.push_str(",Issued");
    }
    state
}

pub(in crate::registry) const WEBHOOKS: Fixed = Fixed {
    columns: &[NAME, number("Webhooks"), AGE],
    cells: |o, now| vec![o.name().into(), items(o, "/webhooks").len().into(), born(o, now)],
};

pub(in crate::registry) const VALIDATING_POLICY: Fixed = Fixed {
    columns: &[NAME, number("Validations"), text("ParamKind"), AGE],
    cells: |o, now| policy(o, "/spec/validations", now),
};

pub(in crate::registry) const MUTATING_POLICY: Fixed = Fixed {
    columns: &[NAME, number("Mutations"), text("ParamKind"), AGE],
    cells: |o, now| policy(o, "/spec/mutations", now),
};

fn policy(o: &Object, rules: &str, now: i64) -> Vec<Value> {
    let kind = o
        .at("/spec/paramKind")
        .map(|_| format!("{}/{}", o.str_at("/spec/paramKind/apiVersion"), o.str_at("/spec/paramKind/kind")));
    vec![
        o.name().into(),
        items(o, rules).len().into(),
        kind.map_or("<unset>".into(), Value::from),
        born(o, now),
    ]
}

pub(in crate::registry) const POLICY_BINDING: Fixed = Fixed {
    columns: &[NAME, text("PolicyName"), text("ParamRef"), AGE],
    cells: |o, now| {
        let (name, namespace) = (o.str_at("/spec/paramRef/name"), o.str_at("/spec/paramRef/namespace"));
        let parameter = match (name, namespace) {
            ("", _) => match selector(o.at("/spec/paramRef/selector")).as_str() {
                "" => "<unset>".to_owned(),
                selector => selector.to_owned(),
            },
            (name, "") => format!("*/{name}"),
            (name, namespace) => format!("{namespace}/{name}"),
        };
        vec![o.name().into(), o.str_at("/spec/policyName").into(), parameter.into(), born(o, now)]
    },
};

pub(in crate::registry) const FLOW: Fixed = Fixed {
    columns: &[
        NAME,
        text("PriorityLevel"),
        text("MatchingPrecedence"),
        text("DistinguisherMethod"),
        AGE,
        text("MissingPL"),
    ],
    cells: |o, now| {
        let dangling = items(o, "/status/conditions").iter().find(|c| c["type"] == "Dangling");
        vec![
            o.name().into(),
            o.str_at("/spec/priorityLevelConfiguration/name").into(),
            count(o, "/spec/matchingPrecedence").into(),
            o.at("/spec/distinguisherMethod/type").cloned().unwrap_or("<none>".into()),
            born(o, now),
            dangling.map_or("?".into(), |c| c["status"].clone()),
        ]
    },
};

pub(in crate::registry) const PRIORITY_LEVEL: Fixed = Fixed {
    columns: &[
        NAME,
        text("Type"),
        text("NominalConcurrencyShares"),
        text("Queues"),
        text("HandSize"),
        text("QueueLengthLimit"),
        AGE,
    ],
    cells: |o, now| {
        let limit = |field: &str| o.at(&format!("/spec/limited/{field}")).cloned().unwrap_or("<none>".into());
        vec![
            o.name().into(),
            o.str_at("/spec/type").into(),
            limit("nominalConcurrencyShares"),
            limit("limitResponse/queuing/queues"),
            limit("limitResponse/queuing/handSize"),
            limit("limitResponse/queuing/queueLengthLimit"),
            born(o, now),
        ]
    },
};

pub(in crate::registry) const RESOURCE_CLAIM: Fixed = Fixed {
    columns: &[NAME, text("State"), AGE],
    cells: |o, now| {
        let mut states = Vec::new();
        if o.is_deleting() {
            states.push("deleted");
        }
        match o.at("/status/allocation") {
            None if !o.is_deleting() => states.push("pending"),
            None => {}
            Some(_) => states.push("allocated"),
        }
        if o.at("/status/allocation").is_some() && !items(o, "/status/reservedFor").is_empty() {
            states.push("reserved");
        }
        vec![o.name().into(), states.join(",").into(), born(o, now)]
    },
};

pub(in crate::registry) const RESOURCE_SLICE: Fixed = Fixed {
    columns: &[NAME, text("Node"), text("Driver"), text("Pool"), AGE],
    cells: |o, now| {
        vec![
            o.name().into(),
            o.str_at("/spec/nodeName").into(),
            o.str_at("/spec/driver").into(),
            o.str_at("/spec/pool/name").into(),
            born(o, now),
        ]
    },
};

/// Kinds without further columns.
pub(in crate::registry) const NAME_AND_AGE: Fixed =
    Fixed { columns: &[NAME, AGE], cells: |o, now| vec![o.name().into(), born(o, now)] };
