//! Waiting for a state of an object.

pub mod conditions;

pub use conditions::Condition;

use super::watcher::{self, watch_object};
use futures_util::StreamExt;
use kube::{Api, Resource, api::DeleteParams};
use serde::de::DeserializeOwned;
use std::{fmt::Debug, pin::pin};

/// A condition could not be checked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object could not be watched.
    #[error("cannot watch the object: {0}")]
    ProbeFailed(#[source] watcher::Error),
}

/// Resolves with the object when it meets a condition; `None` if it does not exist then. Fails with the first failure of the
/// watch.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::Api;
/// use kube_informer_controller::kube_runtime::wait::{await_condition, conditions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded_apiserver::ApiServer::start().await?;
/// # let client = server.client()?;
/// # let mut config = ConfigMap::default();
/// # config.metadata.name = Some("a".to_owned());
/// let configs = Api::<ConfigMap>::default_namespaced(client);
/// # configs.create(&Default::default(), &config).await?;
/// let has_data = |config: Option<&ConfigMap>| config.is_some_and(|config| config.data.is_some());
/// let change = async {
///     let data = kube::api::Patch::Merge(serde_json::json!({"data": {"color": "red"}}));
///     configs.patch("a", &Default::default(), &data).await
/// };
/// let (changed, filled) = tokio::join!(change, await_condition(configs.clone(), "a", has_data));
/// let uid = changed?.metadata.uid.unwrap_or_default();
/// assert!(filled?.is_some());
/// configs.delete("a", &Default::default()).await?;
/// await_condition(configs, "a", conditions::is_deleted(&uid)).await?;
/// # Ok(()) }
/// ```
pub async fn await_condition<K>(
    api: Api<K>,
    name: &str,
    condition: impl Condition<K>,
) -> Result<Option<K>, Error>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut states = pin!(watch_object(api, name));
    loop {
        match states.next().await {
            Some(Ok(object)) if condition.matches_object(object.as_ref()) => return Ok(object),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(Error::ProbeFailed(error)),
            // A watcher does not end.
            None => std::future::pending().await,
        }
    }
}

/// Deletes of objects.
pub mod delete {
    use super::*;

    /// An object could not be deleted.
    #[derive(Debug, thiserror::Error)]
    pub enum Error {
        /// The response has no uid.
        #[error("the deleted object has no uid")]
        NoUid,
        /// The request failed.
        #[error("cannot delete the object: {0}")]
        Delete(#[source] kube::Error),
        /// The object could not be watched.
        #[error("cannot wait until the object is deleted: {0}")]
        Await(#[source] super::Error),
    }

    /// Deletes an object, and resolves when it does not exist any more.
    pub async fn delete_and_finalize<K>(api: Api<K>, name: &str, params: &DeleteParams) -> Result<(), Error>
    where
        K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let deleting = api.delete(name, params).await.map_err(Error::Delete)?;
        if let Some(object) = deleting.left() {
            let uid = object.meta().uid.clone().ok_or(Error::NoUid)?;
            await_condition(api, name, conditions::is_deleted(&uid)).await.map_err(Error::Await)?;
        }
        Ok(())
    }
}
