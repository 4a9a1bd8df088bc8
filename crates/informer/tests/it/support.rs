//! What the tests share.

use kube_informer::{Deleted, EventHandler, Kind, Object, SharedInformer, testing::FakeSource};
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
