//! Encoding of lists that are not sent in their stored form: tables, YAML, protobuf and indented JSON.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::body::ItemView;
use super::error::HttpError;
use super::negotiate::{Format, Representation};
use super::table::TableMaker;
use crate::registry::CodecError;
use crate::storage::Stored;
use kube_informer_types::protobuf::ListWriter;

/// Stored bytes that one step encodes. A step takes a few milliseconds, during which other requests wait.
const STEP: usize = 256 * 1024;

/// Encodes a list in steps of bounded work.
pub(super) struct ListEncoder {
    items: std::vec::IntoIter<Arc<Stored>>,
    rows: ItemSource,
    output: Output,
}

/// Makes the content of each item.
pub(super) enum ItemSource {
    Items(ItemView),
    Table(TableMaker),
}

enum Output {
    /// `out` is the text so far, `end` the text after the last item.
    Text {
        format: TextFormat,
        out: Vec<u8>,
        first: bool,
        end: String,
    },
    Protobuf(ListWriter),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextFormat {
    Json,
    Indented,
    Yaml,
}

impl ListEncoder {
    /// An encoder of a list in JSON or YAML. `document` is the list without its items; `field` names the array.
    pub(super) fn text(
        document: Value,
        field: &'static str,
        items: Vec<Arc<Stored>>,
        rows: ItemSource,
        representation: Representation,
    ) -> Self {
        let format = match representation {
            Representation { format: Format::Yaml, .. } => TextFormat::Yaml,
            Representation { pretty: true, .. } => TextFormat::Indented,
            Representation { .. } => TextFormat::Json,
        };
        let (start, end) = format.frame(document, field, items.is_empty());
        let output = Output::Text { format, out: start.into_bytes(), first: true, end };
        Self { items: items.into_iter(), rows, output }
    }

    /// An encoder of a list in protobuf.
    pub(super) fn protobuf(writer: ListWriter, items: Vec<Arc<Stored>>, view: ItemView) -> Self {
        Self { items: items.into_iter(), rows: ItemSource::Items(view), output: Output::Protobuf(writer) }
    }

    /// The stored bytes that are still to be encoded.
    pub(super) fn remaining(&self) -> usize {
        self.items.as_slice().iter().map(|item| item.document.encoded_len()).sum()
    }

    /// Encodes some items. Returns the whole list after the last one.
    pub(super) fn step(&mut self) -> Result<Option<Bytes>, HttpError> {
        let mut encoded = 0;
        while encoded < STEP {
            let Some(item) = self.items.next() else { return Ok(Some(self.finish())) };
            encoded += item.document.encoded_len();
            self.push(&item)?;
        }
        Ok(None)
    }

    fn push(&mut self, item: &Stored) -> Result<(), HttpError> {
        let row = self.rows.json(item)?;
        match &mut self.output {
            Output::Text { format, out, first, .. } => {
                format.append(&row, std::mem::take(first), out);
                Ok(())
            }
            Output::Protobuf(writer) => {
                writer.push(&row).map_err(|error| HttpError::NoProtobufForm { content: "list", error })
            }
        }
    }

    fn finish(&mut self) -> Bytes {
        match &mut self.output {
            Output::Text { out, end, .. } => {
                out.extend_from_slice(end.as_bytes());
                std::mem::take(out).into()
            }
            Output::Protobuf(writer) => writer.finish(),
        }
    }
}

impl ItemSource {
    fn json(&self, item: &Stored) -> Result<Vec<u8>, CodecError> {
        match self {
            Self::Items(view) => {
                let mut json = Vec::with_capacity(item.document.encoded_len() + 64);
                view.write(item, &mut json);
                Ok(json)
            }
            Self::Table(maker) => Ok(maker.row_of(item)?.to_string().into_bytes()),
        }
    }
}

impl TextFormat {
    /// The text before and after the items.
    fn frame(self, mut document: Value, field: &str, is_empty: bool) -> (String, String) {
        // A value that no list contains marks the place of the items.
        const MARK: &str = "\u{1}";
        document[field] = if is_empty { json!([]) } else { json!([MARK]) };
        let (text, mark) = match self {
            Self::Json => (document.to_string(), "\"\\u0001\""),
            Self::Indented => {
                (serde_json::to_string_pretty(&document).unwrap_or_default(), "\n    \"\\u0001\"")
            }
            Self::Yaml => return yaml_frame(document, field, is_empty),
        };
        match text.split_once(mark) {
            Some((start, end)) => (start.to_owned(), end.to_owned()),
            None => (text, String::new()),
        }
    }

    fn append(self, json: &[u8], first: bool, out: &mut Vec<u8>) {
        match self {
            Self::Json => {
                if !first {
                    out.push(b',');
                }
                out.extend_from_slice(json);
            }
            Self::Indented => {
                let value: Value = serde_json::from_slice(json).unwrap_or_default();
                let text = serde_json::to_string_pretty(&value).unwrap_or_default();
                out.extend_from_slice(if first { b"\n    " } else { b",\n    " });
                // JSON strings contain no line breaks.
                out.extend_from_slice(text.replace('\n', "\n    ").as_bytes());
            }
            Self::Yaml => {
                let value: Value = serde_json::from_slice(json).unwrap_or_default();
                let text = serde_saphyr::to_string(&[value]).unwrap_or_default();
                out.extend_from_slice(text.as_bytes());
            }
        }
    }
}

/// YAML before and after the items, which are elements at the indentation of `field`.
fn yaml_frame(mut document: Value, field: &str, is_empty: bool) -> (String, String) {
    if is_empty {
        return (serde_saphyr::to_string(&document).unwrap_or_default(), String::new());
    }
    let fields = document.as_object_mut().map(std::mem::take).unwrap_or_default();
    let (before, after): (Vec<_>, Vec<_>) =
        fields.into_iter().filter(|(name, _)| name != field).partition(|(name, _)| name.as_str() < field);
    let text = |fields: Vec<(String, Value)>| match fields.is_empty() {
        true => String::new(),
        false => serde_saphyr::to_string(&Value::Object(fields.into_iter().collect())).unwrap_or_default(),
    };
    (format!("{}{field}:\n", text(before)), text(after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Document;

    fn stored(n: usize) -> Arc<Stored> {
        let text = "line\n\n  indented: \"x\" \u{1}\n".repeat(n % 3);
        let object = json!({"metadata": {"name": format!("m{n}"), "labels": {"a": "b"}}, "data": {"k": text, "l": [], "m": {}}});
        let document = Document::encode(&object, []).unwrap();
        Arc::new(Stored { key: format!("/configmaps/default/m{n}").into(), revision: n as u64 + 1, document })
    }

    fn whole(items: &[Arc<Stored>]) -> Value {
        let item = |item: &Arc<Stored>| -> Value {
            let mut json = Vec::new();
            ItemView::Whole(None, None).write(item, &mut json);
            serde_json::from_slice(&json).unwrap()
        };
        json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"},
            "items": items.iter().map(item).collect::<Vec<_>>()})
    }

    fn encode(items: &[Arc<Stored>], representation: Representation) -> String {
        let document =
            json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}});
        let rows = ItemSource::Items(ItemView::Whole(None, None));
        let mut encoder = ListEncoder::text(document, "items", items.to_vec(), rows, representation);
        loop {
            if let Some(text) = encoder.step().unwrap() {
                return String::from_utf8(text.to_vec()).unwrap();
            }
        }
    }

    #[test]
    fn steps_encode_the_same_as_one_go() {
        for count in [0, 1, 7] {
            let items: Vec<_> = (0..count).map(stored).collect();
            let list = whole(&items);
            let compact: Value = serde_json::from_str(&encode(&items, Representation::JSON)).unwrap();
            assert_eq!(compact, list);
            let indented = Representation { pretty: true, ..Representation::JSON };
            assert_eq!(encode(&items, indented), serde_json::to_string_pretty(&list).unwrap());
            let yaml = encode(&items, Representation { format: Format::Yaml, ..Representation::JSON });
            let parsed: Value = serde_saphyr::from_str(&yaml).unwrap();
            assert_eq!(parsed, list, "{yaml}");
        }
    }

    #[test]
    fn one_step_is_bounded() {
        let large = json!({"metadata": {"name": "m"}, "data": {"k": "x".repeat(100_000)}});
        let document = Document::encode(&large, []).unwrap();
        let item = Arc::new(Stored { key: "/configmaps/default/m".into(), revision: 1, document });
        let items = vec![item; 100];
        let rows = ItemSource::Items(ItemView::Whole(None, None));
        let mut encoder = ListEncoder::text(json!({}), "items", items, rows, Representation::JSON);
        let mut steps = 0;
        while encoder.step().unwrap().is_none() {
            steps += 1;
        }
        assert!(steps >= 30, "{steps} steps for 10 MB");
    }
}
