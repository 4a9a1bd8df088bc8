//! Everything that makes pods from a template.

use serde_json::Value;

use super::super::Object;
use super::{AGE, Column, Fixed, NAME, age, count, items, number, or_none, pairs, text, wide};

pub(super) const DEPLOYMENT: Fixed = Fixed {
    columns: &[
        NAME,
        text("Ready"),
        number("Up-to-date"),
        number("Available"),
        AGE,
        wide("Containers"),
        wide("Images"),
        wide("Selector"),
    ],
    cells: |o, now| {
        let ready = format!("{}/{}", count(o, "/status/readyReplicas"), count(o, "/spec/replicas"));
        let mut cells = vec![
            o.name().into(),
            ready.into(),
            count(o, "/status/updatedReplicas").into(),
            count(o, "/status/availableReplicas").into(),
            age(o.meta_str("creationTimestamp"), now),
        ];
        cells.extend(template(o));
        cells
    },
};

pub(super) const REPLICA_SET: Fixed = Fixed {
    columns: &[
        NAME,
        number("Desired"),
        number("Current"),
        number("Ready"),
        AGE,
        wide("Containers"),
        wide("Images"),
        wide("Selector"),
    ],
    cells: |o, now| {
        let mut cells = vec![
            o.name().into(),
            count(o, "/spec/replicas").into(),
            count(o, "/status/replicas").into(),
            count(o, "/status/readyReplicas").into(),
            age(o.meta_str("creationTimestamp"), now),
        ];
        cells.extend(template(o));
        cells
    },
};

pub(super) const STATEFUL_SET: Fixed = Fixed {
    columns: &[NAME, text("Ready"), AGE, wide("Containers"), wide("Images")],
    cells: |o, now| {
        let ready = format!("{}/{}", count(o, "/status/readyReplicas"), count(o, "/spec/replicas"));
        let [containers, images, _] = template(o);
        vec![o.name().into(), ready.into(), age(o.meta_str("creationTimestamp"), now), containers, images]
    },
};

pub(super) const DAEMON_SET: Fixed = Fixed {
    columns: &[
        NAME,
        number("Desired"),
        number("Current"),
        number("Ready"),
        number("Up-to-date"),
        number("Available"),
        text("Node Selector"),
        AGE,
        wide("Containers"),
        wide("Images"),
        wide("Selector"),
    ],
    cells: |o, now| {
        let mut cells = vec![o.name().into()];
        let counts = [
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberAvailable",
        ];
        cells.extend(counts.map(|field| count(o, &format!("/status/{field}")).into()));
        cells.push(or_none(&pairs(o.at("/spec/template/spec/nodeSelector"))));
        cells.push(age(o.meta_str("creationTimestamp"), now));
        cells.extend(template(o));
        cells
    },
};

pub(super) const JOB: Fixed = Fixed {
    columns: &[
        NAME,
        text("Status"),
        text("Completions"),
        text("Duration"),
        AGE,
        wide("Containers"),
        wide("Images"),
        wide("Selector"),
    ],
    cells: |o, now| {
        let wanted = o.at("/spec/completions").and_then(Value::as_i64).unwrap_or(1);
        let (start, end) = (o.str_at("/status/startTime"), o.str_at("/status/completionTime"));
        let end = end.parse::<jiff::Timestamp>().map_or(now, |t| t.as_second());
        let duration = if start.is_empty() { "".into() } else { age(start, end) };
        let mut cells = vec![
            o.name().into(),
            job_status(o).into(),
            format!("{}/{wanted}", count(o, "/status/succeeded")).into(),
            duration,
            age(o.meta_str("creationTimestamp"), now),
        ];
        cells.extend(template(o));
        cells
    },
};

fn job_status(job: &Object) -> &'static str {
    let holds = |kind: &str| {
        items(job, "/status/conditions").iter().any(|c| c["type"] == kind && c["status"] == "True")
    };
    match () {
        () if holds("Complete") => "Complete",
        () if holds("Failed") => "Failed",
        () if job.is_deleting() => "Terminating",
        () if holds("Suspended") => "Suspended",
        () if holds("FailureTarget") => "FailureTarget",
        () if holds("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

pub(super) const CRON_JOB: Fixed = Fixed {
    columns: &[
        NAME,
        text("Schedule"),
        text("Timezone"),
        Column { name: "Suspend", kind: "boolean", format: "", priority: 0 },
        number("Active"),
        text("Last Schedule"),
        AGE,
        wide("Containers"),
        wide("Images"),
        wide("Selector"),
    ],
    cells: |o, now| {
        let last = o.str_at("/status/lastScheduleTime");
        let containers = items(o, "/spec/jobTemplate/spec/template/spec/containers");
        let suspended = if o.at("/spec/suspend") == Some(&Value::Bool(true)) { "True" } else { "False" };
        vec![
            o.name().into(),
            o.str_at("/spec/schedule").into(),
            or_none(o.str_at("/spec/timeZone")),
            suspended.into(),
            items(o, "/status/active").len().into(),
            if last.is_empty() { "<none>".into() } else { age(last, now) },
            age(o.meta_str("creationTimestamp"), now),
            joined(containers, "name").into(),
            joined(containers, "image").into(),
            "<none>".into(),
        ]
    },
};

/// Containers, images and selector.
fn template(o: &Object) -> [Value; 3] {
    let containers = items(o, "/spec/template/spec/containers");
    let selector = o.at("/spec/selector");
    let labels = selector.and_then(|s| s.get("matchLabels")).or(selector);
    [joined(containers, "name").into(), joined(containers, "image").into(), or_none(&pairs(labels))]
}

fn joined(containers: &[Value], field: &str) -> String {
    containers.iter().filter_map(|c| c[field].as_str()).collect::<Vec<_>>().join(",")
}
