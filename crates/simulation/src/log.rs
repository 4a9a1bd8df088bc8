//! What a world writes down: a trace, its hash, totals, and the first thing that was wrong.

use crate::{
    history::Written,
    totals::{Fault, Totals},
};
use std::{
    fmt,
    fmt::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::time::Instant;

/// Gets each line of a trace.
pub type Sink = Box<dyn FnMut(&str) + Send>;

/// The log of one world. Everything that can be seen of it passes here, so that two runs with one hash are one
/// run.
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

/// Where a hash begins, and what it is multiplied with: numbers without a pattern.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash that goes on with a number: the same everywhere and for ever.
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

    /// Writes down a line.
    pub(crate) fn note(&self, what: fmt::Arguments<'_>) {
        let at = self.start.elapsed().as_millis();
        let mut state = self.lock();
        let state = &mut *state;
        state.line.clear();
        let _ = write!(state.line, "{at} {what}");
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

    /// A handler was told something. There are too many of these to put each into words when nobody reads them.
    pub(crate) fn call(&self, who: u64, what: &str, numbers: [u64; 2], words: impl fmt::Display) {
        let at = self.start.elapsed().as_millis() as u64;
        let mut state = self.lock();
        let state = &mut *state;
        state.totals.delivered += 1;
        for number in [at, who, what.len() as u64, numbers[0], numbers[1]] {
            state.hash = mix(state.hash, number);
        }
        if let Some(sink) = &mut state.sink {
            state.line.clear();
            let _ = write!(state.line, "{at} {words}");
            sink(&state.line);
        }
    }

    /// A fault struck.
    pub(crate) fn strike(&self, fault: Fault) {
        self.lock().totals.strike(fault, 1);
        self.note(format_args!("fault {}", fault.name()));
    }

    /// The collection changed.
    pub(crate) fn wrote(&self, write: &Written) {
        self.count(|totals| totals.writes += 1);
        let what = if write.gone { "delete" } else { "put" };
        self.note(format_args!("{what} {} n={} @{}", write.key, write.n, write.version));
    }

    /// Changes the totals.
    pub(crate) fn count(&self, change: impl FnOnce(&mut Totals)) {
        change(&mut self.lock().totals);
    }

    /// Something is wrong. The first thing stands.
    pub(crate) fn fail(&self, what: impl fmt::Display) {
        self.note(format_args!("WRONG {what}"));
        self.lock().failure.get_or_insert_with(|| what.to_string());
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
