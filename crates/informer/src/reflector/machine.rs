//! The state machine of a reflector, without I/O.

mod failure;
mod freshness;
mod phase;
mod repairs;
mod resume;

pub(crate) use failure::{Class, Failure};
pub(super) use freshness::starts_at_version;
pub(crate) use repairs::Anomaly;
pub(crate) use resume::{RestoredState, Witness};

use super::{backoff::Backoff, settings::Settings};
use crate::delta_fifo::Compare;
use freshness::{Freshness, next_page};
use kube_informer_wire::{ListOptions, ObjectKey, ResourceVersion, Uid, WatchOptions};
use phase::{AfterCommit, AfterWait, Listing, LowerBound, Page, Paging, Phase, Streaming};
use repairs::Repairs;
use resume::Resume;
use std::time::Duration;
use tokio::time::Instant;

/// Page size unless configured.
const PAGE: u32 = 500;
/// A watch that ends sooner than this, without an event, counts as a failure.
pub(super) const SHORT_WATCH: Duration = Duration::from_secs(1);
/// A watch that lasted this long counts as a success even without an event.
const HEALTHY_WATCH: Duration = Duration::from_secs(10);
/// Failures of the watch in a row after which the collection is listed again.
const WATCH_TRIES: u32 = 3;
/// Streaming lists that broke off in a row after which a paged list is tried.
const STREAM_TRIES: u32 = 3;

/// A command to the reflector.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// Discard everything staged, open a streaming list, and stage its events until it is complete.
    StreamList(WatchOptions),
    /// Discard everything staged, and stage the first page of a list.
    List(ListOptions),
    /// Stage a later page of the list.
    ListPage(ListOptions),
    /// Queue what is staged as the collection at this version.
    Commit(ResourceVersion),
    /// Open a watch.
    Watch(WatchOptions),
    /// Read the open stream.
    Follow,
    /// Request the version of the server, and keep the stream open.
    Probe(ListOptions),
    /// Request the object that shows whether the server has the history of a restored state.
    Verify(ObjectKey),
    /// Close everything and wait.
    Wait(Duration),
}

/// An event that the machine reacts to.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    Start,
    /// The cache shows a state that an earlier process saved.
    Restored(RestoredState),
    /// The uid and version of the requested object, if it exists.
    Verified {
        found: Option<(Uid, ResourceVersion)>,
        now: Instant,
    },
    /// The watch delivered the delete that [`Machine::awaits_delete`] asks for.
    WitnessDeleted,
    /// The time that [`Machine::proof_due`] returned is reached.
    ProofDue,
    /// A request failed, or a list broke off.
    Failed(Failure),
    /// A page is staged.
    Page {
        version: Option<ResourceVersion>,
        continue_token: Option<String>,
    },
    /// The streaming list is complete.
    StreamListed(ResourceVersion),
    /// The streaming list missed a deadline.
    StreamStalled,
    Committed,
    WatchOpened,
    /// The watch delivered an event or a bookmark, and reached this version if it has one.
    Progress(Option<ResourceVersion>),
    /// The watch delivered an event that cannot be decoded, with its version if that much is readable.
    Malformed {
        at: Option<ResourceVersion>,
        now: Instant,
    },
    /// The watch delivered a state that is not known and older than the version it had reached.
    Rewound {
        now: Instant,
    },
    /// The content of cached objects cannot be read from its file.
    ContentLost {
        now: Instant,
    },
    /// The time that [`Machine::repair_due`] returned is reached.
    RepairDue {
        now: Instant,
    },
    /// The watch did not show that the server has reached the version at which it was opened.
    Quiet,
    /// The version of the server.
    Probed(Option<ResourceVersion>),
    /// The open watch failed after this time.
    WatchFailed {
        failure: Failure,
        lasted: Duration,
    },
    /// The server closed the watch after this time.
    WatchEnded {
        lasted: Duration,
        delivered: Delivered,
    },
    Waited,
}

/// Whether a stream delivered anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivered {
    Nothing,
    Events,
}

/// Decides what a reflector does next. Only [`step`](Self::step) changes it.
///
/// Its lists ask for the same versions as client-go's: for the most recent state first (a paged list: any state that the
/// cache of the server has), then for nothing older than the known version, unless the server cannot serve that.
#[derive(Debug)]
pub(crate) struct Machine {
    settings: Settings,
    phase: Phase,
    /// Every change up to this version is known.
    position: Option<ResourceVersion>,
    lower_bound: LowerBound,
    paging: Paging,
    streaming: Streaming,
    /// Streaming lists that broke off since the last committed list.
    broken_streams: u32,
    /// Failures of the watch since it last delivered something.
    watch_failures: u32,
    backoff: Backoff,
    compare: Compare,
    repairs: Repairs,
    /// The proof that a restored state is that of the server. Exists until it is complete or a list is committed. Invariant:
    /// while it exists, `compare` is [`Compare::Content`].
    resume: Option<Resume>,
    rng: fastrand::Rng,
}

impl Machine {
    pub(crate) fn new(settings: Settings, rng: fastrand::Rng) -> Self {
        Self {
            phase: Phase::Idle,
            position: None,
            lower_bound: LowerBound::Position,
            paging: Paging::FirstList,
            streaming: if settings.streaming { Streaming::Enabled } else { Streaming::Disabled },
            broken_streams: 0,
            watch_failures: 0,
            backoff: settings.backoff.clone(),
            compare: Compare::Version,
            repairs: Repairs::default(),
            resume: None,
            settings,
            rng,
        }
    }

    /// The version up to which every change is known.
    pub(crate) fn position(&self) -> Option<&ResourceVersion> {
        self.position.as_ref()
    }

    /// How listed objects are compared with the known ones.
    pub(crate) fn compare(&self) -> Compare {
        self.compare
    }

    /// When a relist is due that repairs an anomaly of the watch.
    pub(crate) fn repair_due(&self) -> Option<Instant> {
        self.repairs.due()
    }

    /// Whether the watch has delivered a change that only a relist will show.
    pub(crate) fn hides_a_change(&self) -> bool {
        self.repairs.hides_a_change()
    }

    /// Takes in what happened and returns what to do next.
    pub(crate) fn step(&mut self, input: Input) -> Command {
        use Input::*;
        if let Failed(failure) | WatchFailed { failure, .. } = &input
            && failure.class == Class::TooLarge
        {
            self.compare = Compare::Content;
        }
        match (std::mem::replace(&mut self.phase, Phase::Idle), input) {
            (Phase::Waiting(AfterWait::Watch), Waited) => self.watch(),
            (Phase::Waiting(AfterWait::List), Waited) => self.list(),
            (Phase::Streaming, StreamListed(version)) => self.listed(version, AfterCommit::Follow),
            (Phase::Streaming, StreamStalled) => self.without_streaming(),
            (Phase::Streaming, Failed(failure)) => self.streaming_failed(&failure),
            (Phase::Listing(listing), Page { version, continue_token }) => {
                self.page_listed(listing, version, continue_token)
            }
            (Phase::Listing(listing), Failed(failure)) => self.list_failed(listing, &failure),
            (Phase::Committing { version, then }, Committed) => self.committed(version, then),
            (Phase::Watching, Failed(failure)) => self.watch_failed(&failure, Duration::ZERO),
            (Phase::Watching, WatchFailed { failure, lasted }) => self.watch_failed(&failure, lasted),
            (Phase::Watching, WatchEnded { lasted, delivered }) => self.watch_ended(lasted, delivered),
            (_, Restored(state)) => self.restored(state),
            (Phase::Verifying, Verified { found, now }) => self.verified(found, now),
            (Phase::Verifying, Failed(failure)) => self.verify_failed(&failure),
            (Phase::Waiting(AfterWait::Verify), Waited) => self.verify(),
            (Phase::Watching, WitnessDeleted) => self.witness_deleted(),
            (Phase::Watching, ProofDue) if self.resume.is_some() => self.relist(),
            (Phase::Watching, WatchOpened) => self.watch_opened(),
            (Phase::Watching, Progress(position)) => self.progress(position),
            (Phase::Watching, Malformed { at, now }) => self.anomaly(Anomaly::Malformed, at, now),
            (Phase::Watching, Rewound { now }) => self.anomaly(Anomaly::Rewound, None, now),
            (Phase::Watching, ContentLost { now }) if self.repairs.request_list(now) => self.repair(),
            (Phase::Watching, RepairDue { now }) if self.repairs.take_due(now) => self.repair(),
            (Phase::Watching, Quiet) if self.resume.is_none() => self.probe(),
            (Phase::Watching, Quiet | ProofDue | ContentLost { .. } | RepairDue { .. }) => self.follow(),
            (Phase::Probing, Probed(version)) if self.resume.is_some() => self.version_found(version),
            (Phase::Probing, Probed(version)) => self.probed(version),
            (Phase::Probing, Failed(failure)) => self.probe_failed(&failure),
            (_, Failed(failure)) => self.wait(failure.retry_after, AfterWait::Relist),
            // Start, and any input that does not belong to the phase: listing is always right.
            _ => self.relist(),
        }
    }

    fn relist(&mut self) -> Command {
        match self.streaming {
            Streaming::Enabled => self.stream_list(),
            Streaming::Disabled => self.list(),
        }
    }

    fn stream_list(&mut self) -> Command {
        self.phase = Phase::Streaming;
        let freshness = self.not_older().unwrap_or(Freshness::MostRecent);
        Command::StreamList(freshness.streaming_list(self.watch_options()))
    }

    /// A state that is not older than the known one, if there is one and the server can serve it.
    fn not_older(&self) -> Option<Freshness> {
        match self.lower_bound {
            LowerBound::Position => self.position.clone().map(Freshness::NotOlderThan),
            LowerBound::Unavailable => None,
        }
    }

    fn list(&mut self) -> Command {
        let freshness = self.not_older().unwrap_or(match self.lower_bound {
            LowerBound::Position => Freshness::Any,
            LowerBound::Unavailable => Freshness::MostRecent,
        });
        let is_paged = self.paging == Paging::EveryList || self.position.is_none();
        let limit = self.settings.page_size.or(is_paged.then_some(PAGE));
        self.list_from(freshness, limit)
    }

    fn list_from(&mut self, freshness: Freshness, limit: Option<u32>) -> Command {
        let options = freshness.list(limit);
        self.phase = Phase::Listing(Listing { freshness, limit, page: Page::First, version: None });
        Command::List(options)
    }

    fn page_listed(
        &mut self,
        listing: Listing,
        of_page: Option<ResourceVersion>,
        continue_token: Option<String>,
    ) -> Command {
        let version = if listing.page == Page::First { of_page } else { listing.version };
        let Some(token) = continue_token.filter(|token| !token.is_empty()) else {
            if listing.page == Page::Later && listing.freshness == Freshness::Any {
                self.paging = Paging::EveryList;
            }
            return self.listed(version.unwrap_or_else(ResourceVersion::unset), AfterCommit::Watch);
        };
        self.phase = Phase::Listing(Listing { page: Page::Later, version, ..listing });
        Command::ListPage(next_page(token, listing.limit))
    }

    fn listed(&mut self, version: ResourceVersion, then: AfterCommit) -> Command {
        let went_back = self.position.as_ref().is_some_and(|position| version.is_older_than(position));
        if went_back {
            self.repairs.forget_places();
            if self.compare == Compare::Version {
                // Objects of this list were discarded as known because of their versions, which another history
                // repeats: the list is taken once more.
                self.suspect_history();
                return self.relist();
            }
        }
        self.phase = Phase::Committing { version: version.clone(), then };
        Command::Commit(version)
    }

    fn committed(&mut self, version: ResourceVersion, then: AfterCommit) -> Command {
        self.position = (!version.is_unset()).then_some(version);
        self.lower_bound = LowerBound::Position;
        self.compare = Compare::Version;
        self.broken_streams = 0;
        self.resume = None;
        self.repairs.committed();
        match then {
            AfterCommit::Follow => self.follow(),
            AfterCommit::Watch => self.watch(),
        }
    }

    fn watch(&mut self) -> Command {
        self.phase = Phase::Watching;
        let resource_version = self.position.as_ref().map(ToString::to_string);
        let options = match &self.resume {
            Some(_) => self.short_watch_options(),
            None => self.watch_options(),
        };
        Command::Watch(options.resource_version(resource_version))
    }

    fn watch_options(&mut self) -> WatchOptions {
        let min = self.settings.min_watch.as_secs();
        let timeout = Duration::from_secs(self.rng.u64(min..=min.saturating_mul(2)));
        WatchOptions::new().allow_bookmarks(true).timeout(timeout)
    }

    fn follow(&mut self) -> Command {
        self.phase = Phase::Watching;
        Command::Follow
    }

    fn wait(&mut self, retry_after: Option<Duration>, then: AfterWait) -> Command {
        self.phase = Phase::Waiting(then);
        Command::Wait(self.backoff.next(retry_after, &mut self.rng))
    }

    /// The server may have another history than the known one: it is behind `position`, or was. Until a list is
    /// committed the same version does not prove the same content, even if the server has passed `position` by then.
    fn suspect_history(&mut self) {
        self.compare = Compare::Content;
        self.lower_bound = LowerBound::Unavailable;
    }
}

/// Failures of lists.
impl Machine {
    fn without_streaming(&mut self) -> Command {
        self.streaming = Streaming::Disabled;
        self.list()
    }

    fn streaming_failed(&mut self, failure: &Failure) -> Command {
        match failure.class {
            Class::Busy => self.wait(failure.retry_after, AfterWait::Relist),
            Class::Transport => {
                // A proxy may break off streams, but not lists.
                self.broken_streams = self.broken_streams.saturating_add(1);
                let list = self.broken_streams.is_multiple_of(STREAM_TRIES);
                self.wait(failure.retry_after, if list { AfterWait::List } else { AfterWait::Relist })
            }
            Class::Expired | Class::TooLarge if self.lower_bound == LowerBound::Position => {
                self.lower_bound = LowerBound::Unavailable;
                self.relist()
            }
            Class::Invalid => self.without_streaming(),
            _ => self.list(),
        }
    }

    fn list_failed(&mut self, listing: Listing, failure: &Failure) -> Command {
        match failure.class {
            // The later pages have expired: the list is requested in one piece.
            Class::Expired if listing.page == Page::Later && listing.limit.is_some() => {
                self.list_from(listing.freshness, None)
            }
            Class::Expired | Class::TooLarge if self.lower_bound == LowerBound::Position => {
                self.lower_bound = LowerBound::Unavailable;
                self.list_from(Freshness::MostRecent, listing.limit)
            }
            _ => self.wait(failure.retry_after, AfterWait::Relist),
        }
    }
}

/// The watch.
impl Machine {
    fn progress(&mut self, position: Option<ResourceVersion>) -> Command {
        self.watch_succeeded();
        if let Some(position) = position {
            self.position = Some(position);
        }
        self.check_proof().unwrap_or_else(|| self.follow())
    }

    fn watch_succeeded(&mut self) {
        self.backoff.rewind();
        self.watch_failures = 0;
    }

    fn watch_failed(&mut self, failure: &Failure, lasted: Duration) -> Command {
        if lasted >= HEALTHY_WATCH {
            self.watch_succeeded();
        }
        self.watch_failures = self.watch_failures.saturating_add(1);
        if failure.class == Class::Expired {
            // The server works: failures before, such as those of a network partition, do not delay the list.
            self.backoff.rewind_once();
        }
        let then = match failure.class {
            _ if self.position.is_none() => AfterWait::Relist,
            // A broken connection does not make the known state invalid, however long it lasts. Many clients that all
            // relist would overload the server that comes back.
            Class::Busy | Class::Transport => AfterWait::Watch,
            Class::Server if !self.watch_failures.is_multiple_of(WATCH_TRIES) => AfterWait::Watch,
            Class::TooLarge => {
                self.lower_bound = LowerBound::Unavailable;
                AfterWait::Relist
            }
            _ => AfterWait::Relist,
        };
        self.wait(failure.retry_after, then)
    }

    fn watch_ended(&mut self, lasted: Duration, delivered: Delivered) -> Command {
        if lasted >= HEALTHY_WATCH {
            self.watch_succeeded();
        }
        if self.position.is_none() {
            // Without a version no watch can resume, and an object that was deleted in between would stay.
            return self.wait(None, AfterWait::Relist);
        }
        if delivered == Delivered::Events || lasted >= SHORT_WATCH {
            return self.watch();
        }
        self.watch_failures = self.watch_failures.saturating_add(1);
        let relist = self.watch_failures.is_multiple_of(WATCH_TRIES);
        self.wait(None, if relist { AfterWait::Relist } else { AfterWait::Watch })
    }

    /// Lists again, at once or later, unless that has been done at this place.
    fn anomaly(&mut self, anomaly: Anomaly, at: Option<ResourceVersion>, now: Instant) -> Command {
        if !self.repairs.is_new(anomaly, at, self.position.as_ref()) {
            return self.follow();
        }
        if anomaly == Anomaly::Rewound {
            if self.resume.is_some() {
                return self.relist();
            }
            self.suspect_history();
        }
        if self.repairs.request(anomaly, now) { self.repair() } else { self.follow() }
    }

    fn repair(&mut self) -> Command {
        self.lower_bound = LowerBound::Unavailable;
        self.wait(None, AfterWait::Relist)
    }

    /// A watch from a version that the server has not reached is accepted, and silent until the server gets there. After
    /// a restore from a backup that would hide every change until then.
    fn probe(&mut self) -> Command {
        let Some(position) = self.position.clone() else { return self.follow() };
        self.phase = Phase::Probing;
        Command::Probe(Freshness::NotOlderThan(position).list(Some(1)))
    }

    fn probed(&mut self, version: Option<ResourceVersion>) -> Command {
        let is_behind =
            self.position.as_ref().zip(version).is_some_and(|(position, now)| now.is_older_than(position));
        if is_behind {
            self.suspect_history();
            return self.relist();
        }
        self.follow()
    }

    fn probe_failed(&mut self, failure: &Failure) -> Command {
        match failure.class {
            Class::TooLarge | Class::Expired => {
                self.lower_bound = LowerBound::Unavailable;
                self.relist()
            }
            // The failure says nothing about the watch, which reports its own.
            _ => self.follow(),
        }
    }
}

#[cfg(test)]
mod tests;
