//! Metrics in the text format of Prometheus.

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::{fmt, sync::Arc};

/// A recorder of metrics for the whole process.
///
/// Informers, queues and controllers report to the recorder that was installed when they were made: install it first.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

/// Another recorder is installed already. Pass its output to [`Manager::metrics_with`](crate::Manager::metrics_with).
#[derive(Debug, thiserror::Error)]
#[error("cannot install a recorder of metrics: {0}")]
pub struct InstallError(#[source] metrics_exporter_prometheus::BuildError);

impl Metrics {
    /// Installs a recorder for this process.
    pub fn install() -> Result<Self, InstallError> {
        PrometheusBuilder::new().install_recorder().map(Self).map_err(InstallError)
    }

    /// The metrics as text.
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Bounds the memory of histograms between two readings.
    fn run_upkeep(&self) {
        self.0.run_upkeep();
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// The text that `/metrics` returns.
#[derive(Clone)]
pub(super) struct Render {
    text: Arc<dyn Fn() -> String + Send + Sync>,
    metrics: Option<Metrics>,
}

impl Render {
    pub(super) fn prometheus(metrics: Metrics) -> Self {
        let own = metrics.clone();
        Self { text: Arc::new(move || own.render()), metrics: Some(metrics) }
    }

    pub(super) fn custom(text: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { text: Arc::new(text), metrics: None }
    }

    pub(super) fn text(&self) -> String {
        (self.text)()
    }

    pub(super) fn run_upkeep(&self) {
        if let Some(metrics) = &self.metrics {
            metrics.run_upkeep();
        }
    }
}
