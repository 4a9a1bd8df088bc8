//! The envelope of a message (`runtime.Unknown`): magic bytes, the type and the message.

use super::ProtobufError;
use super::fields::{Fields, Wire};
use super::write;

const MAGIC: &[u8] = b"k8s\0";

/// A message and its type.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    /// Group and version.
    pub api_version: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The message.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// The message with its envelope.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.raw.len() + 64);
        out.extend_from_slice(MAGIC);
        write::nested(&mut out, 1, |out| {
            write::text(out, 1, self.api_version);
            write::text(out, 2, self.kind);
        });
        write::bytes(&mut out, 2, self.raw);
        write::text(&mut out, 3, "");
        write::text(&mut out, 4, "");
        out
    }

    /// Opens an envelope.
    pub fn decode(body: &'a [u8]) -> Result<Self, ProtobufError> {
        let unknown = body.strip_prefix(MAGIC).ok_or(ProtobufError::NoMagic)?;
        let mut envelope = Self { api_version: "", kind: "", raw: &[] };
        for field in Fields(unknown) {
            match field? {
                (1, Wire::Bytes(type_meta)) => envelope.read_type(type_meta)?,
                (2, Wire::Bytes(raw)) => envelope.raw = raw,
                // A content encoding or content type: clients do not send them, and no other content is supported.
                (3 | 4, Wire::Bytes(value)) if !value.is_empty() => return Err(ProtobufError::Malformed),
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, type_meta: &'a [u8]) -> Result<(), ProtobufError> {
        for field in Fields(type_meta) {
            match field? {
                (1, wire) => self.api_version = wire.text()?,
                (2, wire) => self.kind = wire.text()?,
                _ => {}
            }
        }
        Ok(())
    }
}
