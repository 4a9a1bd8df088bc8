use super::*;
use crate::{
    fixtures::{Stored, object, short_delta},
    scope::Scope,
};
use futures_util::FutureExt;

fn queue(bound: usize) -> DeltaQueue {
    DeltaQueue::new(Partitions::of_scope(&Scope::all()), bound)
}

fn add(queue: &DeltaQueue, key: &str, version: u64) {
    queue.offer(Change::Added(object(key, version)), None, &Stored::default());
}

#[tokio::test]
async fn at_the_bound_there_is_no_room_until_a_batch_is_committed() {
    let queue = queue(2);
    queue.room().await;
    add(&queue, "ns/a", 1);
    queue.room().await;
    add(&queue, "ns/b", 2);
    let mut room = Box::pin(queue.room());
    assert!((&mut room).now_or_never().is_none(), "the reflector stops reading");
    let batch = queue.pop(1).await.unwrap();
    assert_eq!(batch.deltas.len(), 1);
    assert!((&mut room).now_or_never().is_none(), "popped is not yet stored");
    queue.commit();
    room.await;
}

#[tokio::test]
async fn a_list_may_go_over_the_bound() {
    let queue = queue(1);
    let mut staged = Staged::default();
    (0..10).for_each(|i| staged.insert(object(&format!("ns/{i}"), i)));
    queue.replace(staged, Position { partition: 0, version: 9.into() }, &Stored::default()).await;
    assert_eq!(queue.pop(1).await.unwrap().len(), 10, "in one batch");
}

#[tokio::test(start_paused = true)]
async fn pop_waits_for_work_and_close_ends_the_waiting() {
    let queue = std::sync::Arc::new(queue(4));
    let popper = tokio::spawn({
        let queue = std::sync::Arc::clone(&queue);
        async move {
            let mut popped = Vec::new();
            while let Some(batch) = queue.pop(10).await {
                popped.extend(batch.deltas.iter().map(short_delta));
                queue.commit();
            }
            popped
        }
    });
    for version in 1..=3 {
        tokio::task::yield_now().await;
        add(&queue, "ns/a", version);
    }
    queue.close();
    assert_eq!(popper.await.unwrap(), ["+a@1", "+a@2", "+a@3"], "what was queued still comes out");
    queue.room().await;
    add(&queue, "ns/b", 9);
    assert!(queue.pop(1).await.is_none());
}

#[tokio::test]
async fn a_pop_that_is_dropped_loses_nothing() {
    let queue = queue(4);
    assert!(queue.pop(1).now_or_never().is_none());
    add(&queue, "ns/a", 1);
    assert_eq!(queue.pop(1).await.unwrap().deltas.len(), 1);
}

/// Counts how often another task runs while a list is queued.
#[tokio::test]
async fn a_long_list_is_queued_in_steps() {
    const OBJECTS: u64 = 20 * STEP as u64;
    let queue = queue(4);
    let store = Stored::of((0..OBJECTS).map(|i| object(&format!("ns/{i:06}"), i)));
    let turns = std::sync::atomic::AtomicUsize::new(0);
    let others = async {
        loop {
            turns.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(queue.len(), 0, "the list is queued whole");
            yield_now().await;
        }
    };
    let mut staged = Staged::default();
    staged.note(&object("ns/000000", 0));
    let replace = queue.replace(staged, Position { partition: 0, version: 9.into() }, &store);
    tokio::select! {
        biased;
        () = replace => {}
        () = others => {}
    }
    assert!(turns.into_inner() >= 20, "the queue is unlocked between two steps");
    let list = queue.pop(1).await.unwrap();
    assert_eq!((list.replaced, list.len() as u64), (Some(0), OBJECTS - 1), "the list is whole");
}
