//! Pods: readiness, the reason they are in, restarts.

use serde_json::Value;

use super::super::Object;
use super::{AGE, Fixed, NAME, age, items, or_none, text, wide};

pub(super) const POD: Fixed = Fixed {
    columns: &[
        NAME,
        text("Ready"),
        text("Status"),
        text("Restarts"),
        AGE,
        wide("IP"),
        wide("Node"),
        wide("Nominated Node"),
        wide("Readiness Gates"),
    ],
    cells,
};

fn cells(pod: &Object, now: i64) -> Vec<Value> {
    let statuses = items(pod, "/status/containerStatuses");
    let ready = statuses.iter().filter(|s| s["ready"] == true).count();
    let restarts: i64 = statuses.iter().filter_map(|s| s["restartCount"].as_i64()).sum();
    let ip = items(pod, "/status/podIPs")
        .first()
        .and_then(|ip| ip["ip"].as_str())
        .unwrap_or(pod.str_at("/status/podIP"));
    vec![
        pod.name().into(),
        format!("{ready}/{}", items(pod, "/spec/containers").len()).into(),
        reason(pod, statuses).into(),
        restarts.to_string().into(),
        age(pod.meta_str("creationTimestamp"), now),
        or_none(ip),
        or_none(pod.str_at("/spec/nodeName")),
        or_none(pod.str_at("/status/nominatedNodeName")),
        readiness_gates(pod),
    ]
}

/// The phase, unless something more telling is known.
fn reason(pod: &Object, statuses: &[Value]) -> String {
    let phase = pod.str_at("/status/phase");
    let mut reason = pod.str_at("/status/reason").to_owned();
    if reason.is_empty() {
        reason = phase.to_owned();
    }
    for status in statuses.iter().rev() {
        let state = |which: &str| status["state"].get(which);
        let told = |which: &str| {
            state(which).and_then(|s| s["reason"].as_str()).filter(|r| !r.is_empty()).map(str::to_owned)
        };
        if let Some(waiting) = told("waiting") {
            reason = waiting;
        } else if let Some(terminated) = told("terminated") {
            reason = terminated;
        } else if let Some(terminated) = state("terminated") {
            reason = match terminated["signal"].as_i64().filter(|s| *s != 0) {
                Some(signal) => format!("Signal:{signal}"),
                None => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or_default()),
            };
        }
    }
    let finished = ["Succeeded", "Failed"].contains(&phase);
    match (pod.is_deleting(), pod.str_at("/status/reason")) {
        (true, "NodeLost") => "Unknown".to_owned(),
        (true, _) if !finished => "Terminating".to_owned(),
        _ => reason,
    }
}

fn readiness_gates(pod: &Object) -> Value {
    let gates = items(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let conditions = items(pod, "/status/conditions");
    let open = |gate: &&Value| {
        conditions.iter().any(|c| c["type"] == gate["conditionType"] && c["status"] == "True")
    };
    format!("{}/{}", gates.iter().filter(open).count(), gates.len()).into()
}
