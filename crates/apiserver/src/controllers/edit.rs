//! Writes that several controllers make.

use crate::registry::Object;
use crate::storage::{StorageError, Update, UpdateError, guaranteed_update};
use crate::verbs::WriteContext;
use crate::verbs::delete::{DeleteOptions, remove};
use crate::verbs::error::VerbError;
use crate::verbs::update::is_finished;

/// Deletes the object of a key. An object that is gone or has changed meanwhile is left alone: its change queues the key again.
pub(super) async fn delete(
    context: &WriteContext,
    key: &str,
    options: &DeleteOptions,
) -> Result<(), VerbError> {
    let Some((resource, namespace, name)) = context.resources.snapshot().locate(key) else { return Ok(()) };
    match remove(context, &resource, namespace, name, options).await {
        Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
        _ => Ok(()),
    }
}

/// Changes an object, if it still has this uid, and removes it if nothing holds its deletion any more.
pub(super) async fn edit(
    context: &WriteContext,
    key: &str,
    uid: Option<&str>,
    change: impl Fn(&mut Object),
) -> Result<(), VerbError> {
    let Some((resource, _, name)) = context.resources.snapshot().locate(key) else { return Ok(()) };
    let edited = guaranteed_update(&*context.storage, key, None, |stored| {
        let mut object = resource.decode(stored)?;
        if uid.is_some() && uid != object.uid() {
            return Ok(Update::Unchanged);
        }
        change(&mut object);
        let finished = is_finished(&resource, &object);
        Ok(if finished { Update::Delete } else { Update::Write(resource.encode(&object)?) })
    })
    .await;
    match edited {
        Ok(_) | Err(UpdateError::Storage(StorageError::NotFound)) => Ok(()),
        Err(error) => Err(VerbError::update(&resource, name, error)),
    }
}

pub(super) fn drop_finalizer(object: &mut Object, finalizer: &str) {
    let left = object.finalizers().into_iter().filter(|f| *f != finalizer).map(str::to_owned).collect();
    object.set_finalizers(left);
}
