//! Reading an open watch.

use super::{
    OpenStream, Reflector, WATCH_WORKS_AFTER,
    machine::{Command, Delivered, Failure, Input, SHORT_WATCH},
    silent,
};
use crate::{
    delta_fifo::{Change, Compare, Offered, Position},
    fail_point::FailPoint,
    telemetry::{InformerError, RelistReason},
    time,
};
use futures_util::StreamExt;
use kube_informer_wire::{Bookmark, ListWatchError, Malformed, ResourceVersion, WatchEvent};
use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};
use tokio::time::Instant;

/// Maximum number of events that are handled before their changes are queued: the first one waits for the others, some
/// microseconds each.
const GROUP: usize = 64;

/// Changes of a watch that are queued together.
#[derive(Default)]
pub(super) struct Group {
    changes: Vec<(Change, Option<Position>)>,
    /// The version that the watch reaches with them.
    reached: Option<ResourceVersion>,
}

impl Reflector {
    /// Reads the open watch until it ends, fails, or the machine decides otherwise.
    pub(super) async fn follow(&mut self) -> Command {
        let Some(mut stream) = self.stream.take() else { return self.step(Input::Start) };
        let command = loop {
            match self.read_event(&mut stream).await {
                Command::Follow => {}
                command => break command,
            }
        };
        // The time counts over successive watches: a proxy that ends silent streams after a minute must not keep the
        // server from being probed.
        let quiet = self.quiet.saturating_add(stream.opened.elapsed());
        self.quiet = if stream.version_confirmed { Duration::ZERO } else { quiet };
        if matches!(command, Command::Probe(_)) {
            self.stream = Some(stream);
        }
        command
    }

    /// Reads the next event, and with it those that have arrived behind it.
    async fn read_event(&mut self, stream: &mut OpenStream) -> Command {
        let room = self.queue.room().await;
        self.disk_room().await;
        let now = Instant::now();
        if self.machine.repair_due().is_some_and(|due| due <= now) {
            return self.anomaly(Input::RepairDue { now });
        }
        if self.machine.proof_due().is_some_and(|due| due <= now) {
            return self.step(Input::ProofDue);
        }
        let event = tokio::select! {
            biased;
            () = self.refetch.requested(self.partition) => return self.refetch(),
            event = time::timeout_at(self.next_timer(stream), stream.events.next()) => event,
        };
        let lasted = stream.opened.elapsed();
        match event {
            Err(_) => self.timer_fired(stream, lasted),
            Ok(None) => self.ended(stream, lasted),
            Ok(Some(Err(error))) => self.watch_failed(Failure::of(&error), error, lasted),
            Ok(Some(Ok(event))) => self.receive_group(event, stream, room).await,
        }
    }

    /// Handles an event and those that have arrived behind it: at most `room` of them. Their changes are queued together.
    ///
    /// # Cancel safety
    /// It never waits, so that no event is taken out of the stream and lost.
    async fn receive_group(&mut self, first: WatchEvent, stream: &mut OpenStream, room: usize) -> Command {
        // While a restored state is not proven, each event may end the watch.
        let limit = if self.machine.is_proven() { room.min(GROUP) } else { 1 };
        let (mut event, mut received) = (first, 0);
        loop {
            self.telemetry.event(&event);
            self.fail_points.at(FailPoint::ReflectorEvent);
            let command = self.receive(event, stream);
            received += 1;
            if command != Command::Follow || received >= limit || !self.packer.has_room() {
                break self.flush_then(command, stream);
            }
            match poll_fn(|task| Poll::Ready(stream.events.poll_next_unpin(task))).await {
                Poll::Ready(Some(Ok(next))) => event = next,
                Poll::Ready(None) => {
                    self.flush(stream);
                    break self.ended(stream, stream.opened.elapsed());
                }
                Poll::Ready(Some(Err(error))) => {
                    self.flush(stream);
                    break self.watch_failed(Failure::of(&error), error, stream.opened.elapsed());
                }
                Poll::Pending => break self.flush_then(Command::Follow, stream),
            }
        }
    }

    /// Queues the changes of the group. A command that ends the watch stays what it is.
    fn flush_then(&mut self, command: Command, stream: &mut OpenStream) -> Command {
        match (command, self.flush(stream)) {
            (Command::Follow, flushed) => flushed,
            (command, _) => command,
        }
    }

    /// Queues the changes of the group, with one lock, so that they become one batch of the store. The machine receives
    /// the version of the watch only after that: a panic before that loses nothing.
    fn flush(&mut self, stream: &mut OpenStream) -> Command {
        if self.group.changes.is_empty() {
            return Command::Follow;
        }
        let Group { changes, reached } = std::mem::take(&mut self.group);
        let known = self.queue.offer_all(changes, &*self.indexer);
        (0..known).for_each(|_| self.telemetry.duplicate());
        self.progressed(reached, stream)
    }

    /// The version that the watch has reached, with the changes of the group.
    fn reached(&self) -> Option<&ResourceVersion> {
        self.group.reached.as_ref().or_else(|| self.machine.position())
    }

    /// Deadline of the next timer.
    fn next_timer(&self, stream: &OpenStream) -> Option<Instant> {
        let after = |time| time::after(stream.opened, time);
        let probe = || after(self.deadlines.probe_after.saturating_sub(self.quiet));
        let probe = (!stream.version_confirmed).then(probe).flatten();
        let works = self.health.is_failing().then(|| after(WATCH_WORKS_AFTER)).flatten();
        let due = [self.machine.repair_due(), self.machine.proof_due()];
        [after(stream.dead_after), probe, works].into_iter().chain(due).flatten().min()
    }

    fn timer_fired(&mut self, stream: &mut OpenStream, lasted: Duration) -> Command {
        if self.health.is_failing() && lasted >= WATCH_WORKS_AFTER {
            self.recovered(self.machine.position().cloned());
        } else if lasted >= stream.dead_after {
            let error = silent("end of the watch", stream.dead_after, &stream.url);
            return self.watch_failed(Failure::of(&error), error, lasted);
        } else if !stream.version_confirmed && self.quiet.saturating_add(lasted) >= self.deadlines.probe_after
        {
            stream.version_confirmed = true;
            return self.step(Input::Quiet);
        }
        Command::Follow
    }

    fn ended(&mut self, stream: &OpenStream, lasted: Duration) -> Command {
        if stream.delivered == Delivered::Nothing && lasted < SHORT_WATCH {
            let message = "the watch ended at once, without an event".into();
            let error = ListWatchError::Broken { message, url: Arc::clone(&stream.url) };
            self.note_watch_failure(Failure::of(&error).class, &error);
            self.telemetry.failed(&InformerError::Watch(error));
        }
        self.step(Input::WatchEnded { lasted, delivered: stream.delivered })
    }

    fn receive(&mut self, event: WatchEvent, stream: &mut OpenStream) -> Command {
        let change = match event {
            WatchEvent::Bookmark(bookmark) => return self.receive_bookmark(bookmark, stream),
            WatchEvent::Error(status) => {
                self.flush(stream);
                let failure = Failure::in_stream(&status);
                let error = ListWatchError::api(status, Arc::clone(&stream.url));
                return self.watch_failed(failure, error, stream.opened.elapsed());
            }
            WatchEvent::Malformed(malformed) => return self.receive_malformed(malformed, stream),
            WatchEvent::Added(object) => Change::Added(object),
            WatchEvent::Modified(object) => Change::Modified(object),
            WatchEvent::Deleted(object) => Change::Deleted(object),
        };
        stream.in_version_order |= !matches!(change, Change::Added(_));
        self.receive_change(change, stream)
    }

    fn receive_change(&mut self, change: Change, stream: &mut OpenStream) -> Command {
        let version = change.object().resource_version().clone();
        if !self.shards.matches(change.object().uid()) {
            // The server ignores the shard selector. The stream has reached this version nevertheless.
            return self.reach(Some(version).filter(|_| stream.in_version_order), stream);
        }
        let rewound = stream.in_version_order
            && self.reached().is_some_and(|position| match change {
                // Some servers give a deletion the version of the last change.
                Change::Deleted(_) => version.is_older_than(position),
                _ => version.is_older_than(position) || version.number().is_some() && version == *position,
            });
        if rewound {
            self.flush(stream);
            return self.receive_rewound(&change);
        }
        let position = (stream.in_version_order && !version.is_unset()).then_some(version);
        if !self.covers(change.object().key()) {
            self.telemetry.quarantined(Malformed::new("object is outside the requested namespace"));
            return self.reach(position, stream);
        }
        if let Change::Deleted(object) = &change
            && self.machine.awaits_delete(object.key(), object.uid())
        {
            self.flush(stream);
            self.step(Input::WitnessDeleted);
        }
        let change = self.prepare(change);
        let claim = position.clone().and_then(|version| self.claim(version));
        self.group.changes.push((change, claim));
        self.group.reached = position.or(self.group.reached.take());
        Command::Follow
    }

    /// Handles an event older than the version that the stream has reached. A known state is a repetition; any other
    /// state may come from another history of the server.
    fn receive_rewound(&mut self, change: &Change) -> Command {
        let command = match self.queue.judge(change, &*self.indexer) {
            Offered::Known => Command::Follow,
            Offered::Queued | Offered::Stale => self.anomaly(Input::Rewound { now: Instant::now() }),
        };
        if command == Command::Follow {
            self.telemetry.duplicate();
        }
        command
    }

    fn receive_bookmark(&mut self, bookmark: Bookmark, stream: &mut OpenStream) -> Command {
        stream.in_version_order = true;
        self.reach(Some(bookmark.resource_version), stream)
    }

    fn receive_malformed(&mut self, malformed: Malformed, stream: &mut OpenStream) -> Command {
        self.flush(stream);
        let at = malformed.resource_version.clone();
        match self.anomaly(Input::Malformed { at: at.clone(), now: Instant::now() }) {
            Command::Follow => {
                self.telemetry.quarantined(malformed);
                self.reach(at.filter(|_| stream.in_version_order), stream)
            }
            command => {
                self.telemetry.failed(&InformerError::Malformed(malformed));
                command
            }
        }
    }

    /// Lists again because the content of cached objects cannot be read from its file. Their states count as unknown, so that the
    /// list replaces them.
    fn refetch(&mut self) -> Command {
        let command = self.step(Input::ContentLost { now: Instant::now() });
        if command != Command::Follow {
            self.reason = Some(RelistReason::ContentLost);
        }
        command
    }

    /// Passes an anomaly to the machine, and records the reason if it relists.
    fn anomaly(&mut self, input: Input) -> Command {
        let command = self.step(input);
        if command != Command::Follow {
            self.reason = Some(RelistReason::Anomaly);
        }
        command
    }

    /// Advances to a version that came without a change. Ignores a version that is not newer.
    fn reach(&mut self, version: Option<ResourceVersion>, stream: &mut OpenStream) -> Command {
        self.flush(stream);
        let known = self.machine.position();
        // A bookmark older than the position does not prove that the server has reached the position.
        stream.version_confirmed |=
            !version.as_ref().zip(known).is_some_and(|(version, known)| version.is_older_than(known));
        let is_newer = |version: &ResourceVersion| {
            known.is_none_or(|known| version != known && !version.is_older_than(known))
        };
        let Some(version) = version.filter(is_newer) else {
            if !self.health.is_failing() {
                self.recovered(self.machine.position().cloned());
            }
            return Command::Follow;
        };
        if let Some(position) = self.claim(version.clone()) {
            self.queue.bookmark(position);
        }
        self.progressed(Some(version), stream)
    }

    /// The version that the store may report; `None` if the store lacks an earlier change or may show another history.
    fn claim(&self, version: ResourceVersion) -> Option<Position> {
        let may_report = !self.machine.hides_a_change() && self.machine.compare() == Compare::Version;
        may_report.then_some(Position { partition: self.partition, version })
    }

    fn progressed(&mut self, position: Option<ResourceVersion>, stream: &mut OpenStream) -> Command {
        (stream.delivered, stream.version_confirmed) = (Delivered::Events, true);
        let command = self.step(Input::Progress(position));
        self.recovered(self.machine.position().cloned());
        command
    }

    /// Transforms and packs the object of a change.
    fn prepare(&self, change: Change) -> Change {
        let prepare = |object| self.pack(self.transform.apply(object, &self.telemetry));
        match change {
            Change::Added(object) => Change::Added(prepare(object)),
            Change::Modified(object) => Change::Modified(prepare(object)),
            Change::Deleted(object) => Change::Deleted(prepare(object)),
        }
    }

    fn watch_failed(&mut self, failure: Failure, error: ListWatchError, lasted: Duration) -> Command {
        self.note_watch_failure(failure.class, &error);
        self.telemetry.failed(&InformerError::Watch(error));
        self.step(Input::WatchFailed { failure, lasted })
    }
}
