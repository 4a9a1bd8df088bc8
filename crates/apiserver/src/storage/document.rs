//! An object as bytes: encoded once when it is written, spliced into every answer.

#[cfg(feature = "etcd")]
mod packed;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};

/// The JSON of one object without its type, with a gap where its resource version goes.
///
/// The bytes are `"metadata":{…,"resourceVersion":"","…},…}`: everything after `{"kind":…,"apiVersion":…,`. Four things follow:
/// an answer in any version of the kind is a [`TypeHead`], the bytes and digits; a list item without a type is `{` and the bytes; a
/// backend may give the revision after the bytes were made; and the final event of an object is its last bytes at another revision.
///
/// Equality is equality of content and says whether an update changes anything.
#[derive(Clone)]
pub struct Document {
    bytes: Bytes,
    /// Where in `bytes` the digits of the resource version belong.
    gap: u32,
    attributes: Attributes,
}

/// The beginning of an encoded object: `{"kind":"Pod","apiVersion":"v1",`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TypeHead(Arc<str>);

/// What selectors look at, read once when the object is written: labels, and the selectable fields of the kind
/// other than `metadata.name` and `metadata.namespace`, which are in the key.
#[derive(Clone, Default)]
pub struct Attributes {
    /// Keys and values one after the other, labels before fields.
    text: Box<str>,
    /// Where each key and each value ends in `text`.
    ends: Box<[u32]>,
    /// How many of the pairs are labels.
    labels: u32,
}

/// Why an object cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The value is not an object with a metadata object.
    #[error("an object to store must be a JSON object with a `metadata` object")]
    NotAnObject,
    /// The encoding is 4 GiB or more.
    #[error("the encoded object has {0} bytes; objects must stay below 4 GiB")]
    TooLarge(usize),
    /// The bytes do not decode as JSON; says where, never what.
    #[error("stored bytes are not JSON at line {line}, column {column}")]
    NotJson {
        /// Line of the error.
        line: usize,
        /// Column of the error.
        column: usize,
    },
}

/// Room to encode an object in; most fit.
const SCRATCH: usize = 16 * 1024;

/// Metadata keys written first, in the order people expect to read them.
const LEADING: [&str; 4] = ["name", "generateName", "namespace", "uid"];

impl Document {
    /// Encodes an object. Its `kind`, `apiVersion` and `metadata.resourceVersion` are left out, whatever they are.
    pub fn encode<'f>(
        object: &Value,
        fields: impl IntoIterator<Item = (&'f str, &'f str)>,
    ) -> Result<Self, DocumentError> {
        let object = object.as_object().ok_or(DocumentError::NotAnObject)?;
        let metadata = object.get("metadata").and_then(Value::as_object).ok_or(DocumentError::NotAnObject)?;
        let mut out = Vec::with_capacity(SCRATCH);
        let gap = write_metadata(&mut out, metadata);
        for (key, value) in object {
            if !matches!(key.as_str(), "kind" | "apiVersion" | "metadata") {
                out.push(b',');
                write_pair(&mut out, key, value);
            }
        }
        out.push(b'}');
        let gap = u32::try_from(gap).map_err(|_| DocumentError::TooLarge(out.len()))?;
        u32::try_from(out.len()).map_err(|_| DocumentError::TooLarge(out.len()))?;
        let labels = metadata.get("labels").and_then(Value::as_object);
        let labels = labels.into_iter().flatten().filter_map(|(k, v)| Some((k.as_str(), v.as_str()?)));
        Ok(Self {
            // A copy of the right size, made last: cutting a large buffer down would leave a hole behind every object.
            bytes: Bytes::copy_from_slice(&out),
            gap,
            attributes: Attributes::new(labels, fields),
        })
    }

    /// What selectors look at.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Bytes this document needs in an answer, without its type head.
    pub fn encoded_len(&self) -> usize {
        self.bytes.len() + 21
    }

    /// Appends the whole object at a resource version: with a type, or without one as an item of a typed list.
    pub fn write(&self, head: Option<&TypeHead>, revision: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(head.map_or(b"{", |h| h.0.as_bytes()));
        let (before, after) = self.bytes.split_at(self.gap as usize);
        out.extend_from_slice(before);
        write_revision(out, revision);
        out.extend_from_slice(after);
    }

    /// The object as a JSON value at a resource version, to be changed and encoded again.
    pub fn to_value(&self, head: &TypeHead, revision: u64) -> Result<Value, DocumentError> {
        let mut json = Vec::with_capacity(self.encoded_len() + head.0.len());
        self.write(Some(head), revision, &mut json);
        serde_json::from_slice(&json)
            .map_err(|e| DocumentError::NotJson { line: e.line(), column: e.column() })
    }
}

impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Document {}

impl fmt::Debug for Document {
    /// Size only: the content may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({} bytes)", self.bytes.len())
    }
}

fn write_metadata(out: &mut Vec<u8>, metadata: &Map<String, Value>) -> usize {
    out.extend_from_slice(b"\"metadata\":{");
    for key in LEADING {
        if let Some(value) = metadata.get(key) {
            write_pair(out, key, value);
            out.push(b',');
        }
    }
    out.extend_from_slice(b"\"resourceVersion\":\"");
    let gap = out.len();
    out.push(b'"');
    for (key, value) in metadata {
        if key != "resourceVersion" && !LEADING.contains(&key.as_str()) {
            out.push(b',');
            write_pair(out, key, value);
        }
    }
    out.push(b'}');
    gap
}

fn write_pair(out: &mut Vec<u8>, key: &str, value: &Value) {
    write_json(out, key);
    out.push(b':');
    write_json(out, value);
}

fn write_json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("strings and JSON values always encode into memory");
}

fn write_revision(out: &mut Vec<u8>, revision: u64) {
    use std::io::Write;
    write!(out, "{revision}").expect("writing into memory");
}

impl TypeHead {
    /// The head of objects of this kind.
    pub fn new(api_version: &str, kind: &str) -> Self {
        let mut text = b"{\"kind\":".to_vec();
        write_json(&mut text, kind);
        text.extend_from_slice(b",\"apiVersion\":");
        write_json(&mut text, api_version);
        text.push(b',');
        Self(String::from_utf8(text).expect("JSON strings are UTF-8").into())
    }

    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// The bytes an encoded object of this kind starts with.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Attributes {
    /// Packs labels and fields.
    pub fn new<'l, 'f>(
        labels: impl IntoIterator<Item = (&'l str, &'l str)>,
        fields: impl IntoIterator<Item = (&'f str, &'f str)>,
    ) -> Self {
        let (mut text, mut ends) = (String::new(), Vec::new());
        let mut push = |(key, value): (&str, &str)| {
            for part in [key, value] {
                text.push_str(part);
                ends.push(text.len() as u32);
            }
        };
        let labels = labels.into_iter().map(&mut push).count() as u32;
        fields.into_iter().for_each(push);
        Self { text: text.into(), ends: ends.into(), labels }
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.find(key, 0..self.labels as usize)
    }

    /// The value of a selectable field; absent fields count as empty in selectors.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.find(key, self.labels as usize..self.ends.len() / 2)
    }

    fn find(&self, key: &str, mut pairs: std::ops::Range<usize>) -> Option<&str> {
        pairs.find(|&pair| self.part(2 * pair) == key).map(|pair| self.part(2 * pair + 1))
    }

    fn part(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[index] as usize]
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Attributes({} labels, {} fields)", self.labels, self.ends.len() as u32 / 2 - self.labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod() -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": "n\"1"}, "metadata": {
            "labels": {"app": "web", "tier": "x"}, "resourceVersion": "stale", "uid": "u", "name": "a", "namespace": "ns"}})
    }

    #[test]
    fn an_object_is_its_type_its_bytes_and_its_revision() {
        let document = Document::encode(&pod(), [("spec.nodeName", "n1")]).unwrap();
        let head = TypeHead::new("v1", "Pod");
        let (mut typed, mut item) = (Vec::new(), Vec::new());
        document.write(Some(&head), 7, &mut typed);
        document.write(None, 123_456, &mut item);
        assert_eq!(
            String::from_utf8(typed).unwrap(),
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"7","labels":{"app":"web","tier":"x"}},"spec":{"nodeName":"n\"1"}}"#
        );
        assert!(String::from_utf8(item).unwrap().starts_with(
            r#"{"metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"123456","#
        ));
        let mut expected = pod();
        expected["metadata"]["resourceVersion"] = "9".into();
        assert_eq!(document.to_value(&head, 9).unwrap(), expected);
    }

    #[test]
    fn attributes_find_labels_and_fields_apart() {
        let document = Document::encode(&pod(), [("app", "field"), ("empty", "")]).unwrap();
        let attributes = document.attributes();
        assert_eq!(attributes.label("app"), Some("web"));
        assert_eq!(attributes.label("tier"), Some("x"));
        assert_eq!(attributes.field("app"), Some("field"));
        assert_eq!(attributes.field("empty"), Some(""));
        assert_eq!(
            (attributes.label("ap"), attributes.field("tier"), attributes.label("x")),
            (None, None, None)
        );
    }

    #[test]
    fn a_stale_version_in_the_body_is_no_change() {
        let mut other = pod();
        other["metadata"]["resourceVersion"] = "8".into();
        assert_eq!(Document::encode(&pod(), []).unwrap(), Document::encode(&other, []).unwrap());
        other["metadata"]["labels"]["app"] = "db".into();
        assert_ne!(Document::encode(&pod(), []).unwrap(), Document::encode(&other, []).unwrap());
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for bad in [json!(1), json!({}), json!({"metadata": []}), json!({"metadata": "x"})] {
            assert_eq!(Document::encode(&bad, []), Err(DocumentError::NotAnObject));
        }
    }

    #[test]
    fn an_empty_metadata_still_has_a_version() {
        let document = Document::encode(&json!({"metadata": {}}), []).unwrap();
        let mut out = Vec::new();
        document.write(None, 5, &mut out);
        assert_eq!(out, br#"{"metadata":{"resourceVersion":"5"}}"#);
    }
}
