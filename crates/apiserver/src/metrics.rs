//! What `/metrics` counts, under the names that users of kube-apiserver know.
//!
//! Labels are bounded: verbs, codes and scopes are closed sets, and resources are counted only if they are served.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::{Equivalent, HashMap};
use http::{Method, StatusCode};
use tokio::time::Instant;

use crate::http::ResourcePath;
use crate::registry::{Resource, Subresource};
use crate::verb::Verb;

/// Upper bounds of the duration histogram, as in the original.
const BUCKETS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];

/// Counters of one server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Locked for one count at a time.
    requests: Mutex<HashMap<Series, Counts>>,
    watch_events: Mutex<BTreeMap<[String; 3], Arc<AtomicU64>>>,
    reading: AtomicI64,
    mutating: AtomicI64,
}

/// The labels of a request, without its code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    group: String,
    version: String,
    resource: String,
    subresource: String,
    verb: &'static str,
    scope: &'static str,
}

/// The same, borrowed: a request that was counted before costs no allocation.
#[derive(Debug, Clone, Copy)]
struct Labels<'a> {
    group: &'a str,
    version: &'a str,
    resource: &'a str,
    subresource: &'a str,
    verb: &'static str,
    scope: &'static str,
}

#[derive(Debug, Clone, Default)]
struct Counts {
    by_code: Vec<(u16, u64)>,
    buckets: [u64; BUCKETS.len()],
    seconds: f64,
    timed: u64,
}

impl Series {
    fn labels(&self) -> Labels<'_> {
        Labels {
            group: &self.group,
            version: &self.version,
            resource: &self.resource,
            subresource: &self.subresource,
            verb: self.verb,
            scope: self.scope,
        }
    }
}

impl Hash for Series {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.labels().hash(state);
    }
}

impl Hash for Labels<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.resource, self.verb, self.group, self.version, self.subresource, self.scope).hash(state);
    }
}

impl Equivalent<Series> for Labels<'_> {
    fn equivalent(&self, series: &Series) -> bool {
        self.resource == series.resource
            && self.verb == series.verb
            && self.group == series.group
            && self.version == series.version
            && self.subresource == series.subresource
            && self.scope == series.scope
    }
}

impl Labels<'_> {
    fn to_series(self) -> Series {
        Series {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            resource: self.resource.to_owned(),
            subresource: self.subresource.to_owned(),
            verb: self.verb,
            scope: self.scope,
        }
    }
}

impl Metrics {
    /// The counter of frames sent to watches of a kind.
    pub(crate) fn watch_events(&self, group: &str, version: &str, kind: &str) -> Arc<AtomicU64> {
        let key = [group, version, kind].map(str::to_owned);
        Arc::clone(lock(&self.watch_events).entry(key).or_default())
    }

    fn count(&self, labels: Labels<'_>, code: StatusCode, seconds: Option<f64>) {
        let mut requests = lock(&self.requests);
        let counts = match requests.get_mut(&labels) {
            Some(counts) => counts,
            None => requests.entry(labels.to_series()).or_default(),
        };
        counts.add(code.as_u16(), seconds);
    }

    /// Everything counted here, in the text format.
    pub(crate) fn write(&self, out: &mut String) {
        let mut requests: Vec<(Series, Counts)> =
            lock(&self.requests).iter().map(|(series, counts)| (series.clone(), counts.clone())).collect();
        requests.sort_by(|(a, _), (b, _)| a.cmp(b));
        head(out, "apiserver_request_total", "counter", "Requests by verb, resource, scope and code.");
        for (series, counts) in &requests {
            for (code, count) in &counts.by_code {
                let _ = writeln!(out, "apiserver_request_total{{{},code=\"{code}\"}} {count}", series.text());
            }
        }
        head(out, "apiserver_request_duration_seconds", "histogram", "Time to answer, watches left out.");
        for (series, counts) in requests.iter().filter(|(_, counts)| counts.timed > 0) {
            counts.write_durations(&series.text(), out);
        }
        head(
            out,
            "apiserver_current_inflight_requests",
            "gauge",
            "Requests being answered, watches left out.",
        );
        for (kind, gauge) in [("mutating", &self.mutating), ("readOnly", &self.reading)] {
            let now = gauge.load(Ordering::Relaxed);
            let _ = writeln!(out, "apiserver_current_inflight_requests{{request_kind=\"{kind}\"}} {now}");
        }
        head(out, "apiserver_watch_events_total", "counter", "Frames sent to watches.");
        for ([group, version, kind], sent) in lock(&self.watch_events).iter() {
            let labels = format!("group=\"{group}\",kind=\"{kind}\",version=\"{version}\"");
            let _ =
                writeln!(out, "apiserver_watch_events_total{{{labels}}} {}", sent.load(Ordering::Relaxed));
        }
    }
}

impl Series {
    fn text(&self) -> String {
        let Self { group, version, resource, subresource, verb, scope } = self;
        format!(
            "component=\"apiserver\",group=\"{group}\",resource=\"{resource}\",scope=\"{scope}\",subresource=\"{subresource}\",\
             verb=\"{verb}\",version=\"{version}\""
        )
    }
}

impl Counts {
    fn add(&mut self, code: u16, seconds: Option<f64>) {
        match self.by_code.iter_mut().find(|(known, _)| *known == code) {
            Some((_, count)) => *count += 1,
            None => {
                self.by_code.push((code, 1));
                self.by_code.sort_unstable();
            }
        }
        if let Some(seconds) = seconds {
            if let Some(bucket) = BUCKETS.iter().position(|bound| seconds <= *bound) {
                self.buckets[bucket] += 1;
            }
            self.seconds += seconds;
            self.timed += 1;
        }
    }

    fn write_durations(&self, labels: &str, out: &mut String) {
        const NAME: &str = "apiserver_request_duration_seconds";
        let mut below = 0;
        for (bound, count) in BUCKETS.iter().zip(self.buckets) {
            below += count;
            let _ = writeln!(out, "{NAME}_bucket{{{labels},le=\"{bound}\"}} {below}");
        }
        let _ = writeln!(out, "{NAME}_bucket{{{labels},le=\"+Inf\"}} {}", self.timed);
        let _ = writeln!(out, "{NAME}_sum{{{labels}}} {}", self.seconds);
        let _ = writeln!(out, "{NAME}_count{{{labels}}} {}", self.timed);
    }
}

/// The two comment lines before a metric.
pub(crate) fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One request on its way: under way while it lives, counted when it is finished.
pub(crate) struct Record<'m> {
    metrics: &'m Metrics,
    started: Instant,
    in_flight: &'m AtomicI64,
    /// The method, for what is not about a resource.
    method: &'static str,
    about: Option<About>,
}

/// What a request to a resource is about.
struct About {
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
        in_flight.fetch_add(1, Ordering::Relaxed);
        Self { metrics, started: Instant::now(), in_flight, method, about: None }
    }

    /// The request is about a resource that is served, with this verb.
    pub(crate) fn about(
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
        self.about = Some(About { verb, resource: Arc::clone(resource), subresource, scope });
    }

    pub(crate) fn finish(self, code: StatusCode) {
        let watch = self.about.as_ref().is_some_and(|about| about.verb == Verb::Watch);
        let seconds = (!watch).then(|| self.started.elapsed().as_secs_f64());
        let other =
            Labels { group: "", version: "", resource: "", subresource: "", verb: self.method, scope: "" };
        self.metrics.count(self.about.as_ref().map_or(other, About::labels), code, seconds);
    }
}

impl About {
    fn labels(&self) -> Labels<'_> {
        Labels {
            group: &self.resource.group,
            version: &self.resource.version,
            resource: &self.resource.plural,
            subresource: self.subresource.map_or("", Subresource::name),
            verb: label(self.verb),
            scope: self.scope,
        }
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
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
        let mut text = String::new();
        metrics.write(&mut text);
        let labels = "component=\"apiserver\",group=\"\",resource=\"pods\",scope=\"cluster\",subresource=\"\",verb=\"LIST\",version=\"v1\"";
        for line in [
            format!("apiserver_request_total{{{labels},code=\"200\"}} 2"),
            format!("apiserver_request_total{{{labels},code=\"410\"}} 1"),
            format!("apiserver_request_duration_seconds_bucket{{{labels},le=\"0.005\"}} 0"),
            format!("apiserver_request_duration_seconds_bucket{{{labels},le=\"60\"}} 1"),
            format!("apiserver_request_duration_seconds_bucket{{{labels},le=\"+Inf\"}} 2"),
            format!("apiserver_request_duration_seconds_count{{{labels}}} 2"),
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_request_is_under_way_until_it_is_finished() {
        let metrics = Metrics::default();
        let one = Record::new(&metrics, &Method::PATCH);
        let _other = Record::new(&metrics, &Method::from_bytes(b"BREW").unwrap());
        assert_eq!(metrics.mutating.load(Ordering::Relaxed), 2);
        one.finish(StatusCode::OK);
        assert_eq!(metrics.mutating.load(Ordering::Relaxed), 1);
        assert_eq!(lock(&metrics.requests).len(), 1);
    }
}
