//! Fault injection: failures of real servers, on demand.

use kube_informer_wire::sync::lock;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::api::Api;
use crate::caches::Caches;
use crate::storage::{Storage, StorageError};
use crate::verb::Verb;

/// A fault of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// 429 with `Retry-After`.
    TooManyRequests {
        /// The value of `Retry-After`, in seconds.
        retry_after: u32,
    },
    /// 500 `InternalError`.
    InternalError,
    /// 503 `ServiceUnavailable`.
    Unavailable,
    /// 504 `Timeout`.
    Timeout,
    /// 403 `Forbidden`, as from authorization.
    Forbidden,
    /// 409 `Conflict`, as after a concurrent write.
    Conflict,
    /// The request is executed, and the connection is closed instead of a response.
    ResponseLost,
    /// The request is executed after a delay.
    Delay(Duration),
}

/// A fault for the next matching requests.
#[derive(Debug, Clone)]
#[must_use = "pass the rule to Faults::add"]
pub struct FaultRule {
    fault: Fault,
    verb: Option<Verb>,
    resource: Option<String>,
    remaining: u64,
}

impl FaultRule {
    /// Returns a rule for the next request to any resource.
    pub fn new(fault: Fault) -> Self {
        Self { fault, verb: None, resource: None, remaining: 1 }
    }

    /// Matches only requests with this verb.
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Matches only requests to this resource, by its plural name.
    pub fn resource(mut self, plural: impl Into<String>) -> Self {
        self.resource = Some(plural.into());
        self
    }

    /// Applies to the next `n` matching requests.
    pub fn times(mut self, n: u64) -> Self {
        self.remaining = n;
        self
    }

    /// Returns the fault.
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// Returns the number of matching requests that are still to fail.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    fn matches(&self, verb: Verb, plural: &str) -> bool {
        self.remaining > 0
            && self.verb.is_none_or(|v| v == verb)
            && self.resource.as_deref().is_none_or(|r| r == plural)
    }
}

/// The active rules, oldest first. A request uses the first matching rule.
#[derive(Debug, Default)]
pub(crate) struct FaultRules(Mutex<Vec<FaultRule>>);

impl FaultRules {
    fn lock(&self) -> MutexGuard<'_, Vec<FaultRule>> {
        lock(&self.0)
    }

    /// Returns the fault for a request, if any, and counts it.
    pub(crate) fn draw(&self, verb: Verb, plural: &str) -> Option<Fault> {
        let mut rules = self.lock();
        let rule = rules.iter_mut().find(|rule| rule.matches(verb, plural))?;
        rule.remaining -= 1;
        let fault = rule.fault;
        rules.retain(|rule| rule.remaining > 0);
        Some(fault)
    }
}

impl Fault {
    /// Whether the request fails instead of being executed.
    pub(crate) fn is_failure(self) -> bool {
        !matches!(self, Self::Delay(_) | Self::ResponseLost)
    }
}

/// Controls the faults of one server. Clones control the same server.
///
/// A `resource` parameter is a plural name (`pods`); `None` means all resources.
#[derive(Clone)]
pub struct Faults {
    rules: Arc<FaultRules>,
    storage: Arc<dyn Storage>,
    caches: Arc<Caches>,
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faults").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Faults {
    pub(crate) fn new(api: &Api) -> Self {
        Self {
            rules: Arc::clone(&api.faults),
            storage: Arc::clone(&api.storage),
            caches: Arc::clone(&api.caches),
        }
    }

    /// Adds a rule after the active ones.
    pub fn add(&self, rule: FaultRule) {
        self.rules.lock().push(rule);
    }

    /// Returns the active rules, oldest first.
    pub fn rules(&self) -> Vec<FaultRule> {
        self.rules.lock().clone()
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.rules.lock().clear();
    }

    /// Compacts the store at its newest revision: older versions can no longer be listed.
    pub async fn compact(&self) -> Result<(), StorageError> {
        let revision = self.storage.current_revision().await?;
        self.storage.compact(revision).await
    }

    /// Reinitializes caches: their windows of recent changes are empty and their watches end.
    pub async fn forget_window(&self, resource: Option<&str>) -> Result<(), StorageError> {
        for cache in self.caches.started(resource) {
            cache.forget_window().await?;
        }
        Ok(())
    }

    /// Ends open watches without an error.
    pub fn cut_watches(&self, resource: Option<&str>) {
        self.caches.started(resource).iter().for_each(|cache| cache.cut_watches());
    }

    /// Pauses or resumes watch streams.
    pub fn stall_watches(&self, resource: Option<&str>, stalled: bool) {
        self.caches.started(resource).iter().for_each(|cache| cache.stall_watches(stalled));
    }

    /// Makes caches lag behind the store, like a replica with a slow connection, or catch up with it.
    pub async fn lag(&self, resource: Option<&str>, lagging: bool) -> Result<(), StorageError> {
        for cache in self.caches.started(resource) {
            cache.lag(lagging).await?;
        }
        Ok(())
    }

    /// Makes caches unready, as at start-up, until [`forget_window`](Self::forget_window) reinitializes them.
    pub fn make_unready(&self, resource: Option<&str>, cause: &str) {
        self.caches.started(resource).iter().for_each(|cache| cache.make_unready(cause));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_applies_to_matching_requests_the_given_number_of_times() {
        let rules = FaultRules::default();
        rules.lock().push(FaultRule::new(Fault::Timeout).verb(Verb::List).resource("pods").times(2));
        rules.lock().push(FaultRule::new(Fault::InternalError));
        assert_eq!(rules.draw(Verb::List, "pods"), Some(Fault::Timeout));
        assert_eq!(rules.draw(Verb::Get, "pods"), Some(Fault::InternalError));
        assert_eq!(rules.draw(Verb::Get, "pods"), None);
        assert_eq!(rules.draw(Verb::List, "pods"), Some(Fault::Timeout));
        assert_eq!(rules.draw(Verb::List, "pods"), None);
    }
}
