//! Requests for a Lease.

use super::{
    LeaderElection,
    rules::{Next, Rules},
};
use crate::{failure::chain, time};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use metrics::counter;
use std::{sync::Arc, time::Duration};

/// Changes the metadata of a Lease before it is written; with `true` if this process takes the lease with that write.
pub(crate) type OnWrite = Arc<dyn Fn(&mut ObjectMeta, bool) + Send + Sync>;
/// Receives a Lease that was written.
pub(crate) type OnWritten = Arc<dyn Fn(&Lease) + Send + Sync>;

/// The Lease of an election, and what this process knows of it.
pub(super) struct Lock {
    api: Api<Lease>,
    config: LeaderElection,
    rules: Rules,
    /// The Lease as it was last read or written: its version guards the next update.
    lease: Option<Lease>,
    request_timeout: Duration,
    /// Whether a write was sent that may have acquired the lease.
    may_be_held: bool,
}

/// The result of an attempt to acquire or renew the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The lease is held, from this time of the boot clock, which is before the request.
    Held { since: Duration },
    /// Another process holds the lease.
    HeldBy(String),
    /// A request failed.
    Failed(String),
}

impl Lock {
    pub(super) fn new(config: LeaderElection, client: kube::Client) -> Self {
        let api = Api::namespaced(client, &config.namespace);
        let seconds = i32::try_from(config.lease_duration.as_secs()).unwrap_or(i32::MAX);
        let rules = Rules::new(config.identity.clone(), seconds);
        let half = config.renew_deadline.checked_div(2).unwrap_or_default();
        let request_timeout = half.max(Duration::from_secs(1));
        Self { api, config, rules, lease: None, request_timeout, may_be_held: false }
    }

    pub(super) fn config(&self) -> &LeaderElection {
        &self.config
    }

    /// The last known holder.
    pub(super) fn holder(&self) -> &str {
        self.rules.holder()
    }

    /// Whether this process may hold the lease: a request whose response is missing may have acquired it.
    pub(super) fn may_be_held(&self) -> bool {
        self.may_be_held
    }

    /// The Lease as it was last read or written.
    pub(super) fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }

    /// The Lease was seen by other means than a request of this type, at this time of the boot clock.
    pub(super) fn observe(&mut self, spec: &LeaseSpec, at: Duration) {
        self.rules.observe(spec, at);
    }

    /// Tries to acquire the lease, if no other process holds it.
    pub(super) async fn try_acquire(&mut self) -> Attempt {
        self.read_and_take(true).await.unwrap_or_else(Attempt::Failed)
    }

    /// Tries to renew the lease: with one update, or after reading it if that fails. A lease that another process held meanwhile
    /// is not taken back, even if it is free again: the work of this process was not exclusive.
    pub(super) async fn try_renew(&mut self) -> Attempt {
        let now = self.config.clock.now();
        if let Some(spec) = self.rules.renewal(now, self.config.wall_clock.now())
            && let Ok(since) = self.write(spec, false).await
        {
            return Attempt::Held { since };
        }
        counter!("leader_election_slowpath_total", "name" => self.config.name.clone()).increment(1);
        self.read_and_take(false).await.unwrap_or_else(Attempt::Failed)
    }

    /// Reads the Lease and writes it, if this process holds it, or if it is free and may be taken.
    async fn read_and_take(&mut self, may_take: bool) -> Result<Attempt, String> {
        self.read().await?;
        let found = self.lease.as_ref().map(|lease| lease.spec.clone().unwrap_or_default());
        let (now, time) = (self.config.clock.now(), self.config.wall_clock.now());
        let taking = found.as_ref().is_none_or(|found| !self.rules.is_held_here(found));
        let spec = match self.rules.read(found.as_ref(), now, time) {
            Next::Held(holder) => return Ok(Attempt::HeldBy(holder)),
            Next::Update(_) if !may_take && !self.rules.is_holder() => {
                return Ok(Attempt::HeldBy(self.rules.holder().to_owned()));
            }
            Next::Create(spec) | Next::Update(spec) => spec,
        };
        let since = self.write(spec, taking).await?;
        Ok(Attempt::Held { since })
    }

    /// Releases the lease if this process holds it, and retries after conflicts. Returns whether it did.
    pub(super) async fn release(&mut self) -> Result<bool, String> {
        loop {
            self.read().await?;
            let found = self.lease.as_ref().and_then(|lease| lease.spec.clone());
            let released = found.and_then(|found| self.rules.released(&found, self.config.wall_clock.now()));
            let Some(spec) = released else { return Ok(false) };
            if self.write(spec, false).await.is_ok() {
                return Ok(true);
            }
            time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn read(&mut self) -> Result<(), String> {
        let found = time::timeout(self.request_timeout, self.api.get_opt(&self.config.name)).await;
        self.lease = found.map_err(|_| self.no_response())?.map_err(|error| chain(&error))?;
        Ok(())
    }

    /// Creates or updates the Lease. Returns the time before the request.
    async fn write(&mut self, spec: LeaseSpec, taking: bool) -> Result<Duration, String> {
        let mut lease = self.lease.clone().unwrap_or_else(|| Lease {
            metadata: ObjectMeta {
                name: Some(self.config.name.clone()),
                namespace: Some(self.config.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: None,
        });
        lease.spec = Some(spec.clone());
        if !self.config.labels.is_empty() {
            lease.metadata.labels.get_or_insert_default().extend(self.config.labels.clone());
        }
        if let Some(on_write) = &self.config.on_write {
            on_write(&mut lease.metadata, taking);
        }
        let (params, sent) = (PostParams::default(), self.config.clock.now());
        // Set before the request, which a stop may cancel.
        let before = std::mem::replace(&mut self.may_be_held, true);
        let request = async {
            match self.lease {
                Some(_) => self.api.replace(&self.config.name, &params, &lease).await,
                None => self.api.create(&params, &lease).await,
            }
        };
        let written = time::timeout(self.request_timeout, request).await;
        if let Ok(Err(kube::Error::Api(status))) = &written
            && matches!(status.code, 400..=407 | 410..=499)
        {
            self.may_be_held = before;
        }
        let written = written.map_err(|_| self.no_response())?.map_err(|error| chain(&error))?;
        // As the server stores it, so that it does not look changed when it is read.
        self.rules.written(written.spec.clone().unwrap_or(spec), sent);
        if let Some(on_written) = &self.config.on_written {
            on_written(&written);
        }
        self.lease = Some(written);
        Ok(sent)
    }

    fn no_response(&self) -> String {
        format!("no response within {:?}", self.request_timeout)
    }
}
