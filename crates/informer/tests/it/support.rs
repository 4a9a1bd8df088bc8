//! What the tests share.

use kube_informer::{
    Deleted, EventHandler, InformerBuilder, InformerError, Kind, Limits, Object, SharedInformer,
    testing::FakeSource,
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

pub(crate) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub(crate) fn source() -> FakeSource {
    FakeSource::new(Kind::namespaced("", "v1", "ConfigMap", "configmaps"))
}

/// An object in namespace `ns` with some content.
pub(crate) fn object(name: &str, value: u64) -> Value {
    json!({"metadata": {"namespace": "ns", "name": name}, "data": {"value": value.to_string()}})
}

/// Writes down every call: `+a@101!` for an initial add, `~a@101>102`, `-a@103`, `-a@103?` when unsure.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    pub(crate) fn calls(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn note(&self, call: String) {
        self.0.lock().unwrap().push(call);
    }
}

impl<T: 'static> EventHandler<T> for Recorder {
    fn on_add(&mut self, object: &Object<T>, initial: bool) {
        let mark = if initial { "!" } else { "" };
        self.note(format!("+{}@{}{mark}", object.name(), object.resource_version()));
    }

    fn on_update(&mut self, old: &Object<T>, new: &Object<T>) {
        self.note(format!("~{}@{}>{}", new.name(), old.resource_version(), new.resource_version()));
    }

    fn on_delete(&mut self, deleted: &Deleted<T>) {
        let mark = if deleted.is_final_state_unknown() { "?" } else { "" };
        self.note(format!("-{}@{}{mark}", deleted.key().name(), deleted.object().resource_version()));
    }
}

/// Lets every task that can run do so, without moving the clock.
pub(crate) async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// Starts an informer and waits until it is synced and quiet.
pub(crate) async fn started(informer: &SharedInformer<Value>) {
    informer.start();
    informer.synced(secs(60)).await.unwrap();
    settle().await;
}

/// Collects the calls of the error hook.
#[derive(Clone, Default)]
pub(crate) struct Errors(Arc<Mutex<Vec<InformerError>>>);

impl Errors {
    pub(crate) fn hook(&self, builder: InformerBuilder) -> InformerBuilder {
        let errors = self.clone();
        builder.on_error(move |error| errors.0.lock().unwrap().push(error.clone()))
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap()).iter().map(ToString::to_string).collect()
    }
}

/// An informer with a recorder, started, and what came first forgotten.
pub(crate) async fn watched(
    source: &FakeSource,
    configure: impl FnOnce(InformerBuilder) -> InformerBuilder,
) -> (SharedInformer<Value>, Recorder) {
    let informer = source.informer::<Value>(configure);
    let recorder = Recorder::default();
    informer.add_handler(recorder.clone());
    started(&informer).await;
    recorder.take();
    (informer, recorder)
}

/// Lets time pass, with everything that happens in it.
pub(crate) async fn pass(seconds: u64) {
    tokio::time::sleep(secs(seconds)).await;
    settle().await;
}

/// The objects that the lister shows: `a@101`.
pub(crate) fn cached(informer: &SharedInformer<Value>) -> Vec<String> {
    informer
        .lister()
        .list()
        .iter()
        .map(|object| format!("{}@{}", object.name(), object.resource_version()))
        .collect()
}

/// An object as it travels.
pub(crate) fn encoded(source: &FakeSource, object: &Value) -> Object<Value> {
    Object::parse(source.origin(), object.to_string().into(), &Limits::default()).unwrap()
}

/// An object with a uid and a version of its own.
pub(crate) fn versioned(name: &str, uid: &str, version: u64) -> Value {
    json!({"metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": version.to_string()}})
}
