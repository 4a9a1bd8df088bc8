//! Splits the body of a LIST response into items while it arrives.

use super::framing::{Capture, MAGIC, Progress, Varint, WireType, field};
use crate::{BodyError, Limits, ListMeta};
use bytes::Bytes;
use kube_informer_types::protobuf::Fields;
use std::mem;

/// Splits the body of a LIST response in protobuf into its parts.
///
/// 1. Holds at most one item and the current chunk; an item inside one chunk is a slice of it.
/// 2. Fields may have any order; those that are not part of a list are skipped.
/// 3. An item over the limit is one [`Part::Oversized`]; the list continues after it.
/// 4. The parts do not depend on how the body is divided into chunks.
/// 5. Lengths are claims of the server: they allocate nothing before the bytes arrive.
/// 6. After an error, every later call returns the same error.
pub(crate) struct ListSplitter {
    limits: Limits,
    chunk: Bytes,
    /// Read bytes of `chunk`.
    at: usize,
    /// Length of all earlier chunks.
    before: usize,
    state: State,
    /// Bytes of the list that are still to come; `None` in the envelope around it.
    in_list: Option<u64>,
    has_list: bool,
    kind: Option<String>,
    capture: Capture,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Meta(ListMeta),
    /// An encoded object.
    Item(Bytes),
    /// The first bytes of an object over the limit.
    Oversized(Bytes),
}

/// The next expected part of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// This many magic bytes were read.
    Magic(usize),
    Key(Varint),
    Length(u32, Varint),
    /// Inside a number that is skipped.
    Number(Varint),
    Skip(u64),
    Inside(Value),
    Failed(BodyError),
}

/// The value that is being captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    TypeMeta,
    ContentEncoding,
    ListMeta,
    Item,
}

/// Maximum length of the type and the encoding in the envelope.
const MAX_NAME: usize = 1 << 10;

impl ListSplitter {
    /// A splitter for one body.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            chunk: Bytes::new(),
            at: 0,
            before: 0,
            state: State::Magic(0),
            in_list: None,
            has_list: false,
            kind: None,
            capture: Capture::default(),
        }
    }

    /// Adds the next chunk of the body, after [`next_part`](Self::next_part) returned `None`.
    pub(crate) fn feed(&mut self, chunk: Bytes) {
        self.before = self.before.saturating_add(self.chunk.len());
        self.chunk = chunk;
        self.at = 0;
    }

    /// Returns the next complete part, or `None` if it needs the next chunk.
    pub(crate) fn next_part(&mut self) -> Result<Option<Part>, BodyError> {
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
    pub(crate) fn finish(self) -> Result<(), BodyError> {
        match self.state {
            State::Failed(error) => Err(error),
            State::Key(key) if key.is_fresh() && self.in_list.is_none_or(|left| left == 0) => {
                match self.kind {
                    Some(kind) if self.has_list && kind.ends_with("List") => Ok(()),
                    kind => Err(BodyError::NotAList { kind: kind.unwrap_or_default() }),
                }
            }
            _ => Err(BodyError::Truncated { bytes: self.before.saturating_add(self.chunk.len()) }),
        }
    }

    fn advance(&mut self) -> Result<Option<Part>, BodyError> {
        loop {
            match self.state {
                State::Skip(length) => {
                    let left = self.skip(length);
                    if left > 0 {
                        self.state = State::Skip(left);
                        return Ok(None);
                    }
                    self.state = State::Key(Varint::default());
                }
                State::Inside(value) => {
                    let Some(captured) = self.capture.advance(&self.chunk, &mut self.at) else {
                        return Ok(None);
                    };
                    self.state = State::Key(Varint::default());
                    if let Some(part) = self.captured(value, captured)? {
                        return Ok(Some(part));
                    }
                }
                State::Key(key) if key.is_fresh() && self.in_list == Some(0) => self.in_list = None,
                _ => {
                    let Some(byte) = self.chunk.get(self.at).copied() else { return Ok(None) };
                    self.at = self.at.saturating_add(1);
                    self.step(byte)?;
                }
            }
        }
    }

    /// Skips bytes of the chunk. Returns how many of them are still to come.
    fn skip(&mut self, length: u64) -> u64 {
        let available = self.chunk.len().saturating_sub(self.at);
        let skipped = usize::try_from(length).map_or(available, |length| length.min(available));
        self.at = self.at.saturating_add(skipped);
        length.saturating_sub(skipped as u64)
    }

    /// Reads one byte of the magic bytes, of a key or of a length.
    fn step(&mut self, byte: u8) -> Result<(), BodyError> {
        if let Some(left) = self.in_list {
            let Some(left) = left.checked_sub(1) else { return self.fail("the end of the list") };
            self.in_list = Some(left);
        }
        self.state = match mem::replace(&mut self.state, State::Magic(0)) {
            State::Magic(read) => match MAGIC.get(read) == Some(&byte) {
                true if read.saturating_add(1) == MAGIC.len() => State::Key(Varint::default()),
                true => State::Magic(read.saturating_add(1)),
                false => return self.fail("the magic bytes of protobuf"),
            },
            State::Key(key) => match key.push(byte) {
                Progress::More(key) => State::Key(key),
                Progress::TooLong => return self.fail("the key of a field"),
                Progress::Done(key) => match field(key) {
                    None => return self.fail("the key of a field"),
                    Some((_, WireType::Varint)) => State::Number(Varint::default()),
                    Some((_, WireType::Fixed(length))) => self.value(0, length)?,
                    Some((number, WireType::Bytes)) => State::Length(number, Varint::default()),
                },
            },
            State::Number(number) => match number.push(byte) {
                Progress::More(number) => State::Number(number),
                Progress::TooLong => return self.fail("a number"),
                Progress::Done(_) => State::Key(Varint::default()),
            },
            State::Length(number, length) => match length.push(byte) {
                Progress::More(length) => State::Length(number, length),
                Progress::TooLong => return self.fail("the length of a field"),
                Progress::Done(length) => self.value(number, length)?,
            },
            state => state,
        };
        Ok(())
    }

    /// Begins the value of a field; number 0 is one to skip.
    fn value(&mut self, number: u32, length: u64) -> Result<State, BodyError> {
        if let Some(left) = self.in_list {
            let Some(left) = left.checked_sub(length) else { return self.fail("a value inside the list") };
            self.in_list = Some(left);
        }
        let (value, limit) = match (self.in_list, number) {
            (None, 2) => {
                // Items that were returned cannot be taken back.
                if mem::replace(&mut self.has_list, true) {
                    return self.fail("one list");
                }
                self.in_list = Some(length);
                return Ok(State::Key(Varint::default()));
            }
            (None, 1) => (Value::TypeMeta, MAX_NAME),
            (None, 3) => (Value::ContentEncoding, MAX_NAME),
            (Some(_), 1) => (Value::ListMeta, self.limits.object_bytes),
            (Some(_), 2) => (Value::Item, self.limits.object_bytes),
            _ => return Ok(State::Skip(length)),
        };
        self.capture.begin(length, limit);
        Ok(State::Inside(value))
    }

    fn captured(&mut self, value: Value, captured: Result<Bytes, Bytes>) -> Result<Option<Part>, BodyError> {
        match (value, captured) {
            (Value::Item, Ok(item)) => Ok(Some(Part::Item(item))),
            (Value::Item, Err(prefix)) => Ok(Some(Part::Oversized(prefix))),
            (Value::ListMeta, Ok(meta)) => Ok(Some(Part::Meta(list_meta(&meta)))),
            (Value::TypeMeta, Ok(type_meta)) => self.check_kind(&type_meta).map(|()| None),
            (Value::ContentEncoding, Ok(encoding)) if encoding.is_empty() => Ok(None),
            (Value::ContentEncoding, _) => self.fail("a list without an encoding of its own"),
            (Value::ListMeta | Value::TypeMeta, Err(_)) => self.fail("metadata of a sensible size"),
        }
    }

    fn check_kind(&mut self, type_meta: &[u8]) -> Result<(), BodyError> {
        for (number, wire) in Fields::new(type_meta).flatten() {
            match (number, wire.text()) {
                (2, Ok("Table")) => return Err(BodyError::Table),
                (2, Ok("Status")) => return Err(BodyError::Status),
                (2, Ok(kind)) => self.kind = Some(kind.to_owned()),
                _ => {}
            }
        }
        Ok(())
    }

    fn syntax(&self, expected: &'static str) -> BodyError {
        BodyError::Syntax { at: self.before.saturating_add(self.at), expected }
    }

    fn fail<T>(&self, expected: &'static str) -> Result<T, BodyError> {
        Err(self.syntax(expected))
    }
}

/// Reads the metadata of a list; fields of unexpected types count as absent.
fn list_meta(bytes: &[u8]) -> ListMeta {
    let mut meta = ListMeta::default();
    for (number, wire) in Fields::new(bytes).flatten() {
        match (number, wire.text(), wire.integer()) {
            (2, Ok(version), _) if !version.is_empty() => meta.resource_version = Some(version.into()),
            (3, Ok(token), _) if !token.is_empty() => meta.continue_token = Some(token.to_owned()),
            (4, _, Ok(remaining)) => meta.remaining = u64::try_from(remaining).ok(),
            _ => {}
        }
    }
    meta
}

#[cfg(test)]
mod tests;
