//! Log lines and metrics of a controller.

use crate::{action::Action, failure::ReconcileFailure};
use kube_informer::ObjectKey;
use metrics::{Counter, Gauge, Histogram, Label, counter, gauge, histogram};
use std::{sync::Arc, time::Duration};
use tracing::{debug, error, info, warn};

/// The metrics of one controller.
pub(crate) struct Telemetry {
    labels: Vec<Label>,
    seconds: Histogram,
    active: Gauge,
    cancelled: Counter,
}

impl Telemetry {
    pub(crate) fn new(controller: &Arc<str>) -> Self {
        let labels = vec![Label::new("controller", controller.to_string())];
        Self {
            seconds: histogram!("controller_reconcile_seconds", labels.clone()),
            active: gauge!("controller_active_reconciles", labels.clone()),
            cancelled: counter!("controller_cancelled_reconciles_total", labels.clone()),
            labels,
        }
    }

    /// A reconcile starts. The guard counts it as active, also if it is cancelled.
    pub(crate) fn started(&self) -> Active<'_> {
        self.active.increment(1.0);
        Active(&self.active)
    }

    /// A reconcile did not fail after this number of failures in a row. Without an action, its object does not exist.
    pub(crate) fn succeeded(
        &self,
        controller: &str,
        key: &ObjectKey,
        action: Option<Action>,
        failures: u32,
        took: Duration,
    ) {
        let outcome = action.map_or("absent", Action::label);
        match action.and_then(|action| action.delay()) {
            Some(next) => debug!(%controller, %key, outcome, ?took, "reconciled; next reconcile in {next:?}"),
            None => debug!(%controller, %key, outcome, ?took, "reconciled"),
        }
        if failures > 0 && action.is_some() {
            info!(%controller, %key, failures, "reconciled again after failures");
        }
        self.finished(outcome, took);
    }

    /// A reconcile failed, and is retried after this delay, if it is known.
    pub(crate) fn failed(&self, failure: &ReconcileFailure, took: Duration, delay: Option<Duration>) {
        let ReconcileFailure { controller, key, failures, cause } = failure;
        let call = cause.call();
        let next = match delay {
            Some(delay) => format!("next retry in {delay:?}"),
            None => "it will be retried".to_owned(),
        };
        if cause.is_panic() {
            error!(%controller, %key, failures, %cause, ?took, "{call} panicked; {next}");
        } else {
            warn!(%controller, %key, failures, %cause, ?took, "{call} failed; {next}");
        }
        self.finished(cause.label(), took);
    }

    fn finished(&self, result: &'static str, took: Duration) {
        let mut labels = self.labels.clone();
        labels.push(Label::from_static_parts("result", result));
        counter!("controller_reconcile_total", labels).increment(1);
        self.seconds.record(took);
    }

    /// Reconciles did not return in time when the controller was stopped.
    pub(crate) fn cancelled(&self, controller: &str, keys: &[ObjectKey], after: Duration) {
        warn!(%controller, ?keys, ?after, "reconciles did not return in time and were cancelled");
        self.cancelled.increment(keys.len() as u64);
    }

    /// Reconciles did not return in time, and cannot be cancelled.
    pub(crate) fn blocked(&self, controller: &str, keys: &[ObjectKey]) {
        let count = keys.len();
        error!(
            %controller,
            ?keys,
            "{count} reconciles do not end: they block their threads; the lease is kept until the process ends"
        );
    }
}

/// A reconcile that is in flight.
pub(crate) struct Active<'a>(&'a Gauge);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}
