//! Splits lists in JSON.

mod capture;

use crate::{
    BodyError, Limits, ListMeta, ListPart, Malformed, Object, Origin,
    json::{Cursor, is_space},
};
use bytes::Bytes;
use capture::{Capture, Captured};
use std::{fmt, mem, sync::Arc};

/// Splits the body of a LIST response in JSON. The contract is that of [`ListSplitter`](super::ListSplitter).
pub(super) struct JsonSplitter {
    origin: Arc<Origin>,
    limits: Limits,
    chunk: Bytes,
    /// Read bytes of `chunk`.
    at: usize,
    /// Length of all earlier chunks.
    before: usize,
    state: State,
    capture: Capture,
    /// Whether `items` was read.
    items: bool,
    kind: Option<String>,
}

/// The next expected part of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Start,
    /// The first key, or the closing bracket.
    FirstKey,
    Key,
    Colon(Field),
    Value(Field),
    /// After the value of a field: a comma or the closing bracket.
    NextField,
    /// The first item, or the closing bracket.
    FirstItem,
    Item,
    /// After an item: a comma or the closing bracket.
    NextItem,
    /// Inside a value that is being captured.
    Inside(What),
    End,
    Failed(BodyError),
}

/// A field of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Kind,
    Metadata,
    Items,
    Other,
}

/// The value that is being captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Key,
    Value(Field),
    Item,
}

/// Maximum length of keys and of the kind of the list.
const MAX_NAME: usize = 256;

impl JsonSplitter {
    /// A splitter for one body.
    pub(super) fn new(origin: Arc<Origin>, limits: Limits) -> Self {
        Self {
            origin,
            limits,
            chunk: Bytes::new(),
            at: 0,
            before: 0,
            state: State::Start,
            capture: Capture::default(),
            items: false,
            kind: None,
        }
    }

    /// Adds the next chunk of the body, after [`next_part`](Self::next_part) returned `None`.
    pub(super) fn feed(&mut self, chunk: Bytes) {
        debug_assert!(
            self.at == self.chunk.len() || matches!(self.state, State::Failed(_)),
            "chunk not read"
        );
        self.before += self.chunk.len();
        self.chunk = chunk;
        self.at = 0;
    }

    /// Returns the next complete part, or `None` if it needs the next chunk.
    pub(super) fn next_part(&mut self) -> Result<Option<ListPart>, BodyError> {
        if let State::Failed(error) = &self.state {
            return Err(error.clone());
        }
        let result = self.advance();
        if let Err(error) = &result {
            self.state = State::Failed(error.clone());
            self.chunk = Bytes::new();
            self.at = 0;
        }
        result
    }

    /// Checks that the list is complete, at the end of the body.
    pub(super) fn finish(self) -> Result<(), BodyError> {
        match self.state {
            State::Failed(error) => Err(error),
            State::End => match (self.items, self.kind) {
                (true, _) => Ok(()),
                // Servers with `omitempty` leave `items` out of an empty list.
                (false, Some(kind)) if kind.ends_with("List") => Ok(()),
                (false, kind) => Err(BodyError::NotAList { kind: kind.unwrap_or_default() }),
            },
            _ => Err(BodyError::Truncated { bytes: self.before + self.chunk.len() }),
        }
    }

    fn advance(&mut self) -> Result<Option<ListPart>, BodyError> {
        loop {
            if let State::Inside(what) = self.state {
                let Some(value) = self.capture.advance(&self.chunk, &mut self.at) else { return Ok(None) };
                if let Some(part) = self.captured(what, value)? {
                    return Ok(Some(part));
                }
                continue;
            }
            let Some(byte) = self.peek() else { return Ok(None) };
            self.step(byte)?;
        }
    }

    /// The next byte of the chunk that is not whitespace.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.chunk[self.at..];
        self.at += rest.iter().take_while(|byte| is_space(**byte)).count();
        self.chunk.get(self.at).copied()
    }

    /// Reads one byte between values.
    fn step(&mut self, byte: u8) -> Result<(), BodyError> {
        let next = match (&self.state, byte) {
            (State::Start, b'{') => State::FirstKey,
            (State::Start, _) => return self.fail("an object"),
            (State::FirstKey | State::Key, b'"') => return self.begin(What::Key),
            (State::FirstKey | State::NextField, b'}') => State::End,
            (State::FirstKey | State::Key, _) => return self.fail("a key"),
            (State::Colon(field), b':') => State::Value(*field),
            (State::Colon(_), _) => return self.fail("a colon"),
            (State::Value(Field::Items), b'[') => self.open_items()?,
            (State::Value(field), _) => return self.begin(What::Value(*field)),
            (State::NextField, b',') => State::Key,
            (State::FirstItem | State::NextItem, b']') => State::NextField,
            (State::FirstItem | State::Item, _) => return self.begin(What::Item),
            (State::NextItem, b',') => State::Item,
            (State::NextField | State::NextItem, _) => return self.fail("a comma or the closing bracket"),
            (State::End, _) => return self.fail("nothing after the list"),
            (State::Inside(_) | State::Failed(_), _) => return Ok(()),
        };
        self.state = next;
        self.at += 1;
        Ok(())
    }

    fn fail<T>(&self, expected: &'static str) -> Result<T, BodyError> {
        Err(BodyError::Syntax { at: self.before + self.at, expected })
    }

    fn open_items(&mut self) -> Result<State, BodyError> {
        // The last one of repeated keys counts, but items that were returned cannot be taken back.
        if mem::replace(&mut self.items, true) { self.fail("items only once") } else { Ok(State::FirstItem) }
    }

    /// Begins to capture a value at the current byte.
    fn begin(&mut self, what: What) -> Result<(), BodyError> {
        let byte = self.chunk[self.at];
        if !matches!(byte, b'{' | b'[' | b'"' | b'-' | b't' | b'f' | b'n' | b'0'..=b'9') {
            return self.fail("a value");
        }
        let keep = match what {
            What::Value(Field::Other) => 0,
            What::Key | What::Value(Field::Kind) | What::Value(Field::Items) => MAX_NAME,
            What::Item | What::Value(Field::Metadata) => self.limits.object_bytes,
        };
        self.capture.begin(keep, self.limits.object_depth());
        self.state = State::Inside(what);
        Ok(())
    }

    /// Handles a complete value.
    fn captured(&mut self, what: What, value: Captured) -> Result<Option<ListPart>, BodyError> {
        self.state = match what {
            What::Key => State::Colon(Field::named(&value)),
            What::Value(_) => State::NextField,
            What::Item => State::NextItem,
        };
        match what {
            What::Item => Ok(Some(self.item(value))),
            What::Value(Field::Metadata) => Ok(Some(ListPart::Meta(list_meta(&value)))),
            What::Value(Field::Kind) => self.check_kind(&value).map(|()| None),
            What::Value(Field::Items) => self.check_no_items(&value).map(|()| None),
            What::Value(Field::Other) | What::Key => Ok(None),
        }
    }

    fn item(&self, value: Captured) -> ListPart {
        let read = match value.bytes {
            Err(prefix) => Err(Malformed::oversized(&prefix, &self.limits)),
            Ok(json) if value.too_deep => Err(Malformed::too_deep(&json, &self.limits)),
            Ok(json) => Object::parse(&self.origin, json, &self.limits),
        };
        read.map_or_else(ListPart::Malformed, ListPart::Item)
    }

    fn check_kind(&mut self, value: &Captured) -> Result<(), BodyError> {
        let Some(kind) = value.text() else { return Ok(()) };
        match kind.as_str() {
            "Table" => return Err(BodyError::Table),
            "Status" => return Err(BodyError::Status),
            _ => self.kind = Some(kind),
        }
        Ok(())
    }

    /// Handles `items` that are not an array: `null` is an empty list.
    fn check_no_items(&mut self, value: &Captured) -> Result<(), BodyError> {
        if !matches!(&value.bytes, Ok(json) if &json[..] == b"null") {
            return self.fail("items to be an array");
        }
        self.open_items().map(|_| ())
    }
}

/// Prints the position, never the content.
impl fmt::Debug for JsonSplitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let read = self.before + self.at;
        f.debug_struct("JsonSplitter")
            .field("read", &read)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Field {
    fn named(key: &Captured) -> Self {
        match key.text().as_deref() {
            Some("kind") => Self::Kind,
            Some("metadata") => Self::Metadata,
            Some("items") => Self::Items,
            _ => Self::Other,
        }
    }
}

/// Reads the metadata of a list; fields of unexpected types count as absent.
fn list_meta(value: &Captured) -> ListMeta {
    let mut meta = ListMeta::default();
    let Ok(json) = &value.bytes else { return meta };
    let mut cursor = Cursor::new(json, usize::MAX);
    // If the metadata is not JSON, the fields before the error count.
    let _ = cursor.object::<crate::json::Syntax>(|cursor, key| {
        let value = cursor.span()?;
        match &*key {
            b"resourceVersion" => {
                meta.resource_version =
                    capture::text(value).filter(|v| !v.is_empty()).map(|v| v.as_str().into());
            }
            b"continue" => meta.continue_token = capture::text(value).filter(|token| !token.is_empty()),
            b"remainingItemCount" => meta.remaining = serde_json::from_slice(value).ok(),
            _ => {}
        }
        Ok(())
    });
    meta
}

#[cfg(test)]
mod tests;
