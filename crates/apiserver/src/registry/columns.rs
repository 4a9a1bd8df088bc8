//! The table columns of each kind, which `kubectl get` prints.

mod age;
pub(super) mod cluster;
pub(super) mod networking;
pub(super) mod pods;
pub(super) mod policies;
mod selector;
pub(super) mod storage;
#[cfg(test)]
mod tests;
pub(super) mod workloads;

use serde_json::{Value, json};

pub(crate) use age::age;
pub(crate) use workloads::SCALE;

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
    /// The cells of one object, given the current time in seconds since 1970.
    cells: fn(&Object, i64) -> Vec<Value>,
}

/// The table of a kind.
#[derive(Debug)]
pub(crate) enum Columns {
    Fixed(Fixed),
    /// The columns of a custom resource definition.
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

    /// The cells of one object, given the current time in seconds since 1970.
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

const fn truth(name: &'static str) -> Column {
    Column { name, kind: "boolean", format: "", priority: 0 }
}

const NAME: Column = Column { name: "Name", kind: "string", format: "name", priority: 0 };
const AGE: Column = text("Age");

/// Name and creation time, for kinds without other columns.
pub(super) const GENERIC: Fixed = Fixed {
    columns: &[NAME, Column { name: "Created At", kind: "date", format: "", priority: 0 }],
    cells: |object, _| vec![object.name().into(), object.meta_str("creationTimestamp").into()],
};

/// A count in an object; absent is zero.
fn count(object: &Object, pointer: &str) -> i64 {
    object.at(pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// The text, or the word for none.
fn or_none(text: &str) -> Value {
    if text.is_empty() { "<none>".into() } else { text.into() }
}

/// The value, or `<unset>` if it is absent.
fn or_unset(object: &Object, pointer: &str) -> Value {
    object.at(pointer).cloned().unwrap_or("<unset>".into())
}

fn flag(object: &Object, pointer: &str, without: bool) -> Value {
    object.at(pointer).and_then(Value::as_bool).unwrap_or(without).into()
}

/// The age of the object.
fn born(object: &Object, now: i64) -> Value {
    age(object.meta_str("creationTimestamp"), now)
}

/// The name, marked if an annotation makes the class the default.
fn marked_default(object: &Object, annotations: &[&str]) -> Value {
    let set = |name: &&str| object.metadata().get("annotations").is_some_and(|all| all[*name] == "true");
    match annotations.iter().any(set) {
        true => format!("{} (default)", object.name().unwrap_or_default()).into(),
        false => object.name().into(),
    }
}

/// `a=1,b=2`
fn pairs(map: Option<&Value>) -> String {
    let pairs = map.and_then(Value::as_object).into_iter().flatten();
    pairs.map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect::<Vec<_>>().join(",")
}

fn items<'o>(object: &'o Object, pointer: &str) -> &'o [Value] {
    object.at(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
