//! The rules that hold at each step of a world.

use super::{Child, SiteState, State, Truth, Work};
use crate::controllers::{process::Process, totals::Fault};
use kube_informer_controller::BoxError;
use serde_json::Value;
use std::sync::Arc;

/// A reconcile in flight, until it is dropped.
pub(in crate::controllers) struct Reconciling {
    truth: Arc<Truth>,
    site: String,
    id: u64,
    ended: bool,
}

impl Reconciling {
    /// The reconcile returns.
    pub(in crate::controllers) fn end(mut self) {
        self.ended = true;
    }
}

impl Drop for Reconciling {
    fn drop(&mut self) {
        let mut state = self.truth.lock();
        let Some(running) = state.running.get_mut(&self.site) else { return };
        let before = running.len();
        running.retain(|work| work.id != self.id);
        // The work of a dead process was removed already.
        let was_running = running.len() < before;
        drop(state);
        if was_running && !self.ended {
            self.truth.record_fault(Fault::Cancelled);
        }
    }
}

/// The object of a write of a replica.
#[derive(Debug, Clone, Copy)]
pub(in crate::controllers) struct WriteRequest<'a> {
    pub(in crate::controllers) process: &'a str,
    pub(in crate::controllers) method: &'a str,
    pub(in crate::controllers) resource: &'a str,
    pub(in crate::controllers) name: &'a str,
    pub(in crate::controllers) apply: bool,
    pub(in crate::controllers) body: &'a Value,
}

impl Truth {
    /// A reconcile begins. No other one of that name may be in flight, in any process, and each earlier object of that name must have
    /// been released.
    pub(in crate::controllers) fn begin(
        self: &Arc<Self>,
        process: &Process,
        site: &str,
        uid: &str,
        what: &str,
    ) -> Result<Reconciling, BoxError> {
        if process.is_recovering() {
            return Err("the process was suspended".into());
        }
        let mut state = self.lock();
        state.started += 1;
        state.totals.reconciles += 1;
        let id = state.started;
        let work = Work { id, process: process.name.clone(), uid: uid.to_owned() };
        let unreleased = state.departures.before(site, &work);
        let running = state.running.entry(site.to_owned()).or_default();
        let other = running.first().cloned();
        running.push(work.clone());
        drop(state);
        self.log.note(format_args!("{} {what} {site} {uid}", process.name));
        if let Some(Work { process: other, uid: of, .. }) = other {
            self.log.fail(format_args!(
                "{} works on {site} ({uid}) while {other} works on it ({of})",
                process.name
            ));
        }
        self.check_departures(site, &work, unreleased);
        Ok(Reconciling { truth: Arc::clone(self), site: site.to_owned(), id, ended: false })
    }

    /// A process was killed, or is suspended: it does not work any more. Returns whether it did.
    pub(in crate::controllers) fn stops_working(&self, process: &str) -> bool {
        let mut state = self.lock();
        let mut worked = false;
        for running in state.running.values_mut() {
            let before = running.len();
            running.retain(|work| work.process != process);
            worked |= running.len() < before;
        }
        worked
    }

    /// The operator makes sure that the account of a site has a value. The site must have the finalizer, and must not have been
    /// cleaned up.
    pub(in crate::controllers) fn set_account(
        &self,
        process: &Process,
        site: &str,
        uid: &str,
        value: &str,
    ) -> Result<(), BoxError> {
        if process.is_recovering() {
            return Err("the process was suspended".into());
        }
        let mut state = self.lock();
        let has_finalizer = state.sites.get(site).is_some_and(|stored| stored.uid == uid && stored.finalizer);
        let cleaned = state.cleaned.contains(uid);
        if state.accounts.insert(uid.to_owned(), value.to_owned()).as_deref() != Some(value) {
            state.changes += 1;
        }
        drop(state);
        if !has_finalizer {
            self.log.fail(format_args!("{} makes the account of {site} without a finalizer", process.name));
        }
        if cleaned {
            self.log.fail(format_args!("{} makes the account of {site} after its cleanup", process.name));
        }
        Ok(())
    }

    /// The cleanup of a site begins: the site must be deleting, and have the finalizer.
    pub(in crate::controllers) fn begin_cleanup(&self, process: &Process, site: &str, uid: &str) {
        let mut state = self.lock();
        state.totals.cleanups += 1;
        let stored = state.sites.get(site).filter(|stored| stored.uid == uid);
        let due = stored.is_some_and(|stored| stored.deleting && stored.finalizer);
        state.cleaned.insert(uid.to_owned());
        drop(state);
        if !due {
            self.log.fail(format_args!(
                "{} cleans up {site} ({uid}), which is not deleting or has no finalizer",
                process.name
            ));
        }
    }

    /// The operator removes the account of a site.
    pub(in crate::controllers) fn remove_account(
        &self,
        process: &Process,
        uid: &str,
    ) -> Result<(), BoxError> {
        if process.is_recovering() {
            return Err("the process was suspended".into());
        }
        let mut state = self.lock();
        state.accounts.remove(uid);
        state.changes += 1;
        Ok(())
    }

    /// A site was committed, or deleted.
    pub(super) fn site_changed(&self, name: &str, current: Option<SiteState>, revision: u64) {
        let mut state = self.lock();
        state.changes += 1;
        let previous = match &current {
            Some(site) => state.sites.insert(name.to_owned(), site.clone()),
            None => state.sites.remove(name),
        };
        let broken = previous.as_ref().and_then(|previous| broken(&mut state, previous, current.as_ref()));
        match (&previous, &current) {
            (None, Some(site)) => state.departures.site_created(&site.uid, revision),
            (Some(site), None) => self.departed(&mut state, name, &site.uid, revision),
            _ => {}
        }
        let recreated = current.is_none() && state.recreated.remove(name);
        drop(state);
        match &current {
            Some(site) => self.log.note(format_args!(
                "site {name} {} @{revision} deleting={} finalizer={} children={} status={:?}",
                site.uid, site.deleting, site.finalizer, site.children, site.status
            )),
            None => self.log.note(format_args!("site {name} is gone @{revision}")),
        }
        if let Some(why) = broken {
            self.log.fail(format_args!("site {name}: {why}"));
        }
        if recreated {
            let _ = self.recreate.send(name.to_owned());
        }
    }

    /// A child was committed, or deleted. No site may have two children for one slot.
    pub(super) fn child_changed(&self, name: &str, current: Option<Child>) {
        let mut state = self.lock();
        state.changes += 1;
        state.totals.children += 1;
        let Some(child) = current else {
            state.children.remove(name);
            drop(state);
            return self.log.note(format_args!("child {name} is gone"));
        };
        state.children.insert(name.to_owned(), child.clone());
        let same = |other: &&Child| (&other.owner, other.slot) == (&child.owner, child.slot);
        let count = state.children.values().filter(same).count();
        drop(state);
        self.log.note(format_args!("child {name} {} = {:?} of {}", child.uid, child.value, child.owner));
        if count > 1 {
            self.log.fail(format_args!("{count} children for slot {} of {}", child.slot, child.owner));
        }
    }

    /// The server is about to process a write of a replica: the replica has to hold the lease that the write needs, and a change of
    /// an object has to name its uid and version.
    pub(in crate::controllers) fn check_write(&self, write: WriteRequest<'_>) {
        let WriteRequest { process, method, resource, name, apply, body } = write;
        let guard = if method == "DELETE" { &body["preconditions"] } else { &body["metadata"] };
        if (method == "DELETE" || (method == "PATCH" && !apply))
            && (guard["uid"].is_null() || guard["resourceVersion"].is_null())
        {
            return self
                .log
                .fail(format_args!("{process} sends {method} {resource} {name} without preconditions"));
        }
        let mut state = self.lock();
        state.totals.checked_writes += 1;
        let uid = match (resource, method) {
            ("sites", _) => guard["uid"].as_str().map(str::to_owned),
            (_, "DELETE") => state.children.get(name).map(|child| child.owner.clone()),
            _ => {
                let owner = body["metadata"]["ownerReferences"][0]["uid"].as_str().map(str::to_owned);
                owner.or_else(|| state.children.get(name).map(|child| child.owner.clone()))
            }
        };
        // The child does not exist any more: the write fails.
        let Some(uid) = uid else { return };
        let lease = self.settings.lease_of(&uid);
        let holder = state.leases.get(&lease).cloned().unwrap_or_default();
        drop(state);
        if holder != process {
            self.log.fail(format_args!(
                "{process} writes {resource} {name} of {uid} although {holder:?} holds {lease}"
            ));
        }
    }
}

/// The rule that a change of a site breaks.
fn broken(state: &mut State, previous: &SiteState, current: Option<&SiteState>) -> Option<String> {
    let current = current.filter(|current| current.uid == previous.uid);
    let uid = &previous.uid;
    let lost = previous.finalizer && current.is_none_or(|current| !current.finalizer);
    if (lost || current.is_none()) && state.accounts.contains_key(uid) {
        return Some("its finalizer was removed before its cleanup".to_owned());
    }
    if lost && current.is_some_and(|current| !current.deleting) {
        return Some("its finalizer was removed although it is not deleting".to_owned());
    }
    let lost = previous.user_finalizer && current.is_none_or(|current| !current.user_finalizer);
    if lost && state.user_finalizers.remove(uid) {
        return Some("the finalizer of another user was removed".to_owned());
    }
    None
}
