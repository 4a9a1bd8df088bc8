//! Log lines and metrics of a controller.

use crate::{
    action::Action,
    failure::{FailureCause, ReconcileFailure},
};
use kube_informer::ObjectKey;
use metrics::{Counter, Gauge, Histogram, Label, counter, gauge, histogram};
use std::{sync::Arc, time::Duration};
use tracing::{error, warn};

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

    /// A reconcile did not fail. `None`: its object does not exist.
    pub(crate) fn succeeded(&self, action: Option<Action>, took: Duration) {
        self.finished(action.map_or("absent", Action::label), took);
    }

    /// A reconcile failed.
    pub(crate) fn failed(&self, failure: &ReconcileFailure, took: Duration) {
        let ReconcileFailure { controller, key, failures, cause } = failure;
        match cause {
            FailureCause::Panic(_) => {
                error!(%controller, %key, failures, %cause, "reconcile panicked; it will be retried");
            }
            _ => warn!(%controller, %key, failures, %cause, "reconcile failed; it will be retried"),
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
        warn!(%controller, ?keys, ?after, "reconciles did not return in time and are cancelled");
        self.cancelled.increment(keys.len() as u64);
    }
}

/// A reconcile that is in flight.
pub(crate) struct Active<'a>(&'a Gauge);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}
