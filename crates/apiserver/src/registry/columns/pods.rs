//! Pods: readiness, reason, restarts.

use serde_json::Value;

use super::super::Object;
use super::{AGE, Fixed, NAME, age, born, items, or_none, text, wide};

pub(in crate::registry) const POD: Fixed = Fixed {
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
    let state = State::of(pod);
    let ip = items(pod, "/status/podIPs").first().and_then(|ip| ip["ip"].as_str()).unwrap_or_default();
    vec![
        pod.name().into(),
        format!("{}/{}", state.ready, state.containers).into(),
        state.reason(pod).into(),
        state.restarts.shown(now).into(),
        born(pod, now),
        or_none(ip),
        or_none(pod.str_at("/spec/nodeName")),
        or_none(pod.str_at("/status/nominatedNodeName")),
        readiness_gates(pod),
    ]
}

/// The totals of the containers of a pod.
struct State<'p> {
    ready: usize,
    containers: usize,
    restarts: Restarts<'p>,
    reason: String,
}

/// Restarts of the containers, and the time of the last one.
#[derive(Default, Clone, Copy)]
struct Restarts<'p> {
    count: i64,
    last: &'p str,
}

impl<'p> Restarts<'p> {
    fn add(&mut self, status: &'p Value) {
        self.count += status["restartCount"].as_i64().unwrap_or_default();
        let ended = status["lastState"]["terminated"]["finishedAt"].as_str().unwrap_or_default();
        self.last = self.last.max(ended); // times of one form are ordered as text is
    }

    fn shown(self, now: i64) -> String {
        match (self.count, self.last) {
            (0, _) | (_, "") => self.count.to_string(),
            (count, last) => format!("{count} ({} ago)", age(last, now).as_str().unwrap_or_default()),
        }
    }
}

impl<'p> State<'p> {
    fn of(pod: &'p Object) -> Self {
        let mut state = Self {
            ready: 0,
            containers: items(pod, "/spec/containers").len(),
            restarts: Restarts::default(),
            reason: phase_or_reason(pod),
        };
        state.containers += items(pod, "/spec/initContainers").iter().filter(|c| is_sidecar(c)).count();
        let (initializing, of_sidecars) = state.initialize(pod);
        if !initializing || holds(pod, "Initialized") {
            state.restarts = of_sidecars;
            state.run(pod);
        }
        state
    }

    /// Adds the init containers. Returns whether one has not completed, and the restarts of the sidecars among them.
    fn initialize(&mut self, pod: &'p Object) -> (bool, Restarts<'p>) {
        let all = items(pod, "/spec/initContainers");
        let mut of_sidecars = Restarts::default();
        for (i, status) in items(pod, "/status/initContainerStatuses").iter().enumerate() {
            self.restarts.add(status);
            let sidecar = all.iter().any(|c| c["name"] == status["name"] && is_sidecar(c));
            if sidecar {
                of_sidecars.add(status);
            }
            let ended = status["state"].get("terminated");
            if ended.is_some_and(|ended| ended["exitCode"].as_i64().unwrap_or_default() == 0) {
                continue;
            }
            if sidecar && status["started"] == true {
                self.ready += usize::from(status["ready"] == true);
                continue;
            }
            let waits = status["state"]["waiting"]["reason"].as_str().unwrap_or_default();
            self.reason = match ended {
                Some(ended) => format!("Init:{}", end_of(ended)),
                None if !["", "PodInitializing"].contains(&waits) => format!("Init:{waits}"),
                None => format!("Init:{i}/{}", all.len()),
            };
            return (true, of_sidecars);
        }
        (false, of_sidecars)
    }

    fn run(&mut self, pod: &'p Object) {
        let (mut running, mut error) = (false, None);
        for status in items(pod, "/status/containerStatuses").iter().rev() {
            self.restarts.add(status);
            let waits = status["state"]["waiting"]["reason"].as_str().unwrap_or_default();
            if !waits.is_empty() {
                self.reason = waits.to_owned();
            } else if let Some(ended) = status["state"].get("terminated") {
                self.reason = end_of(ended);
                if ended["exitCode"].as_i64().unwrap_or_default() != 0 {
                    error = Some(self.reason.clone());
                }
            } else if status["ready"] == true && status["state"].get("running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            // One has completed, others may be running.
            match (running, holds(pod, "Ready"), error) {
                (true, true, _) => self.reason = "Running".to_owned(),
                (_, _, Some(error)) => self.reason = error,
                (true, false, None) => self.reason = "NotReady".to_owned(),
                (false, _, None) => {}
            }
        }
    }

    /// The reason, from the containers unless the pod is being deleted.
    fn reason(&self, pod: &Object) -> String {
        let finished = ["Succeeded", "Failed"].contains(&pod.str_at("/status/phase"));
        match (pod.is_deleting(), pod.str_at("/status/reason")) {
            (true, "NodeLost") => "Unknown".to_owned(),
            (true, _) if !finished => "Terminating".to_owned(),
            _ => self.reason.clone(),
        }
    }
}

fn phase_or_reason(pod: &Object) -> String {
    const GATED: &str = "SchedulingGated";
    let gated = |c: &Value| c["type"] == "PodScheduled" && c["reason"] == GATED;
    match pod.str_at("/status/reason") {
        _ if items(pod, "/status/conditions").iter().any(gated) => GATED.to_owned(),
        "" => pod.str_at("/status/phase").to_owned(),
        reason => reason.to_owned(),
    }
}

/// Whether an init container is a sidecar.
fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn end_of(terminated: &Value) -> String {
    let number = |field: &str| terminated[field].as_i64().unwrap_or_default();
    match (terminated["reason"].as_str().unwrap_or_default(), number("signal")) {
        ("", 0) => format!("ExitCode:{}", number("exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn holds(pod: &Object, condition: &str) -> bool {
    items(pod, "/status/conditions").iter().any(|c| c["type"] == condition && c["status"] == "True")
}

fn readiness_gates(pod: &Object) -> Value {
    let gates = items(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let open = |gate: &&Value| gate["conditionType"].as_str().is_some_and(|condition| holds(pod, condition));
    format!("{}/{}", gates.iter().filter(open).count(), gates.len()).into()
}
