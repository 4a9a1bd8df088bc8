//! Workloads: resources that create pods from a template.

use serde_json::Value;

use super::super::Object;
use super::selector::selector;
use super::{AGE, Column, Fixed, NAME, age, born, count, items, number, or_none, pairs, text, truth, wide};

pub(in crate::registry) const DEPLOYMENT: Fixed = Fixed {
    columns: &[
        NAME,
        text("Ready"),
        text("Up-to-date"),
        text("Available"),
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
            born(o, now),
        ];
        cells.extend(template(o));
        cells
    },
};

/// The table of `/scale`, of built-in resources and of custom ones.
pub(crate) const SCALE: Fixed = Fixed {
    columns: &[text("Name"), number("Desired"), number("Available"), AGE],
    cells: |o, now| {
        let [desired, available] = ["/spec/replicas", "/status/replicas"].map(|field| count(o, field).into());
        vec![o.name().into(), desired, available, born(o, now)]
    },
};

const REPLICAS: &[Column] = &[
    NAME,
    number("Desired"),
    number("Current"),
    number("Ready"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

pub(in crate::registry) const REPLICA_SET: Fixed =
    Fixed { columns: REPLICAS, cells: |o, now| [&replicas(o, now)[..], &template(o)].concat() };

pub(in crate::registry) const REPLICATION_CONTROLLER: Fixed = Fixed {
    columns: REPLICAS,
    cells: |o, now| {
        let [containers, images, _] = template(o);
        let selector = or_none(&pairs(o.at("/spec/selector")));
        [&replicas(o, now)[..], &[containers, images, selector]].concat()
    },
};

fn replicas(o: &Object, now: i64) -> [Value; 5] {
    [
        o.name().into(),
        count(o, "/spec/replicas").into(),
        count(o, "/status/replicas").into(),
        count(o, "/status/readyReplicas").into(),
        born(o, now),
    ]
}

pub(in crate::registry) const POD_TEMPLATE: Fixed = Fixed {
    columns: &[NAME, text("Containers"), text("Images"), text("Pod Labels")],
    cells: |o, _| {
        let containers = items(o, "/template/spec/containers");
        vec![
            o.name().into(),
            joined(containers, "name").into(),
            joined(containers, "image").into(),
            or_none(&pairs(o.at("/template/metadata/labels"))),
        ]
    },
};

pub(in crate::registry) const REVISION: Fixed = Fixed {
    columns: &[NAME, text("Controller"), text("Revision"), AGE],
    cells: |o, now| {
        let owners = items(o, "/metadata/ownerReferences");
        let controller = owners.iter().find(|owner| owner["controller"] == true).map(|owner| {
            let part = |field: &str| owner[field].as_str().unwrap_or_default();
            let group = part("apiVersion").split_once('/').map(|(group, _)| format!(".{group}"));
            let kind = format!("{}{}", part("kind"), group.unwrap_or_default()).to_lowercase();
            format!("{kind}/{}", part("name"))
        });
        vec![
            o.name().into(),
            controller.map_or("<none>".into(), Value::from),
            count(o, "/revision").into(),
            born(o, now),
        ]
    },
};

pub(in crate::registry) const STATEFUL_SET: Fixed = Fixed {
    columns: &[NAME, text("Ready"), AGE, wide("Containers"), wide("Images")],
    cells: |o, now| {
        let ready = format!("{}/{}", count(o, "/status/readyReplicas"), count(o, "/spec/replicas"));
        let [containers, images, _] = template(o);
        vec![o.name().into(), ready.into(), born(o, now), containers, images]
    },
};

pub(in crate::registry) const DAEMON_SET: Fixed = Fixed {
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
        cells.push(born(o, now));
        cells.extend(template(o));
        cells
    },
};

pub(in crate::registry) const JOB: Fixed = Fixed {
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
        let wanted = match (o.at("/spec/completions"), count(o, "/spec/parallelism")) {
            (Some(completions), _) => completions.to_string(),
            (None, parallel @ 2..) => format!("1 of {parallel}"),
            (None, _) => "1".to_owned(),
        };
        let (start, end) = (o.str_at("/status/startTime"), o.str_at("/status/completionTime"));
        let end = end.parse::<jiff::Timestamp>().map_or(now, |t| t.as_second());
        let duration = if start.is_empty() { "".into() } else { age(start, end) };
        let mut cells = vec![
            o.name().into(),
            job_status(o).into(),
            format!("{}/{wanted}", count(o, "/status/succeeded")).into(),
            duration,
            born(o, now),
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

pub(in crate::registry) const CRON_JOB: Fixed = Fixed {
    columns: &[
        NAME,
        text("Schedule"),
        text("Timezone"),
        truth("Suspend"),
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
            born(o, now),
            joined(containers, "name").into(),
            joined(containers, "image").into(),
            or_none(&selector(o.at("/spec/jobTemplate/spec/selector"))),
        ]
    },
};

/// Containers, images and selector.
fn template(o: &Object) -> [Value; 3] {
    let containers = items(o, "/spec/template/spec/containers");
    let selected = or_none(&selector(o.at("/spec/selector")));
    [joined(containers, "name").into(), joined(containers, "image").into(), selected]
}

fn joined(containers: &[Value], field: &str) -> String {
    containers.iter().filter_map(|c| c[field].as_str()).collect::<Vec<_>>().join(",")
}
