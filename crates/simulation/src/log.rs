//! The log of a world: its trace and the hash of it, totals, and the first failure.

use crate::{
    history::Write,
    totals::{Fault, Totals},
};
use kube_informer_wire::sync::lock;
use std::{
    fmt,
    fmt::Write as _,
    sync::{Mutex, MutexGuard},
};
use tokio::time::Instant;

/// Receives each line of a trace.
pub type Sink = Box<dyn FnMut(&str) + Send>;

/// The log of one world. It records everything that can be observed, so that two runs with the same hash are the
/// same run.
pub(crate) struct Log {
    state: Mutex<State>,
    start: Instant,
}

struct State {
    hash: u64,
    line: String,
    sink: Option<Sink>,
    totals: Totals,
    failure: Option<String>,
}

/// Initial value and factor of the hash: numbers without a pattern.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Continues a hash with a number. Unlike the hashers of the standard library, it is the same in every version.
fn mix(hash: u64, number: u64) -> u64 {
    (hash ^ number).wrapping_mul(FACTOR).rotate_left(29)
}

impl Log {
    pub(crate) fn new(sink: Option<Sink>) -> Self {
        let mut totals = Totals::default();
        totals.seeds = 1;
        let state = State { hash: OFFSET, line: String::new(), sink, totals, failure: None };
        Self { state: Mutex::new(state), start: Instant::now() }
    }

    /// Adds a line to the trace.
    pub(crate) fn note(&self, text: fmt::Arguments<'_>) {
        let at = self.start.elapsed().as_millis();
        let mut state = self.lock();
        let state = &mut *state;
        state.line.clear();
        let _ = write!(state.line, "{at} {text}");
        for word in state.line.as_bytes().chunks(8) {
            let mut bytes = [0; 8];
            bytes[..word.len()].copy_from_slice(word);
            state.hash = mix(state.hash, u64::from_le_bytes(bytes));
        }
        state.hash = mix(state.hash, state.line.len() as u64);
        if let Some(sink) = &mut state.sink {
            sink(&state.line);
        }
    }

    /// Records a call of a handler. There are many, so that the text is only formatted for a trace, and the numbers
    /// are hashed instead.
    pub(crate) fn record_call(&self, handler: u64, event: &str, numbers: [u64; 2], text: impl fmt::Display) {
        let at = self.start.elapsed().as_millis() as u64;
        let mut state = self.lock();
        let state = &mut *state;
        state.totals.delivered += 1;
        for number in [at, handler, event.len() as u64, numbers[0], numbers[1]] {
            state.hash = mix(state.hash, number);
        }
        if let Some(sink) = &mut state.sink {
            state.line.clear();
            let _ = write!(state.line, "{at} {text}");
            sink(&state.line);
        }
    }

    /// Records a fault that took effect.
    pub(crate) fn record_fault(&self, fault: Fault) {
        self.lock().totals.add_faults(fault, 1);
        self.note(format_args!("fault {}", fault.name()));
    }

    /// Records a change of the collection.
    pub(crate) fn record_write(&self, write: &Write) {
        self.count(|totals| totals.writes += 1);
        let verb = if write.deleted { "delete" } else { "put" };
        self.note(format_args!("{verb} {} n={} @{}", write.key, write.n, write.version));
    }

    /// Changes the totals.
    pub(crate) fn count(&self, change: impl FnOnce(&mut Totals)) {
        change(&mut self.lock().totals);
    }

    /// Records a failed check. Only the first one is reported.
    pub(crate) fn fail(&self, why: impl fmt::Display) {
        self.note(format_args!("FAILURE {why}"));
        self.lock().failure.get_or_insert_with(|| why.to_string());
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.lock().failure.clone()
    }

    pub(crate) fn hash(&self) -> u64 {
        self.lock().hash
    }

    pub(crate) fn totals(&self) -> Totals {
        self.lock().totals.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}
