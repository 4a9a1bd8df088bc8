//! Tables: objects as rows, as kubectl prints them.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::negotiate::{IncludeObject, MetaVersion, TableOptions};
use crate::clock::Clock;
use crate::registry::{CodecError, Columns, Object, Resource, SCALE};
use crate::storage::Stored;

/// Turns objects of one resource into rows.
pub(crate) struct TableMaker {
    clock: Clock,
    resource: Arc<Resource>,
    options: TableOptions,
}

impl TableMaker {
    pub(crate) fn new(clock: Clock, resource: Arc<Resource>, options: TableOptions) -> Self {
        Self { clock, resource, options }
    }

    /// A table without rows.
    pub(crate) fn empty(&self, metadata: Value) -> Value {
        self.table(metadata, Vec::new(), true)
    }

    /// The row of a stored object.
    pub(crate) fn row_of(&self, item: &Stored) -> Result<Value, CodecError> {
        Ok(self.row(&self.resource.decode(item)?))
    }

    pub(crate) fn of_object(&self, object: &Object, with_columns: bool) -> Value {
        let metadata = json!({"resourceVersion": object.resource_version()});
        self.table(metadata, vec![self.row(object)], with_columns)
    }

    /// A bookmark has empty cells; its row has the resource version.
    pub(crate) fn of_bookmark(&self, bookmark: &Object, with_columns: bool) -> Value {
        let columns = self.resource.columns.definitions();
        let cells = columns.iter().map(|column| match column["type"].as_str() {
            Some("integer") => json!(0),
            Some("boolean") => json!(false),
            _ => json!(""),
        });
        let row = json!({"cells": cells.collect::<Vec<_>>(), "object": self.partial(bookmark)});
        self.table(json!({"resourceVersion": bookmark.resource_version()}), vec![row], with_columns)
    }

    fn table(&self, metadata: Value, rows: Vec<Value>, with_columns: bool) -> Value {
        let columns = if with_columns { self.resource.columns.definitions().into() } else { Value::Null };
        table(self.options, metadata, columns, rows)
    }

    fn partial(&self, object: &Object) -> Value {
        partial_of(object, self.options.version)
    }

    fn row(&self, object: &Object) -> Value {
        row(self.options, &self.resource.columns, object, &self.clock)
    }
}

/// The table of a Scale.
pub(crate) fn of_scale(scale: &Object, clock: &Clock, options: TableOptions) -> Value {
    let columns = Columns::Fixed(SCALE);
    let metadata = json!({"resourceVersion": scale.resource_version()});
    let rows = vec![row(options, &columns, scale, clock)];
    table(options, metadata, columns.definitions().into(), rows)
}

fn table(options: TableOptions, metadata: Value, columns: Value, rows: Vec<Value>) -> Value {
    json!({"kind": "Table", "apiVersion": options.version.api_version(), "metadata": metadata, "columnDefinitions": columns, "rows": rows})
}

fn row(options: TableOptions, columns: &Columns, object: &Object, clock: &Clock) -> Value {
    let shown = match options.include {
        IncludeObject::Metadata => partial_of(object, options.version),
        IncludeObject::Object => object.value().clone(),
        IncludeObject::None => Value::Null,
    };
    json!({"cells": columns.cells(object, clock.seconds()), "object": shown})
}

/// The metadata of the object alone.
pub(crate) fn partial(object: &Object) -> Value {
    partial_of(object, MetaVersion::V1)
}

fn partial_of(object: &Object, version: MetaVersion) -> Value {
    let mut shown = Map::new();
    shown.insert("kind".to_owned(), "PartialObjectMetadata".into());
    shown.insert("apiVersion".to_owned(), version.api_version().into());
    shown.insert("metadata".to_owned(), Value::Object(object.metadata().clone()));
    Value::Object(shown)
}
