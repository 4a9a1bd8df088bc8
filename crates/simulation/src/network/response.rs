//! The body of a response in flight, chunk by chunk.

use super::{BoxError, Network, in_flight::NextStep, reset, transcoding};
use crate::{
    cluster::unrelated_write,
    faults::{Condition, RequestFault, RequestInfo},
    reader::after_waits,
    totals::Fault,
    truth::{ClientId, Received},
};
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http_body::Frame;
use http_body_util::BodyExt;
use kube::client::Body;
use std::{collections::VecDeque, pin::pin, sync::Arc, time::Duration};

/// The body of a response in flight. Dropping it ends the response.
pub(super) struct ResponseBody {
    network: Arc<Network>,
    id: u64,
    client: ClientId,
    /// The body that the server sends; `None` when it is complete.
    body: Option<Body>,
    kind: BodyKind,
    /// Bytes that the server has sent and the client has not received.
    pending: VecDeque<Bytes>,
    sent: u64,
    received: u64,
    /// The states that the client has received once it has that many bytes.
    milestones: VecDeque<(u64, Milestone)>,
    compact_after: bool,
    ended: bool,
    encoding: BodyEncoding,
    last: Option<Received>,
}

/// How the client receives the body.
enum BodyEncoding {
    Json,
    /// A list is transcoded when it is complete: its JSON so far.
    Protobuf(Vec<u8>),
}

enum BodyKind {
    Watch,
    List {
        /// A later page.
        continued: bool,
        probe: bool,
        /// Whether it is the last page; `None` until its metadata arrive.
        last_page: Option<bool>,
    },
}

#[derive(Clone, Copy)]
enum Milestone {
    /// An event or bookmark of this version.
    Event(u64),
    /// A whole streaming list.
    List(u64),
    MalformedEvent(u64),
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.network.lock().in_flight.remove(&self.id);
    }
}

impl ResponseBody {
    pub(super) fn new(
        network: &Arc<Network>,
        id: u64,
        client: ClientId,
        request: RequestInfo,
        fault: Option<RequestFault>,
        body: Body,
    ) -> Self {
        let kind = if request.watch {
            BodyKind::Watch
        } else {
            BodyKind::List { continued: request.continued, probe: request.probe, last_page: None }
        };
        Self {
            network: Arc::clone(network),
            id,
            client,
            body: Some(body),
            kind,
            pending: VecDeque::new(),
            sent: 0,
            received: 0,
            milestones: VecDeque::new(),
            compact_after: fault == Some(RequestFault::CompactAfterList),
            ended: false,
            encoding: BodyEncoding::Json,
            last: None,
        }
    }

    /// Lets the client receive protobuf.
    pub(super) fn transcode(&mut self) {
        self.encoding = BodyEncoding::Protobuf(Vec::new());
    }

    /// Whether the body begins with a 410 event.
    pub(super) fn is_expired(&mut self) -> bool {
        let frame = self.body.as_mut().and_then(|body| body.frame().now_or_never()).flatten();
        let Some(Ok(Ok(frame))) = frame.map(|frame| frame.map(Frame::into_data)) else { return false };
        let expired = frame.starts_with(b"{\"type\":\"ERROR\"") && contains(&frame, b"\"code\":410");
        self.accept(frame);
        expired
    }

    /// The next chunk that the client receives.
    pub(super) async fn next(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        if self.ended {
            return None;
        }
        let (network, client, mut last) = (Arc::clone(&self.network), self.client, self.last.take());
        // The client polls when no complete event is left in what it received.
        if let Some(Received::List(state)) = last {
            last = None;
            network.truth.lock().applied(client, state);
        }
        let waited = || {
            if let Some(Received::List(state) | Received::Events(state)) = last.take() {
                network.truth.lock().applied(client, state);
            }
        };
        let frame = after_waits(self.receive(), waited).await;
        self.last = self.last.take().or(last);
        frame
    }

    async fn receive(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        self.delay().await;
        let network = Arc::clone(&self.network);
        loop {
            let mut changed = pin!(network.changed.notified());
            // Registered before the state is read, so that no change is missed.
            changed.as_mut().enable();
            let step = network.lock().next_step(self.id, self.received, &network.log);
            match step {
                NextStep::Continue => {}
                NextStep::Stall => {
                    changed.await;
                    continue;
                }
                NextStep::Break => return self.end(Some(Err(reset()))),
                NextStep::Truncate => {
                    if self.is_whole() {
                        self.complete().await;
                    }
                    return self.end(None);
                }
                NextStep::SendError(event) => self.send(event.into(), None),
                NextStep::End if self.pending.is_empty() => return self.end(None),
                NextStep::End => {}
            }
            if let Some(chunk) = self.chunk() {
                return Some(Ok(Frame::data(chunk)));
            }
            let Some(body) = &mut self.body else {
                self.complete().await;
                return self.end(None);
            };
            tokio::select! {
                biased;
                () = changed => {}
                frame = body.frame() => match frame.map(|frame| frame.map(Frame::into_data)) {
                    Some(Ok(Ok(frame))) => self.accept(frame),
                    Some(Ok(Err(_))) => {}
                    Some(Err(error)) => return self.end(Some(Err(error.into()))),
                    None => {
                        self.body = None;
                        self.transcode_list();
                    }
                },
            }
        }
    }

    fn end(
        &mut self,
        last: Option<Result<Frame<Bytes>, BoxError>>,
    ) -> Option<Result<Frame<Bytes>, BoxError>> {
        self.ended = true;
        if let Some(response) = self.network.lock().in_flight.get_mut(&self.id) {
            response.ended = true;
        }
        last
    }

    async fn delay(&mut self) {
        let (roll, slow) = {
            let mut state = self.network.lock();
            (state.rng.u8(0..16), state.in_flight.get(&self.id).and_then(|response| response.faults.slow))
        };
        match (slow, roll) {
            (Some(slow), _) => tokio::time::sleep(slow).await,
            (None, 0) => tokio::time::sleep(Duration::from_millis(1)).await,
            (None, 1..3) => tokio::task::yield_now().await,
            _ => {}
        }
    }

    /// Takes some of the pending bytes: a frame of the server, a part of one, or several.
    fn chunk(&mut self) -> Option<Bytes> {
        let next = self.pending.pop_front()?;
        let (roll, cut, trickle, remaining) = {
            let mut state = self.network.lock();
            let trickle = state.in_flight.get(&self.id).is_some_and(|response| response.trickle);
            let cut = state.rng.usize(1..=if trickle { 16 } else { next.len().max(1) });
            (state.rng.u8(0..8), cut, trickle, state.remaining(self.id, self.received))
        };
        let mut chunk = match roll {
            0 if !trickle && !self.pending.is_empty() => self.join(next),
            _ => next,
        };
        let most = if trickle || roll == 1 { cut } else { chunk.len() };
        let most = most.min(usize::try_from(remaining).unwrap_or(usize::MAX).max(1)).min(chunk.len());
        let rest = chunk.split_off(most);
        if trickle && !rest.is_empty() && self.received == 0 {
            self.network.log.record_fault(Fault::Trickled);
        }
        if !rest.is_empty() {
            self.pending.push_front(rest);
        }
        self.received += chunk.len() as u64;
        self.pass_milestones();
        Some(chunk)
    }

    /// All pending bytes in one chunk.
    fn join(&mut self, first: Bytes) -> Bytes {
        let mut joined = BytesMut::from(first);
        self.pending.drain(..).for_each(|more| joined.extend_from_slice(&more));
        joined.freeze()
    }

    /// Records the states that the client has now received.
    fn pass_milestones(&mut self) {
        while let Some(&(at, milestone)) = self.milestones.front()
            && at <= self.received
        {
            self.milestones.pop_front();
            let epoch = self.epoch();
            let mut truth = self.network.truth.lock();
            match milestone {
                Milestone::Event(version) => {
                    if truth.received_event(self.client, (epoch, version)) {
                        self.last = Some(Received::Events((epoch, version)));
                    }
                }
                Milestone::List(version) => {
                    truth.received_list(self.client, (epoch, version));
                    self.last = Some(Received::List((epoch, version)));
                }
                Milestone::MalformedEvent(version) => truth.received_malformed(self.client, version),
            }
        }
    }

    fn epoch(&self) -> u32 {
        self.network.lock().in_flight.get(&self.id).map_or(0, |response| response.epoch)
    }

    /// Whether nothing but the end is left to receive.
    fn is_whole(&mut self) -> bool {
        let has_ended = match (&mut self.body, &self.encoding) {
            (None, _) => true,
            (Some(body), BodyEncoding::Json) => matches!(body.frame().now_or_never(), Some(None)),
            (Some(_), BodyEncoding::Protobuf(_)) => false,
        };
        has_ended && self.pending.is_empty()
    }

    /// The client has received a whole page.
    async fn complete(&mut self) {
        let BodyKind::List { last_page: Some(true), .. } = self.kind else { return };
        {
            let mut truth = self.network.truth.lock();
            if let Some(state) = truth.list_in_flight(self.client) {
                truth.received_list(self.client, state);
            }
        }
        let upstream = self.network.lock().upstream.clone();
        let Some(upstream) = upstream.filter(|_| self.compact_after) else { return };
        let Some(_permit) = self.network.truth.permit(1) else { return };
        // Makes the version of the list older than the compaction.
        let number = self.network.lock().rng.u64(..);
        let _ = upstream.client.send(unrelated_write(number)).await;
        self.network.log.record_fault(Fault::CompactedBeforeWatch);
        let _ = upstream.faults.compact().await;
        let _ = upstream.faults.forget_window(None).await;
    }

    /// Accepts a frame of the server's body.
    fn accept(&mut self, frame: Bytes) {
        match self.kind {
            BodyKind::Watch => self.accept_event(frame),
            BodyKind::List { continued, probe, last_page } => {
                if last_page.is_none() {
                    self.accept_list_metadata(&frame, continued, probe);
                }
                match &mut self.encoding {
                    BodyEncoding::Protobuf(list) => list.extend_from_slice(&frame),
                    BodyEncoding::Json => self.send(frame, None),
                }
            }
        }
    }

    fn accept_list_metadata(&mut self, frame: &[u8], continued: bool, probe: bool) {
        let version = version_in(frame).unwrap_or(0);
        // The last page of custom resources has an empty token, that of built-in resources has none.
        let last_page = contains(frame, b"\"continue\":\"\"") || !contains(frame, b"\"continue\":\"");
        self.kind = BodyKind::List { continued, probe, last_page: Some(last_page && !probe) };
        if !continued && !probe {
            let epoch = self.epoch();
            let mut truth = self.network.truth.lock();
            truth.set_list_in_flight(self.client, Some((epoch, version)));
            self.network.log.note(format_args!("client {} lists @{version}", self.client));
        }
    }

    fn accept_event(&mut self, frame: Bytes) {
        let log = Arc::clone(&self.network.log);
        let mut state = self.network.lock();
        let no_end_bookmark = state.faults.has(Condition::NoEndBookmark);
        let Some(response) = state.in_flight.get_mut(&self.id) else { return };
        let Some(version) = version_in(&frame) else {
            let expired = contains(&frame, b"\"code\":410");
            drop(state);
            log.record_fault(if expired { Fault::ExpiredInStream } else { Fault::TooLarge });
            return self.send(frame, None);
        };
        let bookmark = frame.starts_with(b"{\"type\":\"BOOKMARK\"");
        if response.initial {
            if !bookmark || !contains(&frame, b"initial-events-end") {
                drop(state);
                return self.send(frame, None);
            }
            if no_end_bookmark {
                log.record_fault(Fault::NoEndBookmark);
                return;
            }
            response.initial = false;
            drop(state);
            return self.send(frame, Some(Milestone::List(version)));
        }
        let malformed = if bookmark { None } else { response.faults.malformed.take() };
        if std::mem::take(&mut response.repeats) {
            log.record_fault(Fault::Duplicate);
        }
        drop(state);
        log.note(format_args!("client {} receives @{version}", self.client));
        match malformed {
            Some(with_version) => {
                log.record_fault(Fault::MalformedEvent);
                let event = malformed_event(with_version.then_some(version));
                self.send(event, Some(Milestone::MalformedEvent(version)));
            }
            None => self.send(frame, Some(Milestone::Event(version))),
        }
    }

    /// Sends a list that is complete and has not been sent in parts.
    fn transcode_list(&mut self) {
        if let (BodyKind::List { .. }, BodyEncoding::Protobuf(list)) = (&self.kind, &mut self.encoding) {
            let json = std::mem::take(list);
            match transcoding::list(&json) {
                Some(list) => self.queue(list, None),
                None => self.network.log.fail(format_args!("the server sent a list that is no list")),
            }
        }
    }

    /// Sends a frame of the server, or something in its place.
    fn send(&mut self, bytes: Bytes, milestone: Option<Milestone>) {
        match self.encoding {
            BodyEncoding::Protobuf(_) => self.queue(transcoding::event(&bytes), milestone),
            BodyEncoding::Json => self.queue(bytes, milestone),
        }
    }

    fn queue(&mut self, bytes: Bytes, milestone: Option<Milestone>) {
        self.sent += bytes.len() as u64;
        self.pending.extend((!bytes.is_empty()).then_some(bytes));
        self.milestones.extend(milestone.map(|milestone| (self.sent, milestone)));
    }
}

/// A line that is not a valid event, with or without a resource version.
fn malformed_event(version: Option<u64>) -> Bytes {
    let line = match version {
        Some(version) => {
            format!(
                "{{\"type\":\"MODIFIED\",\"object\":{{\"metadata\":{{\"resourceVersion\":\"{version}\"}}}}}}\n"
            )
        }
        None => "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"na\n".to_owned(),
    };
    line.into()
}

/// The first resource version in JSON of the server, which is that of the list or object itself.
fn version_in(json: &[u8]) -> Option<u64> {
    const NAME: &[u8] = b"\"resourceVersion\":\"";
    let start = find(json, NAME)? + NAME.len();
    let digits = json[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&json[start..start + digits]).ok()?.parse().ok()
}

fn contains(json: &[u8], text: &[u8]) -> bool {
    find(json, text).is_some()
}

fn find(json: &[u8], text: &[u8]) -> Option<usize> {
    json.windows(text.len()).position(|window| window == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_version_in_json_counts() {
        let event = br#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"17","x":{"resourceVersion":"3"}}}}"#;
        assert_eq!(version_in(event), Some(17));
        assert_eq!(version_in(br#"{"type":"ERROR","object":{"code":410}}"#), None);
        assert_eq!(version_in(br#"{"resourceVersion":"#), None);
    }

    #[test]
    fn a_malformed_event_is_one_line() {
        for version in [None, Some(5)] {
            let line = malformed_event(version);
            assert!(line.ends_with(b"\n") && !line[..line.len() - 1].contains(&b'\n'));
            assert_eq!(version_in(&line), version);
        }
    }
}
