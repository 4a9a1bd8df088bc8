//! Counters of `/metrics`, under the names that kube-apiserver uses.
//!
//! The number of series is bounded: verbs, codes and scopes are closed sets, and only resources that are served are counted.

use std::sync::Arc;

use http::{Method, StatusCode};
use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};
use tokio::time::Instant;

use crate::http::ResourcePath;
use crate::registry::{Resource, Subresource};
use crate::verb::Verb;

/// Upper bounds of the duration histogram, as in kube-apiserver.
const BUCKETS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];

/// Counters of one server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    durations: HistogramVec,
    watch_events: IntCounterVec,
    reading: IntGauge,
    mutating: IntGauge,
}

/// The labels of a request, without its code.
#[derive(Debug, Clone, Copy)]
struct Labels<'a> {
    group: &'a str,
    version: &'a str,
    resource: &'a str,
    subresource: &'a str,
    verb: &'static str,
    scope: &'static str,
}

impl Labels<'_> {
    const NAMES: [&'static str; 7] =
        ["component", "group", "resource", "scope", "subresource", "verb", "version"];
    const NAMES_WITH_CODE: [&'static str; 8] =
        ["component", "group", "resource", "scope", "subresource", "verb", "version", "code"];
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = Registry::new();
        let requests = Opts::new("apiserver_request_total", "Requests by verb, resource, scope and code.");
        let durations = HistogramOpts::new(
            "apiserver_request_duration_seconds",
            "Response latency in seconds, without watches.",
        );
        let in_flight = Opts::new(
            "apiserver_current_inflight_requests",
            "Requests that are being executed, without watches.",
        );
        let sent = Opts::new("apiserver_watch_events_total", "Frames sent to watches.");
        let requests = IntCounterVec::new(requests, &Labels::NAMES_WITH_CODE);
        let durations = HistogramVec::new(durations.buckets(BUCKETS.to_vec()), &Labels::NAMES);
        let in_flight = register(&registry, IntGaugeVec::new(in_flight, &["request_kind"]));
        Self {
            requests: register(&registry, requests),
            durations: register(&registry, durations),
            watch_events: register(&registry, IntCounterVec::new(sent, &["group", "kind", "version"])),
            reading: in_flight.with_label_values(&["readOnly"]),
            mutating: in_flight.with_label_values(&["mutating"]),
            registry,
        }
    }
}

/// Adds a metric to a registry. Metrics are constants of this crate, so a failure is a mistake in their names.
pub(crate) fn register<M: Collector + Clone + 'static>(
    registry: &Registry,
    metric: Result<M, prometheus::Error>,
) -> M {
    let metric = metric.expect("a valid metric");
    registry.register(Box::new(metric.clone())).expect("a name that is not taken");
    metric
}

impl Metrics {
    /// The counter of frames sent to watches of a kind.
    pub(crate) fn watch_events(&self, resource: &Resource) -> IntCounter {
        self.watch_events.with_label_values(&[
            resource.group.as_str(),
            &resource.kind,
            resource.version.as_str(),
        ])
    }

    /// Everything counted here.
    pub(crate) fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }

    fn count(&self, labels: Labels<'_>, code: StatusCode, seconds: Option<f64>) {
        let Labels { group, version, resource, subresource, verb, scope } = labels;
        let values = ["apiserver", group, resource, scope, subresource, verb, version, code.as_str()];
        self.requests.with_label_values(&values).inc();
        if let Some(seconds) = seconds {
            self.durations.with_label_values(&values[..Labels::NAMES.len()]).observe(seconds);
        }
    }
}

/// One request: in flight until it is dropped, counted when it is finished.
pub(crate) struct Record<'m> {
    metrics: &'m Metrics,
    started: Instant,
    in_flight: &'m IntGauge,
    /// The method, for requests to other paths than those of resources.
    method: &'static str,
    target: Option<Target>,
}

/// The target of a request to a resource.
struct Target {
    verb: Verb,
    resource: Arc<Resource>,
    subresource: Option<Subresource>,
    scope: &'static str,
}

impl<'m> Record<'m> {
    pub(crate) fn new(metrics: &'m Metrics, method: &Method) -> Self {
        let (method, reads) = match method.as_str() {
            "GET" => ("GET", true),
            "HEAD" => ("HEAD", true),
            "POST" => ("POST", false),
            "PUT" => ("PUT", false),
            "PATCH" => ("PATCH", false),
            "DELETE" => ("DELETE", false),
            _ => ("OTHER", false),
        };
        let in_flight = if reads { &metrics.reading } else { &metrics.mutating };
        in_flight.inc();
        Self { metrics, started: Instant::now(), in_flight, method, target: None }
    }

    /// Notes the resource that the request is for. It must be one that is served.
    pub(crate) fn target(
        &mut self,
        verb: Verb,
        resource: &Arc<Resource>,
        path: &ResourcePath,
        subresource: Option<Subresource>,
    ) {
        let scope = match (&path.name, &path.namespace) {
            (Some(_), _) => "resource",
            (None, _) if verb == Verb::Create => "resource",
            (None, Some(_)) => "namespace",
            (None, None) => "cluster",
        };
        self.target = Some(Target { verb, resource: Arc::clone(resource), subresource, scope });
    }

    pub(crate) fn finish(self, code: StatusCode) {
        let watch = self.target.as_ref().is_some_and(|target| target.verb == Verb::Watch);
        let seconds = (!watch).then(|| self.started.elapsed().as_secs_f64());
        let other =
            Labels { group: "", version: "", resource: "", subresource: "", verb: self.method, scope: "" };
        self.metrics.count(self.target.as_ref().map_or(other, Target::labels), code, seconds);
    }
}

impl Target {
    fn labels(&self) -> Labels<'_> {
        Labels {
            group: self.resource.group.as_str(),
            version: self.resource.version.as_str(),
            resource: &self.resource.plural,
            subresource: self.subresource.map_or("", Subresource::name),
            verb: label(self.verb),
            scope: self.scope,
        }
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        self.in_flight.dec();
    }
}

fn label(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Watch => "WATCH",
        Verb::Create => "POST",
        Verb::Update => "PUT",
        Verb::Patch => "PATCH",
        Verb::Delete => "DELETE",
        Verb::DeleteCollection => "DELETECOLLECTION",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_code_and_time() {
        let metrics = Metrics::default();
        let pods = Labels {
            group: "",
            version: "v1",
            resource: "pods",
            subresource: "",
            verb: "LIST",
            scope: "cluster",
        };
        metrics.count(pods, StatusCode::OK, Some(0.02));
        metrics.count(pods, StatusCode::OK, Some(100.0));
        metrics.count(pods, StatusCode::GONE, None);
        let text = prometheus::TextEncoder::new().encode_to_string(&metrics.gather()).unwrap();
        let labels = "component=\"apiserver\",group=\"\",resource=\"pods\",scope=\"cluster\",subresource=\"\",verb=\"LIST\",version=\"v1\"";
        for line in [
            "# HELP apiserver_request_total Requests by verb, resource, scope and code.".to_owned(),
            "# TYPE apiserver_request_total counter".to_owned(),
            "# TYPE apiserver_request_duration_seconds histogram".to_owned(),
            "# TYPE apiserver_current_inflight_requests gauge".to_owned(),
            format!("apiserver_request_total{{code=\"200\",{labels}}} 2"),
            format!("apiserver_request_total{{code=\"410\",{labels}}} 1"),
            format!("apiserver_request_duration_seconds_bucket{{{labels},le=\"0.005\"}} 0"),
            format!("apiserver_request_duration_seconds_bucket{{{labels},le=\"60\"}} 1"),
            format!("apiserver_request_duration_seconds_bucket{{{labels},le=\"+Inf\"}} 2"),
            format!("apiserver_request_duration_seconds_count{{{labels}}} 2"),
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_request_is_in_flight_until_it_is_finished() {
        let metrics = Metrics::default();
        let one = Record::new(&metrics, &Method::PATCH);
        let _other = Record::new(&metrics, &Method::from_bytes(b"BREW").unwrap());
        assert_eq!(metrics.mutating.get(), 2);
        one.finish(StatusCode::OK);
        assert_eq!(metrics.mutating.get(), 1);
        assert_eq!(metrics.requests.collect()[0].get_metric().len(), 1);
    }
}
