//! Finalizers: work that must be done before an object disappears.

use crate::{action::Action, context::Context, failure::BoxError};
use futures_util::future::BoxFuture;
use kube_informer::{DecodeError, Object};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// Releases what a controller made for an object that is being deleted.
pub(crate) type CleanUp<K> =
    Arc<dyn Fn(Object<K>, Context) -> BoxFuture<'static, Result<Action, BoxError>> + Send + Sync>;

/// A finalizer of a controller.
///
/// 1. It is in place, and the cache shows it, before the first reconcile of an object: no effect precedes it.
/// 2. It is removed after the cleanup is done, and not before. A crash between the two repeats the cleanup.
/// 3. It is not added to an object that is being deleted, which the server would reject, and which had no effects.
pub(crate) struct Finalizer<K> {
    pub(crate) name: String,
    pub(crate) clean_up: CleanUp<K>,
}

/// The next step of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    AddFinalizer,
    Reconcile,
    CleanUp,
    /// Deletion waits for others.
    Ignore,
}

fn step(deleting: bool, has_finalizer: bool) -> Step {
    match (deleting, has_finalizer) {
        (false, false) => Step::AddFinalizer,
        (false, true) => Step::Reconcile,
        (true, true) => Step::CleanUp,
        (true, false) => Step::Ignore,
    }
}

impl<K: 'static> Finalizer<K> {
    /// Does the next step for an object. `reconcile` is called only if the finalizer is in place and the object is not being
    /// deleted.
    pub(crate) async fn run(
        &self,
        object: Object<K>,
        context: Context,
        reconcile: impl AsyncFnOnce(Object<K>, Context) -> Result<Action, BoxError>,
    ) -> Result<Action, BoxError> {
        match step(object.is_deleting(), finalizers(&object)?.contains(&self.name)) {
            Step::Reconcile => reconcile(object, context).await,
            Step::Ignore => Ok(Action::done()),
            Step::AddFinalizer => {
                context.patch(&object, |object| add(object, &self.name)).await?;
                // The next run waits until the cache shows the finalizer.
                Ok(Action::requeue_after(Duration::ZERO))
            }
            Step::CleanUp => {
                let action = (self.clean_up)(object.clone(), context.clone()).await?;
                if action != Action::done() {
                    return Ok(action);
                }
                match context.patch(&object, |object| remove(object, &self.name)).await {
                    Err(error) if !error.is_not_found() => Err(error.into()),
                    _ => Ok(Action::done()),
                }
            }
        }
    }
}

/// Whether the next step of an object may be another one after an update.
pub(crate) fn is_affected<K>(old: &Object<K>, new: &Object<K>) -> bool {
    // Finalizers that cannot be decoded are an error of the reconcile, which reports it.
    let same = finalizers(old).is_ok_and(|old| finalizers(new).is_ok_and(|new| old == new));
    !same || old.is_deleting() != new.is_deleting()
}

fn finalizers<K>(object: &Object<K>) -> Result<Vec<String>, DecodeError> {
    #[derive(Deserialize)]
    struct View {
        metadata: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        finalizers: Option<Vec<String>>,
    }
    Ok(object.view::<View>()?.metadata.finalizers.unwrap_or_default())
}

fn add(object: &mut Value, name: &str) {
    let finalizers = &mut object["metadata"]["finalizers"];
    match finalizers.as_array_mut() {
        Some(finalizers) => finalizers.push(name.into()),
        None => *finalizers = json!([name]),
    }
}

fn remove(object: &mut Value, name: &str) {
    if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|finalizer| finalizer != name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finalizer_precedes_effects_and_outlives_the_cleanup() {
        assert_eq!(step(false, false), Step::AddFinalizer);
        assert_eq!(step(false, true), Step::Reconcile);
        assert_eq!(step(true, true), Step::CleanUp);
        assert_eq!(step(true, false), Step::Ignore);
    }

    #[test]
    fn other_finalizers_stay() {
        let mut object = json!({"metadata": {"finalizers": ["other"]}});
        add(&mut object, "own");
        assert_eq!(object["metadata"]["finalizers"], json!(["other", "own"]));
        remove(&mut object, "own");
        assert_eq!(object["metadata"]["finalizers"], json!(["other"]));
        let mut object = json!({"metadata": {}});
        add(&mut object, "own");
        assert_eq!(object["metadata"]["finalizers"], json!(["own"]));
    }
}
