//! Informers of the objects of an `Api`.

use crate::{
    failure::BoxError,
    kube_runtime::watcher::{self, InitialListStrategy},
};
use k8s_openapi::ClusterResourceScope;
use kube::{Api, Resource, core::Status};
use kube_informer::{
    FieldSelector, InformerBuilder, InformerError, Kind, KubeSource, LabelSelector, ListWatch,
    ListWatchError, Origin, Scope, SharedInformer, Transform,
};
use std::{any::TypeId, sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// Number of failures that may be queued; further ones are only logged.
const QUEUE: usize = 64;

/// Failures of informers.
pub(super) struct Errors {
    sender: mpsc::Sender<watcher::Error>,
    pub(super) receiver: mpsc::Receiver<watcher::Error>,
}

impl Default for Errors {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        Self { sender, receiver }
    }
}

/// The kind of a type. A type that is known at run time only is presumed to be namespaced.
pub(super) fn kind<K: Resource>(dyntype: &K::DynamicType) -> Kind
where
    K::Scope: 'static,
{
    Kind {
        group: K::group(dyntype).into_owned(),
        version: K::version(dyntype).into_owned(),
        kind: K::kind(dyntype).into_owned(),
        plural: K::plural(dyntype).into_owned(),
        namespaced: TypeId::of::<K::Scope>() != TypeId::of::<ClusterResourceScope>(),
    }
}

/// The objects that an informer covers.
#[derive(Default)]
struct Selection {
    scope: Scope,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    fn new<K: Resource>(api: &Api<K>, config: &watcher::Config) -> Result<Self, BoxError> {
        let scope = api.namespace().map(Scope::namespace).transpose()?.unwrap_or_default();
        let labels = config.label_selector.as_deref().unwrap_or_default().parse()?;
        let fields = config.field_selector.as_deref().unwrap_or_default().parse()?;
        Ok(Self { scope, labels, fields })
    }
}

/// An informer of the objects of an `Api`. If no server could accept the selectors, that is reported, and the cache stays empty.
pub(super) fn build<K, T: 'static>(
    api: Api<K>,
    config: watcher::Config,
    dyntype: &K::DynamicType,
    metadata_only: bool,
    errors: &Errors,
) -> SharedInformer<T>
where
    K: Resource,
    K::Scope: 'static,
{
    let sender = errors.sender.clone();
    let Selection { scope, labels, fields } = Selection::new(&api, &config).unwrap_or_else(|error| {
        // Full only if the selectors of dozens of informers are invalid.
        let _ = sender.try_send(watcher::Error::InitialListFailed(kube::Error::Service(error)));
        Selection { scope: Scope::none(), ..Selection::default() }
    });
    let origin = Arc::new(Origin::new(kind::<K>(dyntype)));
    let mut builder = InformerBuilder::new(Arc::clone(&origin))
        .scope(scope)
        .label_selector(labels.clone())
        .field_selector(fields.clone())
        .on_error(move |error| {
            if let Some(error) = reported(error) {
                // A consumer that is slow finds the rest in the log.
                let _ = sender.try_send(error);
            }
        });
    if config.initial_list_strategy == InitialListStrategy::StreamingList {
        builder = builder.streaming_list(true);
    }
    if let Some(objects) = config.page_size {
        builder = builder.page_size(objects);
    }
    if let Some(seconds) = config.timeout {
        builder = builder.min_watch_timeout(Duration::from_secs(seconds.into()));
    }
    if metadata_only {
        builder = builder.transform(Transform::drop_managed_fields());
    }
    let client = api.into_client();
    builder.build(|namespace| {
        let source = KubeSource::new(client.clone(), Arc::clone(&origin), namespace);
        let source = source.labels(&labels).fields(&fields);
        let source = if metadata_only { source.metadata_only() } else { source };
        Arc::new(source) as Arc<dyn ListWatch>
    })
}

/// A failure of an informer as a watcher reports it; `None` for those that a watcher does not have.
fn reported(error: &InformerError) -> Option<watcher::Error> {
    match error {
        InformerError::List(error) => Some(watcher::Error::InitialListFailed(client_error(error))),
        InformerError::Watch(error) => Some(watcher::Error::WatchFailed(client_error(error))),
        _ => None,
    }
}

fn client_error(error: &ListWatchError) -> kube::Error {
    match error {
        ListWatchError::Api { status, .. } => {
            let (code, message, reason) = (status.code, status.message.clone(), status.reason.clone());
            kube::Error::Api(Box::new(Status { code, message, reason, ..Status::default() }))
        }
        other => kube::Error::Service(Box::new(other.clone())),
    }
}
