//! Checks of a cache that starts with a saved state.

use super::cache::{CacheCheck, version};
use crate::{
    history::{EpochVersion, is_in},
    restarts::Expected,
    selection::Part,
    totals::Fault,
    truth::{ClientId, TruthState},
};
use kube_informer::CacheSnapshot;
use kube_informer_wire::sync::lock;
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// The longest time that a list is in flight to the store.
const MAX_IN_FLIGHT: Duration = Duration::from_secs(5);

/// What is known of the start with saved states.
pub(super) struct Restart {
    /// The state of the server when the informer was started.
    started: EpochVersion,
    /// Which partitions have shown a saved state.
    restored: Vec<bool>,
    /// Which partitions have claimed a version since the start.
    has_claimed: Vec<bool>,
    /// Which partitions have shown a state that was current when the informer was started, or a later one.
    proven: Vec<bool>,
    /// Since when partitions have been live without that.
    live_since: Vec<Option<Instant>>,
}

impl Restart {
    pub(super) fn new(partitions: usize) -> Self {
        let none = vec![false; partitions];
        let live_since = vec![None; partitions];
        let (restored, has_claimed) = (none.clone(), none.clone());
        Self { started: EpochVersion::default(), restored, has_claimed, proven: none, live_since }
    }

    /// Whether a partition started with a saved state, and has not reached the present yet.
    fn is_unproven(&self, at: usize) -> bool {
        self.restored[at] && !self.proven[at]
    }
}

impl CacheCheck {
    /// The informer starts.
    pub(super) fn start(&self) {
        let truth = self.truth.lock();
        lock(&self.restart).started = (truth.history.epoch(), truth.history.version);
    }

    /// The resource version of each partition.
    pub(super) fn versions(&self) -> Vec<Option<u64>> {
        let snapshot = self.lister.snapshot();
        self.partitions.iter().map(|&partition| version(partition, &snapshot)).collect()
    }

    /// The states of the partitions that claim a resource version.
    pub(crate) fn claimed(&self) -> Vec<(Option<&'static str>, EpochVersion)> {
        let versions = self.versions();
        let last = lock(&self.last);
        let states = self.partitions.iter().zip(&versions).zip(&*last);
        states
            .filter_map(|((&partition, version), last)| {
                last.filter(|last| Some(last.1) == *version).map(|last| (partition, last))
            })
            .collect()
    }

    /// What a partition may show before it has a list; `None` if nothing was saved.
    pub(super) fn expected(&self, at: usize) -> Option<&Expected> {
        let expected = self.persistence.as_ref()?.expected.get(at)?;
        (!expected.states.is_empty()).then_some(expected)
    }

    /// Checks a partition that has no list yet: it shows the saved state, or a later one. If the server was restored since,
    /// events of the new history may be mixed with it until that is noticed.
    pub(super) fn check_restored(
        &self,
        at: usize,
        expected: &Expected,
        last: &mut Option<EpochVersion>,
        snapshot: &CacheSnapshot<Value>,
        truth: &TruthState,
    ) -> Result<(), String> {
        let (history, partition) = (&truth.history, self.partitions[at]);
        let mut objects = snapshot.iter().filter(|object| is_in(object.key(), partition));
        if last.is_none() && objects.next().is_none() {
            return Ok(());
        }
        let saved = last.map_or_else(|| expected.states.clone(), |last| vec![last]);
        for &(saved_in, from) in &saved {
            // Later epochs may have the same state.
            for epoch in saved_in..=history.epoch() {
                let mut versions = from..=history.last_version(epoch);
                let shown =
                    versions.find(|&version| self.is_exact(partition, (epoch, version), snapshot, history));
                if let Some(version) = shown {
                    *last = Some((epoch, version));
                    self.note_restored(at);
                    return Ok(());
                }
            }
        }
        let is_restored = saved.iter().any(|state| state.0 != history.epoch());
        let unwritten = || {
            let mut objects = snapshot.iter().filter(|object| is_in(object.key(), partition));
            objects.find(|object| history.find(object, self.view).is_none())
        };
        if last.is_some() && is_restored && unwritten().is_none() {
            return Ok(());
        }
        let difference = self.differs(snapshot, history.current(), history, |key| is_in(key, partition));
        let difference = difference.unwrap_or_default();
        Err(format!("{partition:?} is neither the state saved at {saved:?} nor a later one: {difference}"))
    }

    fn note_restored(&self, at: usize) {
        let mut restart = lock(&self.restart);
        // A partition that has claimed a version, and lost it when the server was restored, is past its start.
        if !restart.has_claimed[at] && !std::mem::replace(&mut restart.restored[at], true) {
            self.truth.log.record_fault(Fault::CacheRestored);
        }
    }

    /// Checks the start of a partition when it first claims a version: intact files were used, and for others there is a
    /// reason.
    pub(super) fn check_start(&self, at: usize, client: ClientId, truth: &TruthState) -> Result<(), String> {
        let mut restart = lock(&self.restart);
        if std::mem::replace(&mut restart.has_claimed[at], true) {
            return Ok(());
        }
        let Some(persistence) = &self.persistence else { return Ok(()) };
        let Some(expected) = persistence.expected.get(at) else { return Ok(()) };
        let (is_restored, is_reported) = (restart.restored[at], persistence.has_reported());
        if is_restored && !truth.has_received_list(client) {
            self.truth.log.record_fault(Fault::WatchResumed);
        }
        let part = Part::new(self.partitions[at], self.view.selection);
        let has_objects = |state: &EpochVersion| {
            let saved = truth.history.at(state.0, state.1);
            saved.is_some_and(|saved| saved.values().any(|write| part.includes(write)))
        };
        // An empty state is the same as none.
        let is_visible = !expected.states.is_empty() && expected.states.iter().all(has_objects);
        if expected.must_report && !is_reported {
            return Err("damaged files are not used, and nothing says why".into());
        }
        if expected.is_intact && is_visible && !is_restored && !is_reported {
            return Err("intact files are not used, and nothing says why".into());
        }
        let are_all_intact = persistence.expected.iter().all(|expected| expected.is_intact);
        if is_reported && are_all_intact && persistence.disk_failures() == 0 {
            return Err("intact files are not used".into());
        }
        Ok(())
    }

    /// Notes whether a partition that claims a version has reached the state at the start of the informer. Different epochs may
    /// have the same state.
    pub(super) fn note_proven(
        &self,
        at: usize,
        version: u64,
        snapshot: &CacheSnapshot<Value>,
        truth: &TruthState,
    ) {
        let mut restart = lock(&self.restart);
        if !restart.restored[at] || restart.proven[at] {
            return;
        }
        let mut epochs =
            (restart.started.0..=truth.history.epoch()).filter(|&epoch| (epoch, version) >= restart.started);
        let proven = epochs
            .any(|epoch| self.is_exact(self.partitions[at], (epoch, version), snapshot, &truth.history));
        restart.proven[at] = proven;
    }

    /// Checks that an informer which is synced has reached a state that was current when it was started, or a later one, in all
    /// partitions that started with a saved state.
    pub(super) fn check_synced(&self) -> Result<(), String> {
        let restart = lock(&self.restart);
        let unproven = (0..self.partitions.len()).find(|&at| restart.is_unproven(at));
        unproven.map_or(Ok(()), |at| Err(self.unproven(at, "synced", restart.started)))
    }

    /// Checks the same for partitions that are live. Their status may precede the store by what is in flight.
    pub(super) fn check_live(&self, is_live: impl Fn(usize) -> bool) -> Result<(), String> {
        let mut restart = lock(&self.restart);
        for at in 0..self.partitions.len() {
            if !is_live(at) || !restart.is_unproven(at) {
                restart.live_since[at] = None;
            } else if restart.live_since[at].get_or_insert_with(Instant::now).elapsed() > MAX_IN_FLIGHT {
                return Err(self.unproven(at, "live", restart.started));
            }
        }
        Ok(())
    }

    fn unproven(&self, at: usize, what: &str, started: EpochVersion) -> String {
        let (partition, version) = (self.partitions[at], self.versions()[at]);
        format!("{partition:?} is {what} at {version:?}, and was started at {started:?}")
    }
}
