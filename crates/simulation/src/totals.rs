//! What happened, counted.

use std::fmt;

harness::faults! {
    Cut = "cut", "A watch ended cleanly before its time.";
    Truncated = "truncated", "An answer ended as if it were complete, in the middle of a word.";
    Broken = "broken", "A connection broke in the middle of an answer.";
    Stalled = "stalled", "A watch stayed open and said nothing any more.";
    Unanswered = "unanswered", "A request was never answered.";
    Refused = "refused", "Nobody listened.";
    ResponseLost = "answer-lost", "A request was done, and the connection broke instead of an answer.";
    Delayed = "delayed", "An answer came late.";
    Trickled = "trickled", "An answer came in pieces of a few bytes.";
    NotJson = "not-json", "Something in between answered with a page for people.";
    Malformed = "malformed", "A list that is not JSON, or stops in the middle.";
    ExpiredAtOpen = "410-at-open", "A request was answered with 410.";
    ExpiredInStream = "410-in-stream", "A watch ended with a 410 event.";
    Compacted = "compacted", "The server forgot its past.";
    CompactedBeforeWatch = "compacted-before-watch", "The history after a list was gone when the watch came.";
    PageExpired = "page-expired", "A continue token was no longer good.";
    BusyWithDelay = "429-retry-after", "A 429 that said when to come back.";
    Busy = "429", "A 429 that did not.";
    Internal = "500", "A 500.";
    ErrorInStream = "500-in-stream", "A watch ended with a 500 event.";
    Unauthorized = "401", "A 401.";
    Forbidden = "403", "A 403.";
    Absent = "404", "A 404.";
    TooLarge = "too-large", "A version in the server's future was asked for.";
    Duplicate = "duplicates", "A watch repeated what had been sent before.";
    StaleList = "stale-list", "A list showed an older state than the newest.";
    NoEndBookmark = "no-end-bookmark", "A streaming list never said that it was complete.";
    NoStreaming = "422", "A streaming list was refused.";
    Unreadable = "unreadable", "An event arrived garbled.";
    UnreadableItem = "unreadable-item", "An item of a list could not be read.";
    Odd = "odd", "An object with labels that are none was written.";
    Recreated = "recreated", "An object was replaced by another one of its name while nobody was watching.";
    Restored = "restored", "The collection went back to an older state.";
    Restarted = "restarted", "The server went down and came back on the same store.";
    WindowForgotten = "window-forgotten", "The caches of the server began anew.";
    Lagging = "lagging", "The server's cache was behind its store.";
    KindRemoved = "kind-removed", "The definition of the kind was deleted, with all objects, and made again.";
    SlowReader = "slow-reader", "A watch fell behind because it was read slowly.";
    SlowHandler = "slow-handler", "A reader of changes paused.";
    Coalesced = "coalesced", "A handler that was removed or checked had got net effects.";
    HandlerPanic = "handler-panic", "A handler panicked.";
    TransformPanic = "transform-panic", "A transform panicked.";
    TaskPanic = "task-panic", "A task of an informer panicked.";
    WorkFailed = "work-failed", "A worker failed on a key.";
    HandlerRemoved = "handler-removed", "A handler was removed while everything ran.";
    Conflict = "409", "A controller wrote over a state that was no longer the newest.";
    EditRefused = "edit-refused", "A controller could not edit what its cache does not hold.";
    ProgramRestarted = "program-restarted", "All informers of a program went down and others came up.";
    Stopped = "informer-stopped", "An informer was stopped or dropped while everything ran.";
}

/// Totals of one run or of many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Worlds.
    pub seeds: u64,
    /// Changes made to collections.
    pub writes: u64,
    /// Calls that handlers and streams got.
    pub delivered: u64,
    /// Caches compared with the model.
    pub checks: u64,
    struck: Vec<u64>,
}

impl Totals {
    /// A fault struck so often.
    pub fn strike(&mut self, fault: Fault, times: u64) {
        self.struck.resize(Fault::ALL.len(), 0);
        self.struck[fault as usize] += times;
    }

    /// How often a fault struck.
    pub fn struck(&self, fault: Fault) -> u64 {
        self.struck.get(fault as usize).copied().unwrap_or(0)
    }

    /// How often any fault struck.
    pub fn faults(&self) -> u64 {
        self.struck.iter().sum()
    }

    /// Adds another run.
    pub fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.writes += other.writes;
        self.delivered += other.delivered;
        self.checks += other.checks;
        self.struck.resize(Fault::ALL.len(), 0);
        for (sum, more) in self.struck.iter_mut().zip(&other.struck) {
            *sum += more;
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seeds, writes, delivered, checks, .. } = self;
        write!(f, "seeds={seeds} writes={writes} delivered={delivered} checks={checks}")?;
        for &fault in Fault::ALL {
            write!(f, " {}={}", fault.name(), self.struck(fault))?;
        }
        Ok(())
    }
}
