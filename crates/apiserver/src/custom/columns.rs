//! Printer columns of custom resources, as shown by `kubectl get`.

use serde_json::{Value, json};

use super::definition::{Column, Version};
use super::json_path::JsonPath;
use crate::registry::Object;
use crate::registry::age;

/// The columns of one version after the name, which is always the first column.
#[derive(Debug)]
pub(crate) struct PrinterColumns(Vec<PrinterColumn>);

#[derive(Debug)]
struct PrinterColumn {
    definition: Value,
    kind: String,
    /// `None` if the path is malformed: the cell stays empty.
    path: Option<JsonPath>,
}

impl PrinterColumns {
    pub(super) fn of(version: &Version) -> Self {
        let age = Column {
            name: "Age".to_owned(),
            r#type: "date".to_owned(),
            json_path: ".metadata.creationTimestamp".to_owned(),
            ..Column::default()
        };
        match version.additional_printer_columns.as_slice() {
            [] => Self(vec![PrinterColumn::new(&age)]),
            columns => Self(columns.iter().map(PrinterColumn::new).collect()),
        }
    }

    pub(crate) fn definitions(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().map(|column| &column.definition)
    }

    /// Returns the cells of one object. `now` is in seconds since 1970.
    pub(crate) fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let name = Value::from(object.name());
        std::iter::once(name).chain(self.0.iter().map(|column| column.cell(object, now))).collect()
    }
}

impl PrinterColumn {
    fn new(column: &Column) -> Self {
        let description = match column.description.as_str() {
            "" => format!("Custom resource definition column (in JSONPath format): {}", column.json_path),
            description => description.to_owned(),
        };
        Self {
            definition: json!({"name": column.name, "type": column.r#type, "format": column.format,
                "description": description, "priority": column.priority}),
            kind: column.r#type.clone(),
            path: JsonPath::parse(&column.json_path).ok(),
        }
    }

    fn cell(&self, object: &Object, now: i64) -> Value {
        let found = self.path.as_ref().and_then(|path| path.find(object.value()).into_iter().next());
        let Some(value) = found else { return Value::Null };
        match (self.kind.as_str(), value) {
            ("integer", Value::Number(n)) => {
                let whole = n.as_i64().or_else(|| n.as_f64().map(|f| f as i64));
                whole.map_or(Value::Null, Value::from)
            }
            ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
            ("date", Value::String(text)) => age(text, now),
            ("string", Value::String(text)) => text.as_str().into(),
            ("string", Value::Null) => Value::Null,
            ("string", other) => other.to_string().into(),
            _ => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(kind: &str, path: &str) -> Value {
        let version: Version = serde_json::from_value(
            json!({"name": "v1", "additionalPrinterColumns": [{"name": "C", "type": kind, "jsonPath": path}]}),
        )
        .unwrap();
        let object = json!({"metadata": {"name": "x", "creationTimestamp": "1970-01-01T00:00:10Z"},
            "spec": {"n": 3.7, "i": 3, "t": "text", "b": true, "o": {"a": 1}}});
        let object = Object::new(object).unwrap();
        let cells = PrinterColumns::of(&version).cells(&object, 70);
        assert_eq!(cells[0], "x");
        cells[1].clone()
    }

    #[test]
    fn cells_have_the_type_of_their_column() {
        for (kind, path, shown) in [
            ("integer", ".spec.i", json!(3)),
            ("integer", ".spec.n", json!(3)),
            ("number", ".spec.n", json!(3.7)),
            ("boolean", ".spec.b", json!(true)),
            ("string", ".spec.t", json!("text")),
            ("string", ".spec.i", json!("3")),
            ("string", ".spec.o", json!("{\"a\":1}")),
            ("date", ".metadata.creationTimestamp", json!("60s")),
            ("date", ".spec.t", json!("<unknown>")),
            ("integer", ".spec.t", Value::Null),
            ("string", ".spec.missing", Value::Null),
        ] {
            assert_eq!(cell(kind, path), shown, "{kind} {path}");
        }
    }

    #[test]
    fn the_default_column_is_the_age() {
        let columns = PrinterColumns::of(&Version::default());
        assert_eq!(columns.definitions().next().unwrap()["name"], "Age");
    }
}
