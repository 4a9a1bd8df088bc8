//! Encoded objects: encoded once when written, copied into every response.

#[cfg(feature = "etcd")]
mod packed;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

/// The JSON of one object without its type, with a gap for its resource version.
///
/// The bytes are `"metadata":{…,"resourceVersion":"",…},…}`: everything after `{"kind":…,"apiVersion":…,`. Therefore:
///
/// 1. A response in any API version is a [`TypeHead`], the bytes and the digits of the resource version.
/// 2. An item of a list without a type is `{`, the bytes and the digits.
/// 3. A backend may assign the revision after the object is encoded.
/// 4. The delete event of an object has its last bytes and another revision.
///
/// Two documents are equal if their content is equal, and they record the same version. An update with an equal document changes nothing.
#[derive(Clone)]
pub struct Document {
    /// The JSON, and after it the recorded version. One allocation, because there are as many as objects.
    bytes: Bytes,
    /// The length of the JSON in `bytes`.
    end: u32,
    /// The offset in `bytes` of the digits of the resource version.
    gap: u32,
    attributes: Attributes,
}

/// The beginning of an encoded object: `{"kind":"Pod","apiVersion":"v1",`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TypeHead(Arc<str>);

/// The labels and selectable fields of an object, extracted once when the object is written. The fields `metadata.name` and
/// `metadata.namespace` are not included, because the key contains them.
#[derive(Clone, Default)]
pub struct Attributes {
    /// Alternating keys and values, labels before fields.
    text: Box<str>,
    /// The end of each key and each value in `text`.
    ends: Box<[u32]>,
    /// The number of labels.
    labels: u32,
}

/// The error of encoding or decoding an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The value is not an object with a metadata object.
    #[error("an object to store must be a JSON object with a `metadata` object")]
    NotAnObject,
    /// The encoding is 4 GiB or more.
    #[error("the encoded object has {0} bytes; objects must stay below 4 GiB")]
    TooLarge(usize),
    /// The stored bytes are not JSON. Contains no content, which may be a secret.
    #[error("stored bytes are not JSON at line {line}, column {column}")]
    NotJson {
        /// Line of the error.
        line: usize,
        /// Column of the error.
        column: usize,
    },
}

/// Initial capacity of the encoding buffer; enough for most objects.
const SCRATCH: usize = 16 * 1024;

/// Metadata keys written first, as in the output of kube-apiserver.
const LEADING: [&str; 4] = ["name", "generateName", "namespace", "uid"];

impl Document {
    /// Encodes an object without its `kind`, `apiVersion` and `metadata.resourceVersion`.
    pub fn encode<'f>(
        object: &Value,
        fields: impl IntoIterator<Item = (&'f str, &'f str)>,
    ) -> Result<Self, DocumentError> {
        Self::encode_version(object, "", fields)
    }

    /// Encodes an object, and records the API version that its fields are from.
    pub(crate) fn encode_version<'f>(
        object: &Value,
        version: &str,
        fields: impl IntoIterator<Item = (&'f str, &'f str)>,
    ) -> Result<Self, DocumentError> {
        Self::encode_with(object, None::<&()>, version, fields)
    }

    /// Encodes an object that does not have its `metadata.managedFields` yet. The bytes are those of the object that has them.
    pub(crate) fn encode_with_managers<'f>(
        object: &Value,
        managers: &impl Serialize,
        version: &str,
        fields: impl IntoIterator<Item = (&'f str, &'f str)>,
    ) -> Result<Self, DocumentError> {
        Self::encode_with(object, Some(managers), version, fields)
    }

    fn encode_with<'f>(
        object: &Value,
        managers: Option<&impl Serialize>,
        version: &str,
        fields: impl IntoIterator<Item = (&'f str, &'f str)>,
    ) -> Result<Self, DocumentError> {
        let object = object.as_object().ok_or(DocumentError::NotAnObject)?;
        let metadata = object.get("metadata").and_then(Value::as_object).ok_or(DocumentError::NotAnObject)?;
        let mut out = Vec::with_capacity(SCRATCH);
        let gap = write_metadata(&mut out, metadata, managers);
        for (key, value) in object {
            if !matches!(key.as_str(), "kind" | "apiVersion" | "metadata") {
                out.push(b',');
                write_pair(&mut out, key, value);
            }
        }
        out.push(b'}');
        let end = u32::try_from(out.len()).map_err(|_| DocumentError::TooLarge(out.len()))?;
        out.extend_from_slice(version.as_bytes());
        let labels = metadata.get("labels").and_then(Value::as_object);
        let labels = labels.into_iter().flatten().filter_map(|(k, v)| Some((k.as_str(), v.as_str()?)));
        Ok(Self {
            // Copies to an allocation of the exact size: shrinking the large buffer would fragment the heap.
            bytes: Bytes::copy_from_slice(&out),
            end,
            // Less than `end`.
            gap: gap as u32,
            attributes: Attributes::new(labels, fields),
        })
    }

    /// Returns the labels and selectable fields.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Returns the API version that the fields are from. Empty if none is recorded, as for built-in resources.
    pub(crate) fn version(&self) -> &str {
        std::str::from_utf8(&self.bytes[self.end as usize..]).unwrap_or_default()
    }

    /// Returns an upper bound for the size of the encoded object without its type.
    pub fn encoded_len(&self) -> usize {
        self.end as usize + 21
    }

    fn json(&self) -> &[u8] {
        &self.bytes[..self.end as usize]
    }

    /// Appends the object at a resource version: with a type, or without one for an item of a list.
    pub fn write(&self, head: Option<&TypeHead>, revision: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(head.map_or(b"{", |h| h.0.as_bytes()));
        let (before, after) = self.json().split_at(self.gap as usize);
        out.extend_from_slice(before);
        write_revision(out, revision);
        out.extend_from_slice(after);
    }

    /// Appends the beginning of the object, up to its resource version. Returns the rest, which shares the stored bytes.
    pub(crate) fn write_shared(&self, head: Option<&TypeHead>, revision: u64, out: &mut Vec<u8>) -> Bytes {
        out.extend_from_slice(head.map_or(b"{", |h| h.0.as_bytes()));
        out.extend_from_slice(&self.bytes[..self.gap as usize]);
        write_revision(out, revision);
        self.bytes.slice(self.gap as usize..self.end as usize)
    }

    /// Decodes the object at a resource version.
    pub fn to_value(&self, head: &TypeHead, revision: u64) -> Result<Value, DocumentError> {
        let mut json = Vec::with_capacity(self.encoded_len() + head.0.len());
        self.write(Some(head), revision, &mut json);
        serde_json::from_slice(&json)
            .map_err(|e| DocumentError::NotJson { line: e.line(), column: e.column() })
    }
}

impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        self.end == other.end && self.bytes == other.bytes
    }
}

impl Eq for Document {}

impl fmt::Debug for Document {
    /// Shows only the size: the content may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({} bytes)", self.end)
    }
}

/// Writes metadata, with these managers if it has none itself. Returns the place of the resource version.
fn write_metadata(
    out: &mut Vec<u8>,
    metadata: &Map<String, Value>,
    mut managers: Option<&impl Serialize>,
) -> usize {
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
    let mut write_managers = |out: &mut Vec<u8>| {
        if let Some(managers) = managers.take() {
            out.extend_from_slice(b",\"managedFields\":");
            write_json(out, managers);
        }
    };
    for (key, value) in metadata {
        if key.as_str() > "managedFields" {
            write_managers(out);
        }
        if key != "resourceVersion" && !LEADING.contains(&key.as_str()) {
            out.push(b',');
            write_pair(out, key, value);
        }
    }
    write_managers(out);
    out.push(b'}');
    gap
}

fn write_pair(out: &mut Vec<u8>, key: &str, value: &Value) {
    write_json(out, key);
    out.push(b':');
    write_json(out, value);
}

fn write_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("strings and JSON values always encode into memory");
}

fn write_revision(out: &mut Vec<u8>, revision: u64) {
    use std::io::Write;
    write!(out, "{revision}").expect("writing into memory");
}

impl TypeHead {
    /// Returns the beginning of objects of this kind.
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

    /// Returns the beginning as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Attributes {
    /// Builds attributes from labels and fields.
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

    /// Returns the value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.find(key, 0..self.labels as usize)
    }

    /// Returns the value of a selectable field. Selectors treat an absent field as empty.
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
    fn an_encoded_object_is_the_type_the_bytes_and_the_revision() {
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
    fn the_shared_form_is_the_same_without_a_copy() {
        let document = Document::encode(&pod(), []).unwrap();
        let head = TypeHead::new("v1", "Pod");
        let (mut whole, mut start) = (Vec::new(), Vec::new());
        document.write(Some(&head), 7, &mut whole);
        let rest = document.write_shared(Some(&head), 7, &mut start);
        assert_eq!([&start[..], &rest[..]].concat(), whole);
        assert!(document.bytes.as_ptr_range().contains(&rest.as_ptr()));
    }

    #[test]
    fn managers_are_written_where_the_object_has_them() {
        for last in ["labels", "ownerReferences"] {
            let mut object = json!({"metadata": {"name": "a", "labels": {}, (last): {}}, "spec": {}});
            let managers = json!([{"manager": "m"}]);
            let written = Document::encode_with_managers(&object, &managers, "", []).unwrap();
            object["metadata"]["managedFields"] = managers;
            assert_eq!(written, Document::encode(&object, []).unwrap());
        }
    }

    #[test]
    fn labels_and_fields_are_looked_up_separately() {
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
    fn the_resource_version_in_the_body_does_not_affect_equality() {
        let mut other = pod();
        other["metadata"]["resourceVersion"] = "8".into();
        assert_eq!(Document::encode(&pod(), []).unwrap(), Document::encode(&other, []).unwrap());
        other["metadata"]["labels"]["app"] = "db".into();
        assert_ne!(Document::encode(&pod(), []).unwrap(), Document::encode(&other, []).unwrap());
    }

    #[test]
    fn a_recorded_version_is_not_content_but_affects_equality() {
        let [plain, first, second] =
            ["", "v1", "v2"].map(|version| Document::encode_version(&pod(), version, []).unwrap());
        assert_eq!((plain.version(), first.version(), second.version()), ("", "v1", "v2"));
        assert!(plain != first && first != second && first == first.clone());
        let head = TypeHead::new("v1", "Pod");
        let (mut whole, mut start) = (Vec::new(), Vec::new());
        first.write(Some(&head), 7, &mut whole);
        let rest = first.write_shared(Some(&head), 7, &mut start);
        assert_eq!([&start[..], &rest[..]].concat(), whole);
        assert_eq!(first.to_value(&head, 7), plain.to_value(&head, 7));
        assert_eq!(first.encoded_len(), plain.encoded_len());
    }

    #[test]
    fn values_that_are_not_objects_are_rejected() {
        for bad in [json!(1), json!({}), json!({"metadata": []}), json!({"metadata": "x"})] {
            assert_eq!(Document::encode(&bad, []), Err(DocumentError::NotAnObject));
        }
    }

    #[test]
    fn empty_metadata_has_a_resource_version() {
        let document = Document::encode(&json!({"metadata": {}}), []).unwrap();
        let mut out = Vec::new();
        document.write(None, 5, &mut out);
        assert_eq!(out, br#"{"metadata":{"resourceVersion":"5"}}"#);
    }
}
