//! A source of pods that are updated, deleted and replaced all the time.

use futures_util::{StreamExt, stream};
use kube_informer::{
    BoxFuture, Kind, Limits, ListMeta, ListOptions, ListPart, ListStream, ListWatch, ListWatchError, Object,
    Origin, WatchEvent, WatchOptions, WatchStream,
};
use kube_informer_workload::Pods;
use serde_json::Value;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The longest time between two events; the shortest is nothing.
const PAUSE_MILLIS: u64 = 1000;
/// One of this many events replaces a pod: it is deleted, and another one is added.
const REPLACED: u32 = 20;

/// Pods that change while they are watched. What it holds in memory does not grow. A clone is another handle.
#[derive(Clone)]
pub(crate) struct ChurnSource {
    shared: Arc<Shared>,
}

struct Shared {
    origin: Arc<Origin>,
    /// The JSON of each pod, with the fields that change left out.
    templates: Vec<String>,
    state: Mutex<State>,
}

struct State {
    version: u64,
    events: u64,
    pods: Vec<Pod>,
    /// A pod that was deleted, and is added by the next event.
    replaced: Option<usize>,
    rng: fastrand::Rng,
}

/// The fields that change.
#[derive(Clone, Copy)]
struct Pod {
    version: u64,
    /// How often a pod of this place was replaced.
    generation: u64,
    /// Makes the content of versions different.
    random: u64,
}

impl ChurnSource {
    pub(crate) fn new(pods: usize) -> Self {
        let origin = Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods")));
        let templates = Pods::new(1, 40).take(pods).map(template).collect();
        let mut rng = fastrand::Rng::with_seed(1);
        let pods = (0..pods).map(|i| Pod { version: 100 + i as u64, generation: 0, random: rng.u64(..) });
        let pods: Vec<Pod> = pods.collect();
        let version = 100 + pods.len() as u64;
        let state = State { version, events: 0, pods, replaced: None, rng };
        Self { shared: Arc::new(Shared { origin, templates, state: Mutex::new(state) }) }
    }

    pub(crate) fn origin(&self) -> &Arc<Origin> {
        &self.shared.origin
    }

    /// The number of events so far.
    pub(crate) fn events(&self) -> u64 {
        self.lock().events
    }

    /// The number of pods.
    pub(crate) fn pods(&self) -> usize {
        self.lock().pods.iter().filter(|pod| pod.version > 0).count()
    }

    /// Whether an object is the newest version of a pod.
    pub(crate) fn is_current(&self, object: &Object<Value>) -> bool {
        let version = object.resource_version().number();
        self.lock().pods.iter().any(|pod| Some(pod.version) == version)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn object(&self, at: usize, pod: Pod) -> Object<Value> {
        let Pod { version, generation, random } = pod;
        let hour = random % 24;
        let (minute, second) = (random / 24 % 60, random / 1440 % 60);
        let json = self.shared.templates[at]
            .replace("@version@", &version.to_string())
            .replace("@generation@", &format!("{generation:05x}"))
            .replace("@uid@", &format!("{at:08x}-1c8f-4d2a-9a53-{generation:012x}"))
            .replace("@time@", &format!("2026-01-01T{hour:02}:{minute:02}:{second:02}Z"))
            .replace("@random@", &format!("{random:016x}"));
        Object::parse(&self.shared.origin, json.into(), &Limits::default()).expect("a pod")
    }

    /// The next event.
    fn next(&self) -> WatchEvent {
        let mut state = self.lock();
        state.version += 1;
        state.events += 1;
        let version = state.version;
        let (at, is_new) = match state.replaced.take() {
            Some(at) => (at, true),
            None => {
                let count = state.pods.len();
                (state.rng.usize(..count), false)
            }
        };
        let random = state.rng.u64(..);
        let is_deleted = !is_new && state.rng.u32(..REPLACED) == 0;
        let before = state.pods[at];
        if is_deleted {
            // Its version is that of no object until the next event.
            state.pods[at] = Pod { version: 0, generation: before.generation + 1, random };
            state.replaced = Some(at);
            drop(state);
            return WatchEvent::Deleted(self.object(at, Pod { version, ..before }));
        }
        let pod = Pod { version, random, ..before };
        state.pods[at] = pod;
        drop(state);
        let object = self.object(at, pod);
        if is_new { WatchEvent::Added(object) } else { WatchEvent::Modified(object) }
    }
}

/// The JSON of a pod with placeholders for the fields that change.
fn template(mut pod: Value) -> String {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let metadata = &mut pod["metadata"];
    metadata["name"] = format!("{name}-@generation@").into();
    metadata["uid"] = "@uid@".into();
    metadata["resourceVersion"] = "@version@".into();
    pod["status"]["podIP"] = "@random@".into();
    for condition in pod["status"]["conditions"].as_array_mut().into_iter().flatten() {
        condition["lastTransitionTime"] = "@time@".into();
    }
    pod.to_string()
}

impl ListWatch for ChurnSource {
    fn list(&self, _: ListOptions) -> BoxFuture<'_, Result<ListStream, ListWatchError>> {
        let state = self.lock();
        let (version, pods) = (state.version, state.pods.clone());
        drop(state);
        let meta = ListMeta { resource_version: Some(version.into()), ..ListMeta::default() };
        let pods = pods.into_iter().enumerate().filter(|(_, pod)| pod.version > 0);
        let items: Vec<_> = pods.map(|(at, pod)| ListPart::Item(self.object(at, pod))).collect();
        let parts = std::iter::once(ListPart::Meta(meta)).chain(items).map(Ok);
        Box::pin(async move { Ok(stream::iter(parts).boxed()) })
    }

    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream, ListWatchError>> {
        let source = self.clone();
        let end = tokio::time::Instant::now() + options.timeout.unwrap_or(Duration::from_secs(300));
        let events = stream::unfold(source, move |source| async move {
            let pause = source.lock().rng.u64(..PAUSE_MILLIS);
            tokio::time::sleep(Duration::from_millis(pause)).await;
            if tokio::time::Instant::now() >= end {
                return None;
            }
            let event = source.next();
            Some((Ok(event), source))
        });
        Box::pin(async move { Ok(events.boxed()) })
    }
}
