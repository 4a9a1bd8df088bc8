//! Resuming the watch at a version that an earlier process saved.
//!
//! The server may have another history than the one that was saved: it was restored from a backup, or it is another cluster.
//! A watch from the saved version is nevertheless accepted once the server has passed it. So before the state counts as
//! synced,
//!
//! 1. the object with the highest version, the *witness*, must be on the server as it was saved, or newer. If it is gone, or
//!    was recreated, the watch must deliver its delete;
//! 2. the server must not be behind the saved version;
//! 3. the watch must reach a version that the server called current after this process started.
//!
//! A silent watch is not probed meanwhile: a probe accepts the state of any cache of the server, which proves nothing, and the
//! time for the proof is limited anyway.
//!
//! If one of them fails, or takes too long, the collection is listed and compared with the restored state by content.

use super::{AfterWait, Class, Command, Failure, Freshness, LowerBound, Machine, Phase, WATCH_TRIES};
use crate::{delta_fifo::Compare, time};
use kube_informer_wire::{ObjectKey, ResourceVersion, Uid, WatchOptions};
use std::time::Duration;
use tokio::time::Instant;

/// Seconds that watches last until the proof is complete. kube-apiserver sends a bookmark two seconds before a watch ends, which
/// may be the only proof.
const SHORT_WATCH_SECONDS: std::ops::RangeInclusive<u64> = 3..=5;

/// A state of the collection that an earlier process saved.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RestoredState {
    /// The version that it shows.
    pub(crate) version: ResourceVersion,
    /// The object with the highest version; `None` if there is no object.
    pub(crate) witness: Option<Witness>,
    /// Whether it is recent enough to resume.
    pub(crate) is_recent: bool,
    pub(crate) now: Instant,
}

/// The object whose state on the server shows whether its history is the saved one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Witness {
    pub(crate) key: ObjectKey,
    pub(crate) uid: Uid,
    pub(crate) version: ResourceVersion,
}

/// How far the proof is that a restored state is that of the server.
#[derive(Debug)]
pub(super) struct Resume {
    witness: Option<Witness>,
    /// Whether the watch has yet to deliver the delete of the witness.
    awaits_delete: bool,
    /// The version that the server called current after this process started.
    current: Option<ResourceVersion>,
    /// When the collection is listed if there is no proof; `None` before the server has responded, and for never.
    due: Option<Instant>,
}

impl Machine {
    /// Whether the cache shows a state of the server, and not one that an earlier process saved.
    pub(crate) fn is_proven(&self) -> bool {
        self.resume.is_none()
    }

    /// When the proof for a restored state must be complete.
    pub(crate) fn proof_due(&self) -> Option<Instant> {
        self.resume.as_ref()?.due
    }

    /// Whether the delete of an object is a part of the proof.
    pub(crate) fn awaits_delete(&self, key: &ObjectKey, uid: Uid) -> bool {
        let awaits = |resume: &Resume| {
            resume.awaits_delete
                && resume.witness.as_ref().is_some_and(|witness| witness.key == *key && witness.uid == uid)
        };
        self.resume.as_ref().is_some_and(awaits)
    }

    pub(super) fn restored(&mut self, state: RestoredState) -> Command {
        let RestoredState { version, witness, is_recent, now } = state;
        let is_ordered = |version: &ResourceVersion| version.number().is_some();
        let can_resume = is_recent
            && is_ordered(&version)
            && witness.as_ref().is_none_or(|witness| is_ordered(&witness.version));
        self.position = Some(version);
        self.suspect_history();
        self.resume = Some(Resume { witness, awaits_delete: false, current: None, due: None });
        if can_resume { self.verify_at(now) } else { self.relist() }
    }

    fn verify_at(&mut self, now: Instant) -> Command {
        match self.resume.as_ref().and_then(|resume| resume.witness.as_ref()) {
            Some(_) => self.verify(),
            None => self.resume_watch(now),
        }
    }

    pub(super) fn verify(&mut self) -> Command {
        let witness = self.resume.as_ref().and_then(|resume| resume.witness.as_ref());
        let Some(key) = witness.map(|witness| witness.key.clone()) else { return self.relist() };
        self.phase = Phase::Verifying;
        Command::Verify(key)
    }

    pub(super) fn verified(&mut self, found: Option<(Uid, ResourceVersion)>, now: Instant) -> Command {
        let Some(Resume { witness: Some(witness), awaits_delete, .. }) = &mut self.resume else {
            return self.relist();
        };
        let is_plausible = match found {
            None => {
                *awaits_delete = true;
                true
            }
            Some((uid, version)) => {
                *awaits_delete = uid != witness.uid;
                witness.version.is_older_than(&version) || uid == witness.uid && version == witness.version
            }
        };
        if is_plausible { self.resume_watch(now) } else { self.relist() }
    }

    pub(super) fn verify_failed(&mut self, failure: &Failure) -> Command {
        self.watch_failures = self.watch_failures.saturating_add(1);
        match failure.class {
            Class::Busy => self.wait(failure.retry_after, AfterWait::Verify),
            Class::Transport if !self.watch_failures.is_multiple_of(WATCH_TRIES) => {
                self.wait(failure.retry_after, AfterWait::Verify)
            }
            // Such as: the informer may list and watch, but not get.
            _ => self.relist(),
        }
    }

    fn resume_watch(&mut self, now: Instant) -> Command {
        if let Some(resume) = &mut self.resume {
            resume.due = time::after(now, self.settings.deadlines.restored);
        }
        self.watch()
    }

    pub(super) fn short_watch_options(&mut self) -> WatchOptions {
        let timeout = Duration::from_secs(self.rng.u64(SHORT_WATCH_SECONDS));
        WatchOptions::new().allow_bookmarks(true).timeout(timeout)
    }

    /// Requests the version of the server, unless it is known.
    pub(super) fn watch_opened(&mut self) -> Command {
        if self.resume.as_ref().is_none_or(|resume| resume.current.is_some()) {
            return self.follow();
        }
        self.phase = Phase::Probing;
        Command::Probe(Freshness::MostRecent.list(Some(1)))
    }

    /// The server has this version, after this process has started.
    pub(super) fn version_found(&mut self, version: Option<ResourceVersion>) -> Command {
        let Some(version) = version.filter(|version| version.number().is_some()) else {
            return self.relist();
        };
        if self.position.as_ref().is_none_or(|position| version.is_older_than(position)) {
            return self.relist();
        }
        if let Some(resume) = &mut self.resume {
            resume.current = Some(version);
        }
        self.check_proof().unwrap_or_else(|| self.follow())
    }

    pub(super) fn witness_deleted(&mut self) -> Command {
        if let Some(resume) = &mut self.resume {
            resume.awaits_delete = false;
        }
        self.follow()
    }

    /// Completes the proof if the watch has reached the version of the server. Returns a command if there is another history.
    pub(super) fn check_proof(&mut self) -> Option<Command> {
        let Resume { current: Some(current), awaits_delete, .. } = self.resume.as_ref()? else { return None };
        if self.position.as_ref()?.is_older_than(current) {
            return None;
        }
        if *awaits_delete {
            // The witness was gone before the server had this version, and nothing deleted it: it never was there.
            return Some(self.relist());
        }
        self.resume = None;
        self.compare = Compare::Version;
        self.lower_bound = LowerBound::Position;
        None
    }
}
