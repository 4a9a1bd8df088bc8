//! Reading an open watch.

use super::{
    OpenStream, Reflector, SETTLED, machine::Doubt, machine::Failure, machine::Input, machine::SHORT_WATCH,
};
use crate::{
    delta_fifo::{Change, Offered, Position},
    fail_point::FailPoint,
    telemetry::{InformerError, RelistReason},
    time,
};
use futures_util::StreamExt;
use kube_informer_wire::{Bookmark, ListWatchError, ResourceVersion, Unreadable, WatchEvent};
use std::time::Duration;
use tokio::time::Instant;

/// Lists on account of doubts are at least this far apart: a server that sends nonsense all the time must not
/// cost a list each time.
const BETWEEN_REPAIRS: Duration = Duration::from_secs(60);

/// When a list is to settle what the stream left open.
#[derive(Default)]
pub(super) struct Doubts {
    last_repair: Option<Instant>,
    due: Option<Instant>,
    /// Something was passed over that a list has still to show. Until then the store must not claim to show
    /// any later version: whoever awaits one would be told that it is there.
    hidden: bool,
}

impl Doubts {
    /// Something is open. Returns whether to list now; otherwise it will be due later.
    fn raise(&mut self) -> bool {
        let now = Instant::now();
        self.due = self.last_repair.map_or(Some(now), |last| time::after(last, BETWEEN_REPAIRS));
        self.take_due()
    }

    fn take_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due {
            (self.due, self.last_repair) = (None, Some(now));
        }
        is_due
    }

    /// A list has settled everything.
    pub(super) fn settled(&mut self) {
        (self.due, self.hidden) = (None, false);
    }
}

impl Reflector {
    /// Reads the open watch until it ends, breaks, or shows something that only a list can settle.
    pub(super) async fn follow(&mut self) -> Input {
        let Some(mut stream) = self.stream.take() else { return Input::Begin };
        let input = self.read(&mut stream).await;
        // What ends streams early, such as a proxy that thinks a minute of silence is enough, must not keep the
        // silence from being looked into.
        let quiet = self.quiet.saturating_add(stream.opened.elapsed());
        self.quiet = if stream.proven { Duration::ZERO } else { quiet };
        if matches!(input, Input::Quiet) {
            self.stream = Some(stream);
        }
        input
    }

    async fn read(&mut self, stream: &mut OpenStream) -> Input {
        loop {
            self.queue.room().await;
            if self.doubts.take_due() {
                return self.doubtful();
            }
            let event = time::timeout_at(self.next_timer(stream), stream.events.next()).await;
            let lived = stream.opened.elapsed();
            match event {
                Err(_) if self.health.is_failing() && lived >= SETTLED => {
                    self.recovered(self.machine.position().cloned());
                }
                Err(_) if lived >= stream.dead_after => {
                    self.machine.lasted(lived);
                    return self.watch_failed(self.silent("end of the watch", stream.dead_after));
                }
                Err(_)
                    if !stream.proven && self.quiet.saturating_add(lived) >= self.deadlines.probe_after =>
                {
                    stream.proven = true;
                    return Input::Quiet;
                }
                Err(_) => {}
                Ok(None) => return self.ended(stream),
                Ok(Some(Err(error))) => {
                    self.machine.lasted(lived);
                    return self.watch_failed(error);
                }
                Ok(Some(Ok(event))) => {
                    self.telemetry.event(&event);
                    self.fail_points.at(FailPoint::ReflectorEvent);
                    if let Some(end) = self.take(event, stream) {
                        return end;
                    }
                }
            }
        }
    }

    /// The deadline of the next timer, in case no event comes before.
    fn next_timer(&self, stream: &OpenStream) -> Option<Instant> {
        let after = |silence| time::after(stream.opened, silence);
        let probe = || after(self.deadlines.probe_after.saturating_sub(self.quiet));
        let probe = (!stream.proven).then(probe).flatten();
        let settled = self.health.is_failing().then(|| after(SETTLED)).flatten();
        [after(stream.dead_after), probe, settled, self.doubts.due].into_iter().flatten().min()
    }

    fn ended(&mut self, stream: &OpenStream) -> Input {
        let lived = stream.opened.elapsed();
        if !stream.progress && lived < SHORT_WATCH {
            let url = self.telemetry.kind().to_string().into();
            let error =
                ListWatchError::Broken { message: "the watch ended at once, without an event".into(), url };
            self.note_failure(Failure::of(&error).class, &error, true);
            self.telemetry.failed(&InformerError::Watch(error));
        }
        Input::Ended { lived, progress: stream.progress }
    }

    fn doubtful(&mut self) -> Input {
        self.reason = Some(RelistReason::Doubtful);
        Input::Doubtful
    }

    /// Takes in one event; returns what ends the stream, if it does.
    fn take(&mut self, event: WatchEvent, stream: &mut OpenStream) -> Option<Input> {
        let change = match event {
            WatchEvent::Bookmark(bookmark) => {
                self.take_bookmark(bookmark, stream);
                return None;
            }
            WatchEvent::Error(status) => {
                self.machine.lasted(stream.opened.elapsed());
                let failure = Failure::in_stream(&status);
                return Some(self.watch_broke(failure, ListWatchError::api(status, "in the stream")));
            }
            WatchEvent::Unreadable(unreadable) => return self.take_unreadable(unreadable, stream),
            WatchEvent::Added(object) => Change::Added(object),
            WatchEvent::Modified(object) => Change::Modified(object),
            WatchEvent::Deleted(object) => Change::Deleted(object),
        };
        stream.positioned |= !matches!(change, Change::Added(_));
        self.take_change(change, stream)
    }

    fn take_change(&mut self, change: Change, stream: &mut OpenStream) -> Option<Input> {
        let version = change.object().resource_version().clone();
        let rewound = stream.positioned
            && self.machine.position().is_some_and(|position| match change {
                // Some servers give a deletion the version of the last change.
                Change::Deleted(_) => version.is_older_than(position),
                _ => version.is_older_than(position) || version.number().is_some() && version == *position,
            });
        if rewound {
            return self.take_rewound(&change);
        }
        let position = (stream.positioned && !version.is_unset()).then_some(version);
        if !self.is_ours(change.object().key()) {
            self.telemetry.quarantined(Unreadable::new("it is in another namespace than the one asked for"));
            self.pass(position, stream);
            return None;
        }
        let change = self.admit(change);
        let place = position.clone().and_then(|version| self.shown(version));
        if self.queue.offer(change, place, &*self.indexer) != Offered::Queued {
            self.telemetry.duplicate();
        }
        self.progressed(position, stream);
        None
    }

    /// An event that is older than what the stream has already shown: a repetition, or another history.
    fn take_rewound(&mut self, change: &Change) -> Option<Input> {
        // The state that is known is a repetition for certain. An older one may be; but it is also how a server
        // looks whose history was replaced.
        let repeated = self.queue.judge(change, &*self.indexer) == Offered::Known;
        if !repeated && self.machine.doubt(Doubt::Rewound, None) && self.doubts.raise() {
            return Some(self.doubtful());
        }
        self.telemetry.duplicate();
        None
    }

    fn take_bookmark(&mut self, bookmark: Bookmark, stream: &mut OpenStream) {
        stream.positioned = true;
        self.pass(Some(bookmark.resource_version), stream);
    }

    fn take_unreadable(&mut self, unreadable: Unreadable, stream: &mut OpenStream) -> Option<Input> {
        let at = unreadable.resource_version.clone();
        if self.machine.doubt(Doubt::Unreadable, at.clone()) && self.doubts.raise() {
            self.telemetry.failed(&InformerError::Unreadable(unreadable));
            return Some(self.doubtful());
        }
        self.telemetry.quarantined(unreadable);
        self.doubts.hidden = self.doubts.due.is_some();
        self.pass(at.filter(|_| stream.positioned), stream);
        None
    }

    /// The stream comes past a version without a change. A version that is not after the position gains
    /// nothing: a position never goes back by itself.
    fn pass(&mut self, version: Option<ResourceVersion>, stream: &mut OpenStream) {
        let known = self.machine.position();
        // A server that says it is not there yet has not shown that it is.
        stream.proven |=
            !version.as_ref().zip(known).is_some_and(|(version, known)| version.is_older_than(known));
        let gains = |version: &ResourceVersion| {
            known.is_none_or(|known| version != known && !version.is_older_than(known))
        };
        let Some(version) = version.filter(gains) else {
            if !self.health.is_failing() {
                self.recovered(self.machine.position().cloned());
            }
            return;
        };
        if let Some(position) = self.shown(version.clone()) {
            self.queue.bookmark(position);
        }
        self.progressed(Some(version), stream);
    }

    /// The position that the store shows with a version, unless something before it is hidden.
    fn shown(&self, version: ResourceVersion) -> Option<Position> {
        (!self.doubts.hidden).then_some(Position { partition: self.partition, version })
    }

    fn progressed(&mut self, position: Option<ResourceVersion>, stream: &mut OpenStream) {
        stream.progress = true;
        stream.proven = true;
        self.machine.progress(position);
        self.recovered(self.machine.position().cloned());
    }

    /// Every object passes here once on its way in.
    fn admit(&self, change: Change) -> Change {
        let keep = |object| self.pack(self.transform.apply(object, &self.telemetry));
        match change {
            Change::Added(object) => Change::Added(keep(object)),
            Change::Modified(object) => Change::Modified(keep(object)),
            Change::Deleted(object) => Change::Deleted(keep(object)),
        }
    }
}
