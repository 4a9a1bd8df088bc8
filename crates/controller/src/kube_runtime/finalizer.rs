//! Finalizers: work that must be done before an object disappears.

use crate::action::Action;
use futures_util::{TryFuture, TryFutureExt};
use kube::{Api, Resource, ResourceExt};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{fmt::Debug, sync::Arc};

/// The work that has to be done for an object.
#[derive(Debug)]
pub enum Event<K> {
    /// The finalizer is in place: bring the object into its desired state.
    Apply(Arc<K>),
    /// The object is being deleted: remove everything that was made for it. May happen more than once.
    Cleanup(Arc<K>),
}

/// A step of [`finalizer()`] failed.
#[derive(Debug, thiserror::Error)]
pub enum Error<E: std::error::Error + 'static> {
    /// The function failed with [`Event::Apply`].
    #[error("cannot apply the object: {0}")]
    ApplyFailed(#[source] E),
    /// The function failed with [`Event::Cleanup`]. The finalizer stays in place.
    #[error("cannot clean up the object: {0}")]
    CleanupFailed(#[source] E),
    /// The finalizer could not be added.
    #[error("cannot add the finalizer: {0}")]
    AddFinalizer(#[source] kube::Error),
    /// The finalizer could not be removed.
    #[error("cannot remove the finalizer: {0}")]
    RemoveFinalizer(#[source] kube::Error),
    /// The object has no name.
    #[error("the object has no name")]
    UnnamedObject,
    /// Not used: a name that is not valid is rejected by the server.
    #[error("the finalizer is not valid")]
    InvalidFinalizer,
}

/// Adds a finalizer to an object before its first [`Event::Apply`], and removes it after an [`Event::Cleanup`] that did not fail.
///
/// [`Controller::finalizer`](crate::Controller::finalizer) does the same, and also waits until the cache shows the finalizer.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::Api;
/// use kube_informer_controller::kube_runtime::{controller::Action, finalizer::{Event, finalizer}};
/// use std::sync::Arc;
///
/// async fn reconcile(event: Event<ConfigMap>) -> Result<Action, std::io::Error> {
///     match event {
///         Event::Apply(_) => println!("make what it needs outside the cluster"),
///         Event::Cleanup(_) => println!("remove it, if it is there"),
///     }
///     Ok(Action::await_change())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded_apiserver::ApiServer::start().await?;
/// # let client = server.client()?;
/// # let mut config = ConfigMap::default();
/// # config.metadata.name = Some("a".to_owned());
/// let configs = Api::<ConfigMap>::default_namespaced(client);
/// # let config = configs.create(&Default::default(), &config).await?;
/// finalizer(&configs, "example.com/external", Arc::new(config), reconcile).await?; // adds the finalizer
/// let config = configs.get("a").await?;
/// assert_eq!(config.metadata.finalizers.as_deref(), Some(&["example.com/external".to_owned()][..]));
/// finalizer(&configs, "example.com/external", Arc::new(config), reconcile).await?; // Apply
/// configs.delete("a", &Default::default()).await?;
/// let config = configs.get("a").await?;
/// finalizer(&configs, "example.com/external", Arc::new(config), reconcile).await?; // Cleanup, removes the finalizer
/// assert!(configs.get_opt("a").await?.is_none());
/// # Ok(()) }
/// ```
pub async fn finalizer<K, Fut>(
    api: &Api<K>,
    finalizer_name: &str,
    object: Arc<K>,
    reconcile: impl FnOnce(Event<K>) -> Fut,
) -> Result<Action, Error<Fut::Error>>
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug,
    Fut: TryFuture<Ok = Action>,
    Fut::Error: std::error::Error + 'static,
{
    let deleting = object.meta().deletion_timestamp.is_some();
    let position = object.finalizers().iter().position(|name| name == finalizer_name);
    let name = object.meta().name.clone().ok_or(Error::UnnamedObject)?;
    match (position, deleting) {
        (Some(_), false) => {
            TryFutureExt::into_future(reconcile(Event::Apply(object))).await.map_err(Error::ApplyFailed)
        }
        (Some(position), true) => {
            let uid = object.meta().uid.clone();
            let action = TryFutureExt::into_future(reconcile(Event::Cleanup(object))).await;
            let action = action.map_err(Error::CleanupFailed)?;
            let removed = patch(api, &name, uid, remove(position, finalizer_name)).await;
            removed.map_err(Error::RemoveFinalizer)?;
            Ok(action)
        }
        (None, false) => {
            let patched =
                patch(api, &name, object.meta().uid.clone(), add(object.finalizers(), finalizer_name)).await;
            patched.map_err(Error::AddFinalizer)?;
            // The new finalizer is a change, which reconciles the object again.
            Ok(Action::await_change())
        }
        (None, true) => Ok(Action::await_change()),
    }
}

/// Removes the finalizer, if it still is at this position.
fn remove(position: usize, finalizer: &str) -> Vec<Value> {
    let path = format!("/metadata/finalizers/{position}");
    vec![json!({"op": "test", "path": path, "value": finalizer}), json!({"op": "remove", "path": path})]
}

/// Adds the finalizer, unless another client has changed the list.
fn add(finalizers: &[String], finalizer: &str) -> Vec<Value> {
    let path = "/metadata/finalizers";
    if finalizers.is_empty() {
        vec![
            json!({"op": "test", "path": path, "value": null}),
            json!({"op": "add", "path": path, "value": [finalizer]}),
        ]
    } else {
        vec![
            json!({"op": "test", "path": path, "value": finalizers}),
            json!({"op": "add", "path": format!("{path}/-"), "value": finalizer}),
        ]
    }
}

/// Sends a JSON patch for the object with this uid.
async fn patch<K: Resource + Clone>(
    api: &Api<K>,
    name: &str,
    uid: Option<String>,
    mut operations: Vec<Value>,
) -> Result<(), kube::Error> {
    if let Some(uid) = uid {
        operations.insert(0, json!({"op": "test", "path": "/metadata/uid", "value": uid}));
    }
    let body = serde_json::to_vec(&operations).map_err(kube::Error::SerdeError)?;
    let request = http::Request::patch(format!("{}/{name}", api.resource_url()))
        .header(http::header::CONTENT_TYPE, "application/json-patch+json")
        .header(http::header::ACCEPT, "application/json")
        .body(body)
        .map_err(kube::Error::HttpError)?;
    api.clone().into_client().request::<Value>(request).await.map(drop)
}
