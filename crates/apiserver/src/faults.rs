//! What goes wrong on real servers, on demand.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::engine::Engine;
use crate::http::Verb;
use crate::registry::Resource;
use crate::status::Status;
use crate::storage::StorageError;

/// One way to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// 429 with `Retry-After`.
    TooManyRequests {
        /// Seconds the client is asked to wait.
        retry_after: u32,
    },
    /// 500 `InternalError`.
    InternalError,
    /// 503 `ServiceUnavailable`.
    Unavailable,
    /// 504 `Timeout`.
    Timeout,
    /// 403 `Forbidden`, as authorization would say it.
    Forbidden,
    /// 409 `Conflict`, as if somebody else had been faster.
    Conflict,
    /// The request is done, and nobody hears of it: the connection breaks instead of an answer.
    AnswerLost,
    /// The request is answered, but so much later.
    Delay(Duration),
}

/// A fault for the next requests that fit.
#[derive(Debug, Clone)]
pub struct FaultRule {
    fault: Fault,
    verb: Option<Verb>,
    resource: Option<String>,
    left: u64,
}

impl FaultRule {
    /// The fault, once, for the next request of any kind to a resource.
    pub fn new(fault: Fault) -> Self {
        Self { fault, verb: None, resource: None, left: 1 }
    }

    /// Only requests with this verb.
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Only requests to this resource, by its plural name.
    pub fn resource(mut self, plural: impl Into<String>) -> Self {
        self.resource = Some(plural.into());
        self
    }

    /// The next `n` requests that fit.
    pub fn times(mut self, n: u64) -> Self {
        self.left = n;
        self
    }

    /// What happens.
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// How many requests it still meets.
    pub fn left(&self) -> u64 {
        self.left
    }

    fn fits(&self, verb: Verb, plural: &str) -> bool {
        self.left > 0
            && self.verb.is_none_or(|v| v == verb)
            && self.resource.as_deref().is_none_or(|r| r == plural)
    }
}

/// The rules in force, oldest first. The first that fits a request is used up by one.
#[derive(Debug, Default)]
pub(crate) struct FaultRules(Mutex<Vec<FaultRule>>);

impl FaultRules {
    fn lock(&self) -> MutexGuard<'_, Vec<FaultRule>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault this request meets, if any.
    pub(crate) fn draw(&self, verb: Verb, plural: &str) -> Option<Fault> {
        let mut rules = self.lock();
        let rule = rules.iter_mut().find(|rule| rule.fits(verb, plural))?;
        rule.left -= 1;
        let fault = rule.fault;
        rules.retain(|rule| rule.left > 0);
        Some(fault)
    }
}

/// The request that meets a fault.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Met<'a> {
    pub(crate) verb: Verb,
    pub(crate) resource: &'a Resource,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

impl Fault {
    /// What the client gets; `None` if the request is done after all.
    pub(crate) fn status(self, met: Met<'_>) -> Option<Status> {
        match self {
            Self::TooManyRequests { retry_after } => {
                Some(Status::too_many_requests("Too many requests, please try again later.", retry_after))
            }
            Self::InternalError => Some(Status::internal("fault injected")),
            Self::Unavailable => Some(Status::unavailable(
                "fault injected: the server is currently unable to handle the request",
            )),
            Self::Timeout => Some(Status::deadline_exceeded()),
            Self::Forbidden => {
                Some(Status::not_permitted(met.resource, met.verb.as_str(), met.namespace, met.name))
            }
            Self::Conflict => Some(Status::modified(met.resource, met.name)),
            Self::Delay(_) | Self::AnswerLost => None,
        }
    }
}

/// The switches of one server. Cloning gives another handle to the same switches.
///
/// Switches that take a resource take its plural name (`pods`); `None` means all of them.
#[derive(Debug, Clone)]
pub struct Faults {
    engine: Arc<Engine>,
}

impl Faults {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    /// Adds a rule behind those in force.
    pub fn add(&self, rule: FaultRule) {
        self.engine.faults.lock().push(rule);
    }

    /// The rules in force, oldest first.
    pub fn rules(&self) -> Vec<FaultRule> {
        self.engine.faults.lock().clone()
    }

    /// Drops all rules.
    pub fn clear(&self) {
        self.engine.faults.lock().clear();
    }

    /// Compacts the store at its newest revision: older versions can no longer be listed.
    pub async fn compact(&self) -> Result<(), StorageError> {
        let revision = self.engine.storage.current_revision().await?;
        self.engine.storage.compact(revision).await
    }

    /// Fills caches anew: what they remember of the past is gone and their watches end.
    pub async fn forget_window(&self, resource: Option<&str>) -> Result<(), StorageError> {
        for cache in self.engine.caches(resource) {
            cache.forget_window().await?;
        }
        Ok(())
    }

    /// Ends open watches, cleanly.
    pub fn cut_watches(&self, resource: Option<&str>) {
        self.engine.caches(resource).iter().for_each(|cache| cache.cut_watches());
    }

    /// Holds watch streams still, or lets them go on.
    pub fn stall_watches(&self, resource: Option<&str>, stalled: bool) {
        self.engine.caches(resource).iter().for_each(|cache| cache.stall_watches(stalled));
    }

    /// Makes caches fall behind the store, as on a replica with a slow connection to it; or lets them catch up.
    pub async fn lag(&self, resource: Option<&str>, lagging: bool) -> Result<(), StorageError> {
        for cache in self.engine.caches(resource) {
            cache.lag(lagging).await?;
        }
        Ok(())
    }

    /// Makes caches unready, as at start-up, until [`forget_window`](Self::forget_window) fills them.
    pub fn make_unready(&self, resource: Option<&str>, cause: &str) {
        self.engine.caches(resource).iter().for_each(|cache| cache.make_unready(cause));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_meets_what_it_names_and_is_used_up() {
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
