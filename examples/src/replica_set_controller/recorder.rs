//! Kubernetes events, which `kubectl describe` shows.

use k8s_openapi::{
    api::core::v1::{Event, EventSource},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff::Timestamp,
};
use kube::api::{Api, PostParams};
use kube_informer::{Object, ObjectReferences};

/// Writes events. An event that cannot be written is dropped, because events are informative only.
pub(super) struct Recorder {
    client: kube::Client,
    component: &'static str,
}

impl Recorder {
    pub(super) fn new(client: kube::Client, component: &'static str) -> Self {
        Self { client, component }
    }

    /// Writes an event of type Normal.
    pub(super) async fn normal<T>(&self, about: &Object<T>, reason: &str, message: &str) {
        self.write("Normal", about, reason, message).await;
    }

    /// Writes an event of type Warning.
    pub(super) async fn warn<T>(&self, about: &Object<T>, reason: &str, message: &str) {
        self.write("Warning", about, reason, message).await;
    }

    async fn write<T>(&self, kind: &str, about: &Object<T>, reason: &str, message: &str) {
        let Ok(involved_object) = about.object_ref() else { return };
        let namespace = about.namespace().unwrap_or("default");
        let event = Event {
            metadata: ObjectMeta {
                generate_name: Some(format!("{}.", about.name())),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            involved_object,
            type_: Some(kind.to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            event_time: Some(MicroTime(Timestamp::now())),
            action: Some(reason.to_owned()),
            reporting_component: Some(self.component.to_owned()),
            reporting_instance: Some(self.component.to_owned()),
            source: Some(EventSource { component: Some(self.component.to_owned()), host: None }),
            ..Event::default()
        };
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        if let Err(error) = api.create(&PostParams::default(), &event).await {
            tracing::debug!(%error, reason, "cannot write an event");
        }
    }
}
