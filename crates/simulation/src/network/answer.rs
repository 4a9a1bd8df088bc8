//! The body of an answer on its way, piece by piece.

use super::{BoxError, Network, line::Now, reset};
use crate::{
    cluster::noise,
    totals::Fault,
    trouble::{Asked, Condition, Trap},
    truth::ClientId,
};
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http_body::Frame;
use http_body_util::BodyExt;
use kube::client::Body;
use std::{collections::VecDeque, pin::pin, sync::Arc, time::Duration};

/// The body of an answer on its way. The network forgets it when it is dropped.
pub(super) struct Answer {
    network: Arc<Network>,
    id: u64,
    client: ClientId,
    /// What the server still has to say; `None` when it has said everything.
    body: Option<Body>,
    what: What,
    /// What has been sent and has not arrived.
    under_way: VecDeque<Bytes>,
    sent: u64,
    arrived: u64,
    /// What the client knows once so many bytes have arrived.
    marks: VecDeque<(u64, Mark)>,
    compact_after: bool,
    ended: bool,
    /// What the client has taken when it reads on.
    last: Option<(u32, u64)>,
}

enum What {
    Watch,
    List {
        /// A later page.
        continued: bool,
        /// Nobody keeps it.
        probe: bool,
        head: Option<Head>,
    },
}

/// What the beginning of a list says.
#[derive(Clone, Copy)]
struct Head {
    version: u64,
    last: bool,
}

#[derive(Clone, Copy)]
enum Mark {
    /// Everything up to a version.
    Told(u64),
    /// A whole list.
    Listed(u64),
    Garbled(u64),
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.network.lock().lines.remove(&self.id);
    }
}

impl Answer {
    pub(super) fn new(
        network: &Arc<Network>,
        id: u64,
        client: ClientId,
        asked: Asked,
        trap: Option<Trap>,
        body: Body,
    ) -> Self {
        let what = if asked.watch {
            What::Watch
        } else {
            What::List { continued: asked.continued, probe: asked.probe, head: None }
        };
        Self {
            network: Arc::clone(network),
            id,
            client,
            body: Some(body),
            what,
            under_way: VecDeque::new(),
            sent: 0,
            arrived: 0,
            marks: VecDeque::new(),
            compact_after: trap == Some(Trap::CompactAfterList),
            ended: false,
            last: None,
        }
    }

    /// Whether the server begins by saying that the version is no longer kept.
    pub(super) fn is_expired(&mut self) -> bool {
        let frame = self.body.as_mut().and_then(|body| body.frame().now_or_never()).flatten();
        let Some(Ok(Ok(frame))) = frame.map(|frame| frame.map(Frame::into_data)) else { return false };
        let expired = frame.starts_with(b"{\"type\":\"ERROR\"") && contains(&frame, b"\"code\":410");
        self.take(frame);
        expired
    }

    /// The next piece.
    pub(super) async fn next(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        if self.ended {
            return None;
        }
        // The client reads on when there is no whole event left in what it got.
        if let Some(state) = self.last.take() {
            self.network.truth.lock().took(self.client, state);
        }
        self.delay().await;
        let network = Arc::clone(&self.network);
        loop {
            let mut changed = pin!(network.changed.notified());
            // Waits from here on, so that no change is missed after looking.
            changed.as_mut().enable();
            let now = network.lock().now(self.id, self.arrived, &network.log);
            match now {
                Now::Go => {}
                Now::Never => std::future::pending().await,
                Now::Break => return self.end(Some(Err(reset()))),
                Now::Stop => return self.end(None),
                Now::LastWord(word) => self.send(word.into(), None),
                Now::End if self.under_way.is_empty() => return self.end(None),
                Now::End => {}
            }
            if let Some(piece) = self.piece() {
                return Some(Ok(Frame::data(piece)));
            }
            let Some(body) = &mut self.body else {
                self.complete().await;
                return self.end(None);
            };
            tokio::select! {
                biased;
                () = changed => {}
                frame = body.frame() => match frame.map(|frame| frame.map(Frame::into_data)) {
                    Some(Ok(Ok(frame))) => self.take(frame),
                    Some(Ok(Err(_))) => {}
                    Some(Err(error)) => return self.end(Some(Err(error.into()))),
                    None => self.body = None,
                },
            }
        }
    }

    fn end(
        &mut self,
        last: Option<Result<Frame<Bytes>, BoxError>>,
    ) -> Option<Result<Frame<Bytes>, BoxError>> {
        self.ended = true;
        if let Some(line) = self.network.lock().lines.get_mut(&self.id) {
            line.over = true;
        }
        last
    }

    async fn delay(&mut self) {
        let (roll, slow) = {
            let mut state = self.network.lock();
            (state.rng.u8(0..16), state.lines.get(&self.id).and_then(|line| line.slow))
        };
        match (slow, roll) {
            (Some(slow), _) => tokio::time::sleep(slow).await,
            (None, 0) => tokio::time::sleep(Duration::from_millis(1)).await,
            (None, 1..3) => tokio::task::yield_now().await,
            _ => {}
        }
    }

    /// Some of what is under way arrives: a word, a part of one, or several at once.
    fn piece(&mut self) -> Option<Bytes> {
        let next = self.under_way.pop_front()?;
        let (roll, cut, trickle, room) = {
            let mut state = self.network.lock();
            let trickle = state.lines.get(&self.id).is_some_and(|line| line.trickle);
            let cut = state.rng.usize(1..=if trickle { 16 } else { next.len().max(1) });
            (state.rng.u8(0..8), cut, trickle, state.room(self.id, self.arrived))
        };
        let mut piece = match roll {
            0 if !trickle && !self.under_way.is_empty() => self.join(next),
            _ => next,
        };
        let most = if trickle || roll == 1 { cut } else { piece.len() };
        let most = most.min(usize::try_from(room).unwrap_or(usize::MAX).max(1)).min(piece.len());
        let rest = piece.split_off(most);
        if trickle && !rest.is_empty() && self.arrived == 0 {
            self.network.log.strike(Fault::Trickled);
        }
        if !rest.is_empty() {
            self.under_way.push_front(rest);
        }
        self.arrived += piece.len() as u64;
        self.pass();
        Some(piece)
    }

    /// Everything that is under way, in one piece.
    fn join(&mut self, first: Bytes) -> Bytes {
        let mut joined = BytesMut::from(first);
        self.under_way.drain(..).for_each(|more| joined.extend_from_slice(&more));
        joined.freeze()
    }

    /// What the client knows now.
    fn pass(&mut self) {
        while let Some(&(at, mark)) = self.marks.front()
            && at <= self.arrived
        {
            self.marks.pop_front();
            let epoch = self.network.lock().lines.get(&self.id).map_or(0, |line| line.epoch);
            let mut known = self.network.truth.lock();
            match mark {
                Mark::Told(version) => {
                    if known.told(self.client, epoch, version) {
                        self.last = Some((epoch, version));
                    }
                }
                Mark::Listed(version) => {
                    known.listed(self.client, epoch, version);
                    self.last = Some((epoch, version));
                }
                Mark::Garbled(version) => known.blurred(self.client, version),
            }
        }
    }

    /// All of a page has arrived.
    async fn complete(&mut self) {
        let What::List { head: Some(head), .. } = self.what else { return };
        if !head.last {
            return;
        }
        {
            let mut known = self.network.truth.lock();
            if let Some((epoch, version)) = known.on_its_way(self.client) {
                known.listed(self.client, epoch, version);
            }
        }
        let upstream = self.network.lock().upstream.clone();
        let Some(upstream) = upstream.filter(|_| self.compact_after) else { return };
        let Some(_permit) = self.network.truth.permit(1) else { return };
        // Something else is written, so that the list is of the past.
        let number = self.network.lock().rng.u64(..);
        let _ = upstream.client.send(noise(number)).await;
        self.network.log.strike(Fault::CompactedBeforeWatch);
        let _ = upstream.faults.compact().await;
        let _ = upstream.faults.forget_window(None).await;
    }

    /// The server said something.
    fn take(&mut self, frame: Bytes) {
        match &mut self.what {
            What::Watch => self.take_event(frame),
            What::List { continued, probe, head } => {
                if head.is_none() {
                    let said = Head {
                        version: version_in(&frame).unwrap_or(0),
                        // Lists of custom kinds end with an empty token, others with none.
                        last: !*probe
                            && (contains(&frame, b"\"continue\":\"\"")
                                || !contains(&frame, b"\"continue\":\"")),
                    };
                    *head = Some(said);
                    if !*continued && !*probe {
                        let epoch = self.network.lock().lines.get(&self.id).map_or(0, |line| line.epoch);
                        let mut known = self.network.truth.lock();
                        known.listing(self.client, Some((epoch, said.version)));
                        self.network.log.note(format_args!("client {} lists @{}", self.client, said.version));
                    }
                }
                self.send(frame, None);
            }
        }
    }

    fn take_event(&mut self, frame: Bytes) {
        let log = Arc::clone(&self.network.log);
        let mut state = self.network.lock();
        let endless = state.trouble.has(Condition::NoEndBookmark);
        let Some(line) = state.lines.get_mut(&self.id) else { return };
        let Some(version) = version_in(&frame) else {
            let expired = contains(&frame, b"\"code\":410");
            drop(state);
            log.strike(if expired { Fault::ExpiredInStream } else { Fault::TooLarge });
            return self.send(frame, None);
        };
        let bookmark = frame.starts_with(b"{\"type\":\"BOOKMARK\"");
        if line.initial {
            if !bookmark || !contains(&frame, b"initial-events-end") {
                drop(state);
                return self.send(frame, None);
            }
            if endless {
                log.strike(Fault::NoEndBookmark);
                return;
            }
            line.initial = false;
            drop(state);
            return self.send(frame, Some(Mark::Listed(version)));
        }
        let garble = if bookmark { None } else { line.garble.take() };
        if std::mem::take(&mut line.repeats) {
            log.strike(Fault::Duplicate);
        }
        drop(state);
        log.note(format_args!("client {} gets @{version}", self.client));
        match garble {
            Some(with_version) => {
                log.strike(Fault::Unreadable);
                self.send(garbled(with_version.then_some(version)), Some(Mark::Garbled(version)));
            }
            None => self.send(frame, Some(Mark::Told(version))),
        }
    }

    fn send(&mut self, bytes: Bytes, mark: Option<Mark>) {
        self.sent += bytes.len() as u64;
        self.under_way.extend((!bytes.is_empty()).then_some(bytes));
        self.marks.extend(mark.map(|mark| (self.sent, mark)));
    }
}

/// A line that was an event.
fn garbled(version: Option<u64>) -> Bytes {
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

/// The first version that a piece of JSON of the server names: its own.
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
    fn the_version_of_a_piece_is_the_first_one() {
        let event = br#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"17","x":{"resourceVersion":"3"}}}}"#;
        assert_eq!(version_in(event), Some(17));
        assert_eq!(version_in(br#"{"type":"ERROR","object":{"code":410}}"#), None);
        assert_eq!(version_in(br#"{"resourceVersion":"#), None);
    }

    #[test]
    fn garbled_lines_are_lines() {
        for version in [None, Some(5)] {
            let line = garbled(version);
            assert!(line.ends_with(b"\n") && !line[..line.len() - 1].contains(&b'\n'));
            assert_eq!(version_in(&line), version);
        }
    }
}
