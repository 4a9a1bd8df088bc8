//! A document serialized to bytes, for backends that store bytes.
//!
//! The format is a line of JSON with the offset of the resource version, the attributes and the recorded API version, followed by the
//! object as JSON with an empty resource version. It is human-readable, and the object need not be decoded to be served.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Attributes, Document};

#[derive(Serialize, Deserialize)]
struct Head<'a> {
    /// Relative to the first byte after the opening brace.
    gap: u32,
    /// Alternating keys and values.
    #[serde(borrow)]
    labels: Vec<Cow<'a, str>>,
    #[serde(borrow)]
    fields: Vec<Cow<'a, str>>,
    /// The recorded API version, if any.
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    version: Cow<'a, str>,
}

impl Document {
    /// Serializes the document.
    pub(crate) fn pack(&self) -> Vec<u8> {
        let labels = self.attributes.labels as usize;
        let parts = |pairs: std::ops::Range<usize>| -> Vec<Cow<'_, str>> {
            (2 * pairs.start..2 * pairs.end).map(|index| Cow::Borrowed(self.attributes.part(index))).collect()
        };
        let head = Head {
            gap: self.gap,
            labels: parts(0..labels),
            fields: parts(labels..self.attributes.ends.len() / 2),
            version: Cow::Borrowed(self.version()),
        };
        let mut packed = serde_json::to_vec(&head).expect("strings and numbers always encode into memory");
        packed.extend_from_slice(b"\n{");
        packed.extend_from_slice(self.json());
        packed
    }

    /// Deserializes a document; `None` if the bytes do not have the format of [`pack`](Self::pack).
    pub(crate) fn unpack(packed: &[u8]) -> Option<Self> {
        let end = packed.iter().position(|byte| *byte == b'\n')?;
        let head: Head<'_> = serde_json::from_slice(&packed[..end]).ok()?;
        let bytes = packed[end + 1..].strip_prefix(b"{")?;
        let before = bytes.get(..head.gap as usize)?;
        if !before.starts_with(b"\"metadata\":{") || !before.ends_with(b"\"resourceVersion\":\"") {
            return None;
        }
        let pairs = |parts: &[Cow<'_, str>]| -> Vec<(String, String)> {
            parts
                .chunks_exact(2)
                .map(|pair| (pair[0].clone().into_owned(), pair[1].clone().into_owned()))
                .collect()
        };
        let (labels, fields) = (pairs(&head.labels), pairs(&head.fields));
        let attributes = Attributes::new(
            labels.iter().map(|(k, v)| (k.as_str(), v.as_str())),
            fields.iter().map(|(k, v)| (k.as_str(), v.as_str())),
        );
        let end = u32::try_from(bytes.len()).ok()?;
        let bytes = match head.version.as_ref() {
            "" => Bytes::copy_from_slice(bytes),
            version => [bytes, version.as_bytes()].concat().into(),
        };
        Some(Self { bytes, end, gap: head.gap, attributes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_packed_document_round_trips() {
        let object = json!({"metadata": {"name": "a", "labels": {"app": "w\"eb\n", "x": ""}}, "spec": {"n": "{\"resourceVersion\":\""}});
        let document = Document::encode(&object, [("spec.n", "1"), ("empty", "")]).unwrap();
        let packed = document.pack();
        let again = Document::unpack(&packed).unwrap();
        assert_eq!(again, document);
        assert_eq!(
            (again.gap, again.attributes.label("app"), again.attributes.field("spec.n")),
            (document.gap, Some("w\"eb\n"), Some("1"))
        );
        assert_eq!((again.attributes.label("x"), again.attributes.field("app")), (Some(""), None));
        let (mut a, mut b) = (Vec::new(), Vec::new());
        document.write(None, 7, &mut a);
        again.write(None, 7, &mut b);
        assert_eq!(a, b);
    }

    #[test]
    fn a_packed_document_keeps_its_version() {
        for version in ["", "v1beta1"] {
            let document = Document::encode_version(&json!({"metadata": {}}), version, []).unwrap();
            let again = Document::unpack(&document.pack()).unwrap();
            assert_eq!((again.version(), &again), (version, &document));
        }
    }

    #[test]
    fn malformed_bytes_are_rejected() {
        let packed = Document::encode(&json!({"metadata": {}}), []).unwrap().pack();
        for bad in [
            &b""[..],
            b"{}",
            b"{}\n{}",
            b"k8s\0\n{",
            b"{\"gap\":99,\"labels\":[],\"fields\":[]}\n{}",
            &packed[..packed.len() / 2],
        ] {
            assert!(Document::unpack(bad).is_none(), "{}", String::from_utf8_lossy(bad));
        }
    }
}
