//! Kubernetes events (`events.k8s.io/v1`) about objects, which `kubectl describe` shows.
//!
//! 1. Recording an event never waits and never fails: events are informative. One that cannot be queued or written is counted in
//!    `controller_dropped_events_total`.
//! 2. Events about the same object with the same type and reason are one event with a series: the first and the second are written
//!    at once, later ones are counted, and written every 30 minutes and 6 minutes after the last of them, as client-go does. The note
//!    is that of the first: it is immutable in the API.
//! 3. New events about one object are limited to a burst of 25, then one every 5 minutes.

mod series;

use crate::{clock::WallClock, failure::chain, leadership::LeaseGate, time};
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use kube_informer::{Object, ObjectReferences};
use metrics::{Counter, counter};
use serde_json::json;
use series::EventWrite;
pub(crate) use series::{Occurrence, Series};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex, mpsc},
    time::Instant,
};

/// Number of events that may be queued; further ones are dropped.
const QUEUE: usize = 1000;
/// Period in which series are checked.
const CHECK: Duration = Duration::from_secs(60);
/// How long queued events are written after the controller has stopped.
const FLUSH: Duration = Duration::from_secs(2);

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventType {
    /// For information only.
    Normal,
    /// Something may have gone wrong.
    Warning,
}

impl EventType {
    /// The field `type` of events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Records events.
pub(crate) struct Recorder {
    sender: mpsc::Sender<Occurrence>,
    dropped: Counter,
    /// Locked by the task that writes events, for as long as the controller runs.
    writer: Mutex<Writer>,
}

struct Writer {
    receiver: mpsc::Receiver<Occurrence>,
    series: Series,
}

impl Recorder {
    /// A recorder that reports events as `controller` and `instance`.
    pub(crate) fn new(controller: &Arc<str>, clock: WallClock) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let dropped = counter!("controller_dropped_events_total", "controller" => controller.to_string());
        let series = Series::new(Arc::clone(controller), None, clock);
        Self { sender, dropped, writer: Mutex::new(Writer { receiver, series }) }
    }

    /// Queues an event about an object.
    pub(crate) fn record<T>(&self, about: &Object<T>, event_type: EventType, reason: &str, note: &str) {
        let queued = about.object_ref().ok().and_then(|regarding| {
            let occurrence = Occurrence::new(regarding, event_type, reason, note);
            self.sender.try_send(occurrence).ok()
        });
        if queued.is_none() {
            self.dropped.increment(1);
        }
    }

    /// Writes events until `stop` resolves, then those that are queued, for a short time.
    pub(crate) async fn run(
        &self,
        client: &kube::Client,
        gate: &LeaseGate,
        write_timeout: Duration,
        stop: impl Future<Output = ()>,
    ) {
        let mut writer = self.writer.lock().await;
        let sender = EventSender { client, gate, write_timeout, dropped: &self.dropped };
        let mut check = std::pin::pin!(time::sleep(CHECK));
        let mut stop = std::pin::pin!(stop);
        loop {
            let Writer { receiver, series } = &mut *writer;
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(occurrence) = receiver.recv() => sender.observe(series, occurrence).await,
                () = &mut check => {
                    for write in series.due(Instant::now()) {
                        sender.send(series, write).await;
                    }
                    check.set(time::sleep(CHECK));
                }
            }
        }
        let Writer { receiver, series } = &mut *writer;
        let flush = async {
            while let Ok(occurrence) = receiver.try_recv() {
                sender.observe(series, occurrence).await;
            }
        };
        // Best effort.
        let _ = time::timeout(FLUSH, flush).await;
    }
}

pub(crate) struct EventSender<'a> {
    client: &'a kube::Client,
    gate: &'a LeaseGate,
    write_timeout: Duration,
    dropped: &'a Counter,
}

impl EventSender<'_> {
    async fn observe(&self, series: &mut Series, occurrence: Occurrence) {
        match series.observe(occurrence, Instant::now()) {
            Ok(Some(write)) => self.send(series, write).await,
            Ok(None) => {}
            Err(_limited) => self.dropped.increment(1),
        }
    }

    /// Sends a write. After a failure the series starts again with the next event.
    async fn send(&self, series: &mut Series, write: EventWrite) {
        let (id, name) = (write.id().clone(), write.name().to_owned());
        let sent = match self.gate.check(self.write_timeout) {
            Ok(()) => time::timeout(self.write_timeout, Self::request(self.client, write)).await,
            Err(_not_leading) => Err(time::Elapsed),
        };
        let why = match sent {
            Ok(Ok(())) => return,
            Ok(Err(error)) => chain(&error),
            Err(time::Elapsed) => "not sent, or no response".to_owned(),
        };
        tracing::debug!(event = name, why, "cannot write an event");
        self.dropped.increment(1);
        series.forget(&id);
    }

    pub(crate) async fn request(client: &kube::Client, write: EventWrite) -> Result<(), kube::Error> {
        match write {
            EventWrite::Create { event, .. } => {
                let namespace = event.metadata.namespace.clone().unwrap_or_default();
                let api: Api<Event> = Api::namespaced(client.clone(), &namespace);
                api.create(&PostParams::default(), &event).await.map(drop)
            }
            EventWrite::Count { namespace, name, count, last, .. } => {
                let api: Api<Event> = Api::namespaced(client.clone(), &namespace);
                let series = json!({"series": {"count": count, "lastObservedTime": MicroTime(last)}});
                api.patch(&name, &PatchParams::default(), &Patch::Merge(series)).await.map(drop)
            }
        }
    }
}

/// The namespace of events about an object: its own, or `default` for cluster-scoped ones.
fn namespace(regarding: &ObjectReference) -> String {
    let own = regarding.namespace.clone().filter(|namespace| !namespace.is_empty());
    own.unwrap_or_else(|| "default".to_owned())
}
