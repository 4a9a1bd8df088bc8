//! How each kind shows itself as a row: what `kubectl get` prints.

mod age;
mod cluster;
mod pods;
mod workloads;

use serde_json::{Value, json};

pub(crate) use age::age;

use super::Object;
use crate::custom::PrinterColumns;

/// One column. Those with a priority above zero are for wide output.
#[derive(Debug, Clone, Copy)]
struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    priority: u8,
}

/// The table of a built-in kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixed {
    columns: &'static [Column],
    /// The cells of one object, given the present in seconds since 1970.
    cells: fn(&Object, i64) -> Vec<Value>,
}

/// The table of a kind.
#[derive(Debug)]
pub(crate) enum Columns {
    Fixed(Fixed),
    /// What a definition asks for.
    Printer(PrinterColumns),
}

impl Columns {
    /// The columns as a table declares them.
    pub(crate) fn definitions(&self) -> Vec<Value> {
        match self {
            Self::Fixed(table) => table.columns.iter().map(Column::definition).collect(),
            Self::Printer(columns) => {
                std::iter::once(NAME.definition()).chain(columns.definitions().cloned()).collect()
            }
        }
    }

    /// The cells of one object, given the present in seconds since 1970.
    pub(crate) fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        match self {
            Self::Fixed(table) => (table.cells)(object, now),
            Self::Printer(columns) => columns.cells(object, now),
        }
    }
}

impl Column {
    fn definition(&self) -> Value {
        json!({"name": self.name, "type": self.kind, "format": self.format, "description": "", "priority": self.priority})
    }
}

const fn text(name: &'static str) -> Column {
    Column { name, kind: "string", format: "", priority: 0 }
}

const fn number(name: &'static str) -> Column {
    Column { name, kind: "integer", format: "", priority: 0 }
}

const fn wide(name: &'static str) -> Column {
    Column { name, kind: "string", format: "", priority: 1 }
}

const NAME: Column = Column { name: "Name", kind: "string", format: "name", priority: 0 };
const AGE: Column = text("Age");

/// Name and creation time: kinds without columns of their own.
const GENERIC: Fixed = Fixed {
    columns: &[NAME, Column { name: "Created At", kind: "date", format: "", priority: 0 }],
    cells: |object, _| vec![object.name().into(), object.meta_str("creationTimestamp").into()],
};

/// The table of a built-in kind.
pub(super) fn columns_for(group: &str, kind: &str) -> Columns {
    Columns::Fixed(match (group, kind) {
        ("", "Pod") => pods::POD,
        ("", "ConfigMap") => cluster::CONFIG_MAP,
        ("", "Secret") => cluster::SECRET,
        ("", "Service") => cluster::SERVICE,
        ("", "Node") => cluster::NODE,
        ("", "Namespace") => cluster::NAMESPACE,
        ("", "Event") => cluster::EVENT,
        ("", "ServiceAccount") => cluster::SERVICE_ACCOUNT,
        ("coordination.k8s.io", "Lease") => cluster::LEASE,
        ("apps", "Deployment") => workloads::DEPLOYMENT,
        ("apps", "ReplicaSet") | ("", "ReplicationController") => workloads::REPLICA_SET,
        ("apps", "StatefulSet") => workloads::STATEFUL_SET,
        ("apps", "DaemonSet") => workloads::DAEMON_SET,
        ("batch", "Job") => workloads::JOB,
        ("batch", "CronJob") => workloads::CRON_JOB,
        _ => GENERIC,
    })
}

/// A count in an object; absent is zero.
fn count(object: &Object, pointer: &str) -> i64 {
    object.at(pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// Text, or what stands for none.
fn or_none(text: &str) -> Value {
    if text.is_empty() { "<none>".into() } else { text.into() }
}

/// `a=1,b=2`
fn pairs(map: Option<&Value>) -> String {
    let pairs = map.and_then(Value::as_object).into_iter().flatten();
    pairs.map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect::<Vec<_>>().join(",")
}

fn items<'o>(object: &'o Object, pointer: &str) -> &'o [Value] {
    object.at(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
