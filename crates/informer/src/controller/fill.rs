//! Applying a whole list to an empty store.

use super::{BATCH, put};
use crate::{
    delta::AnyObject,
    indexer::{Fill, Transaction},
    processor::Notification,
};
use tokio::task::yield_now;

/// Stores the objects of a list in a store that has none. Other tasks of this thread run between two steps; the longest ones
/// are those of [`Fill::step`].
///
/// Returns the notifications of handlers. An `initial` list has none: handlers are notified by one walk over the store.
pub(super) async fn fill_store(
    store: &mut Transaction<'_>,
    mut fill: Fill,
    objects: impl Iterator<Item = &AnyObject>,
    initial: bool,
) -> Vec<Notification> {
    let (mut notifications, mut is_long) = (Vec::new(), false);
    for (added, object) in objects.enumerate() {
        if added > 0 && added.is_multiple_of(BATCH) {
            yield_now().await;
            is_long = true;
        }
        fill.add(object);
        if !initial {
            put(None, object.clone(), &mut notifications);
        }
    }
    while fill.step() {
        if is_long {
            yield_now().await;
        }
    }
    store.fill(fill);
    notifications
}
