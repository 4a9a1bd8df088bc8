//! What a reflector does next: a state machine without any I/O.

use super::backoff::Backoff;
use crate::delta_fifo::Compare;
use kube_informer_wire::{ListOptions, ListWatchError, ResourceVersion, Status, VersionMatch, WatchOptions};
use std::time::Duration;

/// Page size where nobody asked for another one.
const PAGE: u32 = 500;
/// A watch that ends sooner than this, without an event, does not count as one.
pub(super) const SHORT_WATCH: Duration = Duration::from_secs(1);
/// A watch that lived this long is a success even if nothing happened.
const HEALTHY_WATCH: Duration = Duration::from_secs(10);
/// Failures of the watch in a row before the collection is listed again.
const WATCH_TRIES: u32 = 3;
/// Streaming lists that may end early, in a row, before a list is tried instead.
const STREAM_TRIES: u32 = 3;

/// How a reflector is set up.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Page size; `None` leaves it to the rules of client-go.
    pub(crate) page_size: Option<u32>,
    /// Whether to try a streaming list.
    pub(crate) streaming: bool,
    /// Watches are asked to last between this and twice this.
    pub(crate) min_watch: Duration,
    /// How long watches may say nothing before the server is asked how far it is.
    pub(crate) probe_after: Duration,
    pub(crate) backoff: Backoff,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            page_size: None,
            streaming: true,
            min_watch: Duration::from_secs(300),
            // Servers send bookmarks every minute; where one has nothing to say, that may be because it is behind.
            probe_after: Duration::from_secs(90),
            backoff: Backoff::default(),
        }
    }
}

/// What the driver is to do next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// Open a streaming list, dropping whatever was staged, and stage until it says it is complete.
    Stream(WatchOptions),
    /// Fetch a page and stage it. `fresh` drops what was staged before.
    List { options: ListOptions, fresh: bool },
    /// What is staged is the collection at this version.
    Commit(ResourceVersion),
    /// Open a watch and follow it.
    Watch(WatchOptions),
    /// Go on with the stream that is open.
    Follow,
    /// Ask whether the server has come as far as the open watch presumes, and nothing else.
    Probe(ListOptions),
    /// Close everything and wait.
    Wait(Duration),
}

/// What happened.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    Begin,
    /// A request was refused or broke off.
    Failed(Failure),
    /// A page is staged.
    Page {
        version: Option<ResourceVersion>,
        continue_token: Option<String>,
    },
    /// The streaming list is complete.
    StreamComplete(ResourceVersion),
    /// The streaming list does not get anywhere.
    StreamStalled,
    Committed,
    /// The server closed the stream.
    Ended {
        lived: Duration,
        progress: bool,
    },
    /// The stream shows something that only a list can settle.
    Doubtful,
    /// Nothing has come for long since the watch was opened: perhaps the server is not where we think it is.
    Quiet,
    /// How far the server is.
    Probed(Option<ResourceVersion>),
    Waited,
}

/// A failure, as far as the next step depends on it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) class: Class,
    pub(crate) retry_after: Option<Duration>,
}

/// Kinds of failure that are treated differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// The version or page is no longer kept.
    Expired,
    /// The version lies in the server's future.
    TooLarge,
    /// Nobody listens, or the server asks to slow down: it is not about us.
    Busy,
    /// The connection, not the server, failed.
    Transport,
    /// 401, 403.
    Denied,
    /// 404.
    Absent,
    /// The server does not know what is asked of it.
    Invalid,
    /// Anything else the server says.
    Server,
    /// The server said it in the middle of a stream.
    InStream,
    /// What came is not what the protocol asks for.
    Protocol,
    /// The reflector, or the source it reads from, panicked.
    Panicked,
}

impl Failure {
    pub(crate) fn of(error: &ListWatchError) -> Self {
        let class = match error {
            ListWatchError::Api { status, .. } => Class::of_status(status, Class::Server),
            ListWatchError::Connect { refused: true, .. } => Class::Busy,
            ListWatchError::Connect { .. }
            | ListWatchError::Broken { .. }
            | ListWatchError::Silent { .. } => Class::Transport,
            // NotJson, Malformed, and variants of later versions.
            _ => Class::Protocol,
        };
        Self { class, retry_after: error.retry_after() }
    }

    /// A failure that came as an ERROR event.
    pub(crate) fn in_stream(status: &Status) -> Self {
        Self { class: Class::of_status(status, Class::InStream), retry_after: status.retry_after() }
    }
}

impl Class {
    fn of_status(status: &Status, otherwise: Class) -> Self {
        match status.code {
            _ if status.is_expired() => Self::Expired,
            _ if status.is_version_too_large() => Self::TooLarge,
            429 => Self::Busy,
            401 | 403 => Self::Denied,
            404 => Self::Absent,
            400 | 405 | 406 | 415 | 422 => Self::Invalid,
            _ => otherwise,
        }
    }
}

/// Decides what a reflector does next: [`step`](Self::step) is all there is.
///
/// The versions it asks for are client-go's: the newest state first (or, by page, whatever a cache has), then
/// never anything older than what it has seen, unless the server cannot serve that.
#[derive(Debug)]
pub(crate) struct Machine {
    settings: Settings,
    phase: Phase,
    /// How far the collection has been seen: everything up to here.
    position: Option<ResourceVersion>,
    /// The server cannot serve `position`: ask for the newest state.
    unavailable: bool,
    /// A list from a cache came in pages, a sign of a server without cache: always page.
    paginated: bool,
    /// Whether streaming lists work here; once refused, never tried again.
    streaming: bool,
    early_ends: u32,
    watch_failures: u32,
    backoff: Backoff,
    compare: Compare,
    /// The positions that doubts arose at last: each is settled once, not for ever.
    settled: Settled,
    rng: fastrand::Rng,
}

/// What a stream leaves open. A list that settled one of these at a position says nothing about another: what cannot
/// be read may have come since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// Older than what was shown before.
    Rewound,
    Unreadable,
}

/// Where doubts arose last.
#[derive(Debug, Default)]
struct Settled {
    rewound: Option<Place>,
    unreadable: Option<Place>,
}

/// Where in a stream something stands. What comes after a version is not what has that version.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    At(ResourceVersion),
    /// It says no version of its own; the last one before it, if there was one.
    After(Option<ResourceVersion>),
}

#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Idle,
    Streaming,
    Listing {
        /// The first request, which a list that expired half-way falls back to.
        first: ListOptions,
        pages: u32,
        full: bool,
        /// The version of the first page: later pages may show later states, never earlier ones.
        version: Option<ResourceVersion>,
    },
    /// Committing, then following the stream (true) or opening a watch (false).
    Committing {
        version: ResourceVersion,
        stream: bool,
    },
    Watching,
    Probing,
    Waiting(Then),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Fill,
    /// Fill by list, because the streaming list failed.
    List,
    Watch,
}

impl Machine {
    pub(crate) fn new(settings: Settings, rng: fastrand::Rng) -> Self {
        Self {
            phase: Phase::Idle,
            position: None,
            unavailable: false,
            paginated: false,
            streaming: settings.streaming,
            early_ends: 0,
            watch_failures: 0,
            backoff: settings.backoff.clone(),
            compare: Compare::Version,
            settled: Settled::default(),
            settings,
            rng,
        }
    }

    /// How far the collection has been seen.
    pub(crate) fn position(&self) -> Option<&ResourceVersion> {
        self.position.as_ref()
    }

    /// How listed objects are to be compared with what is known.
    pub(crate) fn compare(&self) -> Compare {
        self.compare
    }

    /// The stream delivered something; `position` is how far it has come with that, if it says so.
    pub(crate) fn progress(&mut self, position: Option<ResourceVersion>) {
        self.backoff.rewind();
        self.watch_failures = 0;
        if let Some(position) = position {
            self.position = Some(position);
        }
    }

    /// A watch has ended, well or not, that lived for so long.
    pub(crate) fn lasted(&mut self, lived: Duration) {
        if lived >= HEALTHY_WATCH {
            self.progress(None);
        }
    }

    /// Something in the stream cannot be trusted or read. True: list again and see. False: that has been done
    /// at this position, go on without it.
    pub(crate) fn doubt(&mut self, about: Doubt, at: Option<ResourceVersion>) -> bool {
        let place = at.map_or_else(|| Place::After(self.position.clone()), Place::At);
        let settled = match about {
            Doubt::Rewound => &mut self.settled.rewound,
            Doubt::Unreadable => &mut self.settled.unreadable,
        };
        settled.replace(place.clone()) != Some(place)
    }

    /// What to do next.
    pub(crate) fn step(&mut self, input: Input) -> Command {
        match (std::mem::replace(&mut self.phase, Phase::Idle), input) {
            (Phase::Waiting(Then::Watch), Input::Waited) => self.watch(),
            (Phase::Waiting(Then::List), Input::Waited) => self.list(),
            (Phase::Streaming, Input::StreamComplete(version)) => self.complete(version, true),
            (Phase::Streaming, Input::StreamStalled) => {
                self.streaming = false;
                self.list()
            }
            (Phase::Streaming, Input::Failed(failure)) => self.streaming_failed(&failure),
            (Phase::Streaming, Input::Ended { .. }) => self.streamed_in_vain(None),
            (
                Phase::Listing { first, pages, full, version },
                Input::Page { version: of_page, continue_token },
            ) => {
                let version = if pages == 0 { of_page } else { version };
                self.page_done(first, pages, full, version, continue_token)
            }
            (Phase::Listing { first, pages, full, .. }, Input::Failed(failure)) => {
                self.list_failed(first, pages, full, &failure)
            }
            (Phase::Committing { version, stream }, Input::Committed) => self.committed(version, stream),
            (Phase::Watching, Input::Failed(failure)) => self.watch_failed(&failure),
            (Phase::Watching, Input::Ended { lived, progress }) => self.watch_ended(lived, progress),
            (Phase::Watching, Input::Doubtful) => {
                self.unavailable = true;
                self.wait(None, Then::Fill)
            }
            (Phase::Watching, Input::Quiet) => self.probe(),
            (Phase::Probing, Input::Probed(version)) => self.probed(version),
            (Phase::Probing, Input::Failed(failure)) => self.probe_failed(&failure),
            (_, Input::Failed(failure)) => self.wait(failure.retry_after, Then::Fill),
            // Begin, and whatever does not fit the phase: start over, which is always right.
            _ => self.fill(),
        }
    }

    fn fill(&mut self) -> Command {
        if self.streaming { self.stream() } else { self.list() }
    }

    fn stream(&mut self) -> Command {
        self.phase = Phase::Streaming;
        let options = self.watch_options().resource_version(self.lower_bound());
        Command::Stream(options.version_match(VersionMatch::NotOlderThan).send_initial_events(true))
    }

    /// Never ask for less than has been seen, unless the server cannot serve that.
    fn lower_bound(&self) -> Option<String> {
        self.position.as_ref().filter(|_| !self.unavailable).map(ToString::to_string)
    }

    fn list(&mut self) -> Command {
        let version = match (&self.position, self.unavailable) {
            (_, true) => None,
            (Some(position), false) => Some(position.to_string()),
            (None, false) => Some("0".to_owned()),
        };
        let automatic = if self.paginated || self.position.is_none() { Some(PAGE) } else { None };
        let limit = self.settings.page_size.or(automatic);
        // A limit turns a version into "exactly this one", unless told otherwise: what is listed would be as old as
        // what is known, and a watch that has expired there would expire again, for ever.
        let version_match = (limit.is_some() && version.as_deref().is_some_and(|version| version != "0"))
            .then_some(VersionMatch::NotOlderThan);
        let options = ListOptions::new().resource_version(version).version_match(version_match).limit(limit);
        self.list_from(options, false)
    }

    fn list_from(&mut self, options: ListOptions, full: bool) -> Command {
        self.phase = Phase::Listing { first: options.clone(), pages: 0, full, version: None };
        Command::List { options, fresh: true }
    }

    fn page_done(
        &mut self,
        first: ListOptions,
        pages: u32,
        full: bool,
        version: Option<ResourceVersion>,
        continue_token: Option<String>,
    ) -> Command {
        let Some(token) = continue_token.filter(|token| !token.is_empty()) else {
            self.paginated |= pages > 0 && first.resource_version.as_deref() == Some("0");
            return self.complete(version.unwrap_or_else(ResourceVersion::unset), false);
        };
        // A server refuses a version together with a continue token, which has its own.
        let options = first.clone().continue_token(token).resource_version(None).version_match(None);
        self.phase = Phase::Listing { first, pages: pages + 1, full, version };
        Command::List { options, fresh: false }
    }

    fn complete(&mut self, version: ResourceVersion, stream: bool) -> Command {
        let went_back = self.position.as_ref().is_some_and(|position| version.is_older_than(position));
        if went_back && self.compare == Compare::Version {
            // Another history: the same version no longer means the same content. What was dropped on arrival
            // as known may not be, so the list is taken once more.
            self.compare = Compare::Content;
            self.unavailable = true;
            self.settled = Settled::default();
            return self.fill();
        }
        self.phase = Phase::Committing { version: version.clone(), stream };
        Command::Commit(version)
    }

    fn committed(&mut self, version: ResourceVersion, stream: bool) -> Command {
        self.position = (!version.is_unset()).then_some(version);
        self.unavailable = false;
        self.compare = Compare::Version;
        self.early_ends = 0;
        if stream { self.follow() } else { self.watch() }
    }

    fn watch(&mut self) -> Command {
        self.phase = Phase::Watching;
        let resource_version = self.position.as_ref().map(ToString::to_string);
        Command::Watch(self.watch_options().resource_version(resource_version))
    }

    fn watch_options(&mut self) -> WatchOptions {
        let min = self.settings.min_watch.as_secs();
        let timeout = Duration::from_secs(self.rng.u64(min..=min.saturating_mul(2)));
        WatchOptions::new().allow_bookmarks(true).timeout(timeout)
    }

    fn streaming_failed(&mut self, failure: &Failure) -> Command {
        match failure.class {
            Class::Busy => self.wait(failure.retry_after, Then::Fill),
            Class::Transport => self.streamed_in_vain(failure.retry_after),
            Class::Expired | Class::TooLarge if !self.unavailable => {
                self.unavailable = true;
                self.fill()
            }
            Class::Invalid => {
                self.streaming = false;
                self.list()
            }
            _ => self.list(),
        }
    }

    /// A streaming list broke off. What is between us and the server may not let it through, but a list.
    fn streamed_in_vain(&mut self, asked: Option<Duration>) -> Command {
        self.early_ends += 1;
        let then = if self.early_ends.is_multiple_of(STREAM_TRIES) { Then::List } else { Then::Fill };
        self.wait(asked, then)
    }

    fn list_failed(&mut self, first: ListOptions, pages: u32, full: bool, failure: &Failure) -> Command {
        match failure.class {
            // The rest of the pages is gone: one list without pages, at the version the first page was asked for.
            Class::Expired if pages > 0 && !full => self.list_from(first.limit(None), true),
            Class::Expired | Class::TooLarge if !self.unavailable => {
                self.unavailable = true;
                self.list_from(first.resource_version(None).version_match(None), full)
            }
            _ => self.wait(failure.retry_after, Then::Fill),
        }
    }

    fn watch_failed(&mut self, failure: &Failure) -> Command {
        self.watch_failures += 1;
        let then = match failure.class {
            _ if self.position.is_none() => Then::Fill,
            // A broken connection says nothing about what is kept: however long it lasts, there is no need to
            // list again, and many clients that all do would break the server that comes back.
            Class::Busy | Class::Transport => Then::Watch,
            Class::Server if !self.watch_failures.is_multiple_of(WATCH_TRIES) => Then::Watch,
            Class::TooLarge => {
                self.unavailable = true;
                Then::Fill
            }
            _ => Then::Fill,
        };
        self.wait(failure.retry_after, then)
    }

    fn watch_ended(&mut self, lived: Duration, progress: bool) -> Command {
        self.lasted(lived);
        if self.position.is_none() {
            // Without a version there is nothing to go on from, and what vanished in between would stay.
            return self.wait(None, Then::Fill);
        }
        if progress || lived >= SHORT_WATCH {
            return self.watch();
        }
        self.watch_failures += 1;
        let then = if self.watch_failures.is_multiple_of(WATCH_TRIES) { Then::Fill } else { Then::Watch };
        self.wait(None, then)
    }

    /// A watch from a version in the server's future is accepted and stays silent until the server gets there:
    /// after a restore from a backup it would hide everything that happens until then.
    fn probe(&mut self) -> Command {
        let Some(position) = &self.position else { return self.follow() };
        let options = ListOptions::new().resource_version(position.to_string()).limit(1);
        self.phase = Phase::Probing;
        Command::Probe(options.version_match(VersionMatch::NotOlderThan))
    }

    fn probed(&mut self, version: Option<ResourceVersion>) -> Command {
        let behind =
            self.position.as_ref().zip(version).is_some_and(|(position, now)| now.is_older_than(position));
        if behind {
            self.unavailable = true;
            return self.fill();
        }
        self.follow()
    }

    fn probe_failed(&mut self, failure: &Failure) -> Command {
        match failure.class {
            Class::TooLarge | Class::Expired => {
                self.unavailable = true;
                self.fill()
            }
            // It says nothing about the watch, which will find out for itself.
            _ => self.follow(),
        }
    }

    fn follow(&mut self) -> Command {
        self.phase = Phase::Watching;
        Command::Follow
    }

    fn wait(&mut self, asked: Option<Duration>, then: Then) -> Command {
        self.phase = Phase::Waiting(then);
        Command::Wait(self.backoff.next(asked, &mut self.rng))
    }
}

#[cfg(test)]
mod tests;
