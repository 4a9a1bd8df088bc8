//! A watch that is read in the background while later steps write.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

/// An item of a stream: an event, a framing error, or the end.
enum Item {
    Event(Value),
    Error(String),
    End,
}

pub(crate) struct Stream {
    items: mpsc::UnboundedReceiver<Item>,
    ended: bool,
    reader: AbortHandle,
}

/// How a step reads.
pub(crate) struct Reading<'a> {
    pub(crate) count: usize,
    pub(crate) seconds: f64,
    pub(crate) end: Option<&'a str>,
    pub(crate) quiet: f64,
    pub(crate) ignore: Vec<&'a str>,
}

impl Stream {
    pub(crate) fn open(response: http::Response<Incoming>) -> Self {
        let (sender, items) = mpsc::unbounded_channel();
        let content_type =
            response.headers().get("content-type").and_then(|v| v.to_str().ok()).unwrap_or_default();
        let split = if content_type.contains("protobuf") { split_frames } else { split_lines };
        let reader = tokio::spawn(read(response.into_body(), split, sender)).abort_handle();
        Self { items, ended: false, reader }
    }

    /// Reads the expected number of events, and then the expected end.
    pub(crate) async fn read(&mut self, how: &Reading<'_>) -> Result<Vec<Value>, String> {
        let deadline = Instant::now() + Duration::from_secs_f64(how.seconds);
        let mut events: Vec<Value> = Vec::new();
        while how.end.is_some() || events.len() < how.count {
            let done = events.len() == how.count;
            let wait = if done && how.end == Some("quiet") {
                Duration::from_secs_f64(how.quiet)
            } else {
                deadline.saturating_duration_since(Instant::now())
            };
            let at = format!("events[{}]", events.len());
            let expected = if done { how.end.unwrap_or("event") } else { "event" };
            match self.next(wait).await {
                None if done && how.end == Some("quiet") => break,
                None => return Err(format!("{at}: expected <{expected}> got <nothing> after {events:?}")),
                Some(Item::Error(error)) => return Err(error),
                Some(Item::End) if done && how.end == Some("eof") => break,
                Some(Item::End) => return Err(format!("{at}: expected <{expected}> got <end of stream>")),
                Some(Item::Event(event)) if how.ignore.iter().any(|t| event["type"] == *t) => {}
                Some(Item::Event(event)) if done => {
                    return Err(format!("{at}: expected <{expected}> got {event}"));
                }
                Some(Item::Event(event)) => events.push(event),
            }
        }
        Ok(events)
    }

    async fn next(&mut self, wait: Duration) -> Option<Item> {
        if self.ended {
            return Some(Item::End);
        }
        let item =
            timeout(wait.max(Duration::from_millis(10)), self.items.recv()).await.ok()?.unwrap_or(Item::End);
        self.ended = matches!(item, Item::End);
        Some(item)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

type Split = fn(&mut BytesMut) -> Result<Option<Value>, String>;

async fn read(mut body: Incoming, split: Split, sender: mpsc::UnboundedSender<Item>) {
    let mut buffer = BytesMut::new();
    let last = loop {
        match split(&mut buffer) {
            Ok(Some(event)) => {
                let _ = sender.send(Item::Event(event));
                continue;
            }
            Ok(None) => {}
            Err(error) => break Item::Error(error),
        }
        match body.frame().await {
            Some(Ok(frame)) => buffer.extend_from_slice(frame.data_ref().map_or(&[][..], |d| d)),
            Some(Err(error)) => break Item::Error(format!("stream: expected <clean end> got {error}")),
            None if buffer.is_empty() => break Item::End,
            None => break Item::Error(format!("framing: {} bytes without an end", buffer.len())),
        }
    };
    let _ = sender.send(last);
}

fn split_lines(buffer: &mut BytesMut) -> Result<Option<Value>, String> {
    let Some(end) = buffer.iter().position(|b| *b == b'\n') else { return Ok(None) };
    let line = buffer.split_to(end + 1);
    let event: Value =
        serde_json::from_slice(&line).map_err(|e| format!("framing: not one object in a line: {e}"))?;
    let exact =
        event.as_object().is_some_and(|o| o.len() == 2 && o.contains_key("type") && o.contains_key("object"));
    if exact { Ok(Some(event)) } else { Err(format!("framing: expected type and object got {event}")) }
}

fn split_frames(buffer: &mut BytesMut) -> Result<Option<Value>, String> {
    let Some(head) = buffer.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(*head) as usize;
    if buffer.len() < 4 + length {
        return Ok(None);
    }
    let frame = buffer.split_to(4 + length).split_off(4);
    let event = fields(&frame)?;
    let raw = |n: u64, from: &BTreeMap<u64, Vec<u8>>| from.get(&n).cloned().unwrap_or_default();
    let object = envelope(&raw(1, &fields(&raw(2, &event))?))?;
    Ok(Some(json!({"type": String::from_utf8_lossy(&raw(1, &event)), "object": object})))
}

/// Returns the magic number and the type of an enveloped object, which is not decoded.
pub(crate) fn envelope(bytes: &[u8]) -> Result<Value, String> {
    let (magic, rest) = bytes.split_at_checked(4).ok_or("protobuf: shorter than its magic number")?;
    let unknown = if magic == b"k8s\0" { fields(rest)? } else { BTreeMap::new() };
    let meta = unknown.get(&1).map(|m| fields(m)).transpose()?.unwrap_or_default();
    let text = |n: u64| meta.get(&n).map(|v| String::from_utf8_lossy(v).into_owned()).unwrap_or_default();
    Ok(
        json!({"magic": String::from_utf8_lossy(magic).replace('\0', "\\0"), "apiVersion": text(1), "kind": text(2),
        "rawBytes": unknown.get(&2).is_some_and(|raw| !raw.is_empty())}),
    )
}

/// Returns the length-delimited fields of a protobuf message; varints are skipped.
fn fields(mut message: &[u8]) -> Result<BTreeMap<u64, Vec<u8>>, String> {
    let mut found = BTreeMap::new();
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let value = varint(&mut message)?;
        if tag & 7 == 2 {
            let (field, rest) =
                message.split_at_checked(value as usize).ok_or("protobuf: a field is truncated")?;
            found.insert(tag >> 3, field.to_vec());
            message = rest;
        }
    }
    Ok(found)
}

fn varint(message: &mut &[u8]) -> Result<u64, String> {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let (byte, rest) = message.split_first().ok_or("protobuf: a number is truncated")?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
        if shift > 63 {
            return Err("protobuf: a number is too long".to_owned());
        }
    }
}
