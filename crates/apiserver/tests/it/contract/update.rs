//! `guaranteed_update` with concurrent writers.

use std::cell::Cell;
use std::sync::Arc;

use kube_embedded_apiserver::storage::{
    MemoryStorage, Storage, StorageError, Stored, Update, UpdateError, Updated, guaranteed_update,
};

use super::world::{key, number, v};

async fn store() -> (MemoryStorage, Arc<Stored>) {
    let storage = MemoryStorage::new();
    let stored = storage.create(&key("a/x"), v(0).document("a/x")).await.unwrap();
    (storage, stored)
}

fn increment(stored: &Arc<Stored>) -> Result<Update, String> {
    Ok(Update::Write(v(number(stored) + 1).document("a/x")))
}

#[tokio::test]
async fn a_change_is_written() {
    let (storage, stored) = store().await;
    let updated = guaranteed_update(&storage, &key("a/x"), None, increment).await.unwrap();
    assert!(matches!(&updated, Updated::Written(w) if number(w) == 1 && w.revision == stored.revision + 1));
}

#[tokio::test]
async fn no_change_takes_no_revision() {
    let (storage, stored) = store().await;
    for same in [true, false] {
        let change = |_: &Arc<Stored>| -> Result<Update, String> {
            Ok(if same { Update::Write(v(0).document("a/x")) } else { Update::Unchanged })
        };
        let updated = guaranteed_update(&storage, &key("a/x"), None, change).await.unwrap();
        assert!(matches!(&updated, Updated::Unchanged(s) if s.revision == stored.revision));
    }
    assert_eq!(storage.current_revision().await.unwrap(), stored.revision);
}

#[tokio::test]
async fn a_conflict_is_retried_on_the_newer_version() {
    let (storage, stored) = store().await;
    let raced = Cell::new(false);
    let change = |seen: &Arc<Stored>| {
        if !raced.replace(true) {
            let key = key("a/x");
            let other = storage.update(&key, stored.revision, v(10).document("a/x"));
            futures_util::FutureExt::now_or_never(other).unwrap().unwrap();
        }
        increment(seen)
    };
    let updated = guaranteed_update(&storage, &key("a/x"), None, change).await.unwrap();
    assert_eq!(number(updated.stored()), 11);
}

#[tokio::test]
async fn concurrent_increments_are_all_applied() {
    let (storage, _) = store().await;
    let tasks = (0..50).map(|_| {
        let storage = storage.clone();
        tokio::spawn(async move {
            guaranteed_update(&storage, &key("a/x"), None, increment).await.unwrap();
        })
    });
    futures_util::future::join_all(tasks).await;
    assert_eq!(number(&storage.get(&key("a/x")).await.unwrap().unwrap()), 50);
}

#[tokio::test]
async fn an_update_may_delete_the_object() {
    let (storage, stored) = store().await;
    let delete = |_: &Arc<Stored>| -> Result<Update, String> { Ok(Update::Delete) };
    let updated = guaranteed_update(&storage, &key("a/x"), None, delete).await.unwrap();
    assert!(matches!(&updated, Updated::Deleted(last) if last.revision == stored.revision + 1));
    let missing = guaranteed_update(&storage, &key("a/x"), None, delete).await.unwrap_err();
    assert!(matches!(missing, UpdateError::Storage(StorageError::NotFound)));
}

#[tokio::test]
async fn a_rejection_is_final_only_for_the_stored_version() {
    let (storage, stale) = store().await;
    storage.update(&key("a/x"), stale.revision, v(5).document("a/x")).await.unwrap();
    let want_five = |seen: &Arc<Stored>| match number(seen) {
        5 => Ok(Update::Write(v(6).document("a/x"))),
        other => Err(format!("saw {other}")),
    };
    let updated =
        guaranteed_update(&storage, &key("a/x"), Some(Arc::clone(&stale)), want_five).await.unwrap();
    assert_eq!(number(updated.stored()), 6, "the stale suggestion was rejected, the stored version was not");
    let error = guaranteed_update(&storage, &key("a/x"), None, want_five).await.unwrap_err();
    assert!(matches!(error, UpdateError::Refused(text) if text == "saw 6"));
}

#[tokio::test]
async fn a_stale_suggestion_never_decides_that_nothing_changes() {
    let (storage, stale) = store().await;
    storage.update(&key("a/x"), stale.revision, v(5).document("a/x")).await.unwrap();
    let back_to_zero =
        |_: &Arc<Stored>| -> Result<Update, String> { Ok(Update::Write(v(0).document("a/x"))) };
    let updated = guaranteed_update(&storage, &key("a/x"), Some(stale), back_to_zero).await.unwrap();
    assert!(matches!(&updated, Updated::Written(w) if number(w) == 0));
}

#[tokio::test]
async fn a_stale_suggestion_of_a_deleted_object_is_not_found() {
    let (storage, stale) = store().await;
    storage.delete(&key("a/x"), stale.revision).await.unwrap();
    let missing = guaranteed_update(&storage, &key("a/x"), Some(stale), increment).await.unwrap_err();
    assert!(matches!(missing, UpdateError::Storage(StorageError::NotFound)));
}
