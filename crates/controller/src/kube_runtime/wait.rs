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
