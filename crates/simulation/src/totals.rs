//! Counts of faults, writes, events and checks.

use harness::FaultCounts;
use std::fmt;

harness::faults! {
    Cut = "cut", "A watch ended between two events.";
    Truncated = "truncated", "A response ended within an event or item, as if it were complete.";
    Broken = "broken", "A connection was reset during a response.";
    Stalled = "stalled", "A watch stayed open and delivered nothing more.";
    NoResponse = "no-response", "A request got no response.";
    Refused = "refused", "A connection was refused.";
    ResponseLost = "response-lost", "The server processed a request, and the connection was reset instead of a response.";
    Delayed = "delayed", "A response was delayed.";
    Trickled = "trickled", "A response arrived in chunks of a few bytes.";
    NotJson = "not-json", "A proxy responded with an HTML page.";
    MalformedList = "malformed-list", "A list was not JSON, or was truncated.";
    ExpiredAtOpen = "410-at-open", "The response to a request was 410.";
    ExpiredInStream = "410-in-stream", "A watch ended with a 410 event.";
    Compacted = "compacted", "The server compacted its history.";
    CompactedBeforeWatch = "compacted-before-watch", "The history was compacted between a list and the watch after it.";
    PageExpired = "page-expired", "A continue token expired.";
    BusyWithDelay = "429-retry-after", "A 429 with Retry-After.";
    Busy = "429", "A 429 without Retry-After.";
    StrangeHeaders = "strange-headers", "A response had headers that make no sense, and very long ones.";
    Internal = "500", "A 500.";
    ErrorInStream = "500-in-stream", "A watch ended with a 500 event.";
    Unauthorized = "401", "A 401.";
    Forbidden = "403", "A 403.";
    NotFound = "404", "A 404.";
    TooLarge = "too-large", "A request named a version that the server had not reached.";
    Duplicate = "duplicates", "A watch repeated events.";
    StaleList = "stale-list", "A list did not show the newest state.";
    NoEndBookmark = "no-end-bookmark", "A streaming list did not send the bookmark that completes it.";
    NoStreaming = "422", "A streaming list was rejected.";
    MalformedEvent = "malformed-event", "An event was malformed.";
    MalformedItem = "malformed-item", "An item of a list was malformed.";
    InvalidObject = "invalid-object", "An object was written whose labels are a string.";
    Recreated = "recreated", "An object was deleted and re-created while an informer had no live watch.";
    Deselected = "deselected", "An update moved an object out of the selector of an informer.";
    Restored = "restored", "The collection was restored to an older state.";
    Restarted = "restarted", "The server restarted on the same store.";
    WindowForgotten = "window-forgotten", "The watch caches of the server lost their history.";
    Lagging = "lagging", "The watch cache of the server was behind its store.";
    KindRemoved = "kind-removed", "The CRD was deleted, with all objects, and created again.";
    SlowReader = "slow-reader", "A watch fell behind because it was read slowly.";
    SlowHandler = "slow-handler", "A reader of an event stream paused.";
    Coalesced = "coalesced", "A handler had received coalesced events.";
    HandlerPanic = "handler-panic", "A handler panicked.";
    TransformPanic = "transform-panic", "A transform panicked.";
    TaskPanic = "task-panic", "A task of an informer panicked.";
    WorkerPanic = "worker-panic", "A worker panicked on a key.";
    WorkerDropped = "worker-dropped", "A worker that waited for a key was dropped.";
    WorkFailed = "work-failed", "A worker failed on a key.";
    HandlerRemoved = "handler-removed", "A handler was removed while its informer ran.";
    Conflict = "409", "A write of a controller was rejected because the object had changed.";
    EditRefused = "edit-refused", "A controller could not edit fields that its cache does not hold.";
    ProgramRestarted = "program-restarted", "All informers of a program were stopped and started again.";
    Killed = "killed", "A program that saves its caches was killed.";
    PowerLost = "power-lost", "Power was lost: any part of what was not synced to the disk is gone.";
    DiskFailed = "disk-failed", "A disk was full, or its operations failed.";
    FileTruncated = "file-truncated", "A file of a saved cache was truncated.";
    BitsFlipped = "bits-flipped", "Bits of a file of a saved cache were flipped.";
    FileOverwritten = "file-overwritten", "A part of a file of a saved cache was overwritten.";
    FileRemoved = "file-removed", "A file of a saved cache was removed.";
    OlderCopy = "older-copy", "A program started with an older copy of its saved caches.";
    MixedCopies = "mixed-copies", "A program started with files of its saved caches from different times.";
    OtherCluster = "other-cluster", "A program started with the saved cache of another cluster.";
    OtherTransform = "other-transform", "A program started with another transform than that of its saved cache.";
    OtherSelector = "other-selector", "A program started with another selector than that of its saved cache.";
    Unreadable = "unreadable", "A program started with a disk that could not be read.";
    ClockChanged = "clock-changed", "The wall clock was set while a program was down.";
    CacheDiscarded = "cache-discarded", "A saved cache was not used, with a reason.";
    CacheRestored = "cache-restored", "A program showed a saved cache.";
    WatchResumed = "watch-resumed", "A watch was resumed at a saved version, without a list.";
    Undetectable = "undetectable", "A saved cache was made too old to be resumed, because its program could not detect a restore.";
    Shared = "informer-shared", "Two users of a factory shared an informer.";
    Stopped = "informer-stopped", "An informer was stopped or dropped.";
}

/// Totals of one run or of many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of worlds.
    pub seeds: u64,
    /// Changes of collections.
    pub writes: u64,
    /// Events that handlers and streams received.
    pub delivered: u64,
    /// Caches compared with the history.
    pub checks: u64,
    faults: FaultCounts<Fault>,
}

impl Totals {
    /// Adds to the count of a fault.
    pub fn add_faults(&mut self, fault: Fault, times: u64) {
        self.faults.add(fault, times);
    }

    /// How often a fault took effect.
    pub fn count(&self, fault: Fault) -> u64 {
        self.faults.count(fault)
    }

    /// How often any fault took effect.
    pub fn faults(&self) -> u64 {
        self.faults.total()
    }

    /// Adds other totals.
    pub fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.writes += other.writes;
        self.delivered += other.delivered;
        self.checks += other.checks;
        self.faults.add_all(&other.faults);
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seeds, writes, delivered, checks, faults } = self;
        write!(f, "seeds={seeds} writes={writes} delivered={delivered} checks={checks}{faults}")
    }
}
