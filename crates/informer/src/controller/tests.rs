//! The races of the queue with a store that is written late, with the real store and the real fan-out.

use super::*;
use crate::{
    delta_fifo::{Change, Position, Staged, SyncedBy},
    fixtures::{object, parse, short, short_event},
    indexer::{Extract, NewIndex},
    listener::{Listener, Next},
    scope::{Partitions, Scope},
    shared_informer::Selection,
    telemetry::{ErrorHook, InformerError},
};
use futures_util::FutureExt;
use kube_informer_wire::{Kind, Packing};
use serde_json::json;
use std::time::Duration;

struct Rig {
    controller: Controller,
    listener: Arc<Listener>,
}

impl Rig {
    fn new() -> Self {
        Self::reporting(None)
    }

    fn reporting(hook: Option<ErrorHook>) -> Self {
        let partitions = Partitions::of_scope(&Scope::all());
        let queue = Arc::new(DeltaQueue::new(partitions.clone(), 100));
        let indexer = Arc::new(Indexer::new(partitions));
        let kind = Kind::namespaced("", "v1", "ConfigMap", "configmaps");
        let telemetry = Arc::new(Telemetry::new("test", kind, &Scope::all(), &Selection::default(), hook));
        let listener = Arc::new(Listener::new(100, telemetry.listener("test")));
        let processor = Processor::new(Duration::ZERO);
        let controller =
            Controller::new(queue, indexer, processor, telemetry, Arc::new(Packer::new(Packing::Packed)));
        let snapshot = controller.indexer.snapshot();
        let joined = Arc::clone(&listener);
        controller.between_batches().join(joined, Duration::from_secs(1), &snapshot, Instant::now());
        Self { controller, listener }
    }

    fn offer(&self, change: Change) {
        let version = change.object().resource_version().clone();
        let position = Some(Position { partition: 0, version });
        self.controller.queue.offer(change, position, &*self.controller.indexer);
    }

    fn list(&self, objects: impl IntoIterator<Item = AnyObject>, version: u64) {
        let mut staged = Staged::default();
        objects.into_iter().for_each(|object| staged.insert(object));
        let position = Position { partition: 0, version: version.into() };
        let replace = self.controller.queue.replace(staged, position, &*self.controller.indexer);
        replace.now_or_never().expect("a short list is queued at once");
    }

    fn pop(&self) -> Batch {
        self.controller.queue.pop(100).now_or_never().flatten().expect("something is queued")
    }

    fn run(&self) {
        while let Some(Some(batch)) = self.controller.queue.pop(100).now_or_never() {
            self.controller.process(batch);
        }
    }

    fn stored(&self) -> Vec<String> {
        self.controller.indexer.snapshot().objects().map(short).collect()
    }

    fn told(&self) -> Vec<String> {
        std::iter::from_fn(|| match self.listener.next() {
            Next::Event(event) => Some(short_event(&event)),
            Next::Wait | Next::End => None,
        })
        .collect()
    }
}

/// Design §5.3, the first race.
#[tokio::test(start_paused = true)]
async fn a_relist_while_a_batch_is_in_flight_leaves_no_ghost() {
    let rig = Rig::new();
    rig.list([], 1);
    rig.run();
    rig.offer(Change::Added(object("ns/d", 5)));
    let in_flight = rig.pop();
    rig.list([], 9);
    rig.controller.process(in_flight);
    rig.run();
    assert_eq!((rig.stored(), rig.told()), (vec![], vec!["+d@5".to_owned(), "-d@5?".into()]));
}

/// Design §5.3, the second race.
#[tokio::test(start_paused = true)]
async fn a_resync_while_a_batch_is_in_flight_does_not_turn_back_time() {
    let rig = Rig::new();
    rig.list([object("ns/a", 4)], 4);
    rig.run();
    rig.offer(Change::Modified(object("ns/a", 5)));
    let in_flight = rig.pop();
    rig.controller.queue.resync(&[object("ns/a", 4).key().clone()], &*rig.controller.indexer);
    rig.controller.process(in_flight);
    rig.run();
    assert_eq!(
        (rig.stored(), rig.told()),
        (vec!["a@5".to_owned()], vec!["+a@4!".to_owned(), "~a@4>5".into()])
    );
}

/// A listener joins between two batches: before the list is applied, or after its walk is queued.
#[tokio::test(start_paused = true)]
async fn whoever_joins_around_the_first_list_gets_it_once() {
    let rig = Rig::new();
    let join = |rig: &Rig| {
        let telemetry = &rig.controller.telemetry;
        let listener = Arc::new(Listener::new(100, telemetry.listener("late")));
        let snapshot = rig.controller.indexer.snapshot();
        let mut processor = rig.controller.between_batches();
        processor.join(Arc::clone(&listener), Duration::ZERO, &snapshot, Instant::now());
        listener
    };
    rig.list([object("ns/a", 1)], 1);
    let popped = rig.pop();
    let before = join(&rig);
    rig.controller.process(popped);
    let after = join(&rig);
    for listener in [before, after, Arc::clone(&rig.listener)] {
        let told = Rig { controller: Rig::new().controller, listener }.told();
        assert_eq!(told, ["+a@1!"]);
    }
}

/// One handler resyncs every two seconds, another one every second. The second tick of the latter comes while the first
/// resync is in progress.
#[tokio::test(start_paused = true)]
async fn overlapping_resyncs_are_complete_for_each_handler() {
    const OBJECTS: usize = 250;
    let Rig { mut controller, listener } = Rig::new();
    controller.processor = Mutex::new(Processor::new(Duration::from_secs(1)));
    let rig = Rig { controller, listener };
    let start = Instant::now();
    let join = |listener: &Arc<Listener>, seconds| {
        let snapshot = rig.controller.indexer.snapshot();
        let mut processor = rig.controller.between_batches();
        processor.join(Arc::clone(listener), Duration::from_secs(seconds), &snapshot, start);
    };
    let meters = rig.controller.telemetry.listener("often");
    let often = Arc::new(Listener::new(10 * OBJECTS, meters));
    join(&rig.listener, 2);
    join(&often, 1);
    rig.list((0..OBJECTS).map(|i| object(&format!("ns/{i:03}"), i as u64 + 1)), 1000);
    rig.run();
    let often = Rig { controller: Rig::new().controller, listener: often };
    assert_eq!((rig.told().len(), often.told().len()), (OBJECTS, OBJECTS), "the initial list");
    rig.controller.resync(start + Duration::from_secs(2));
    rig.controller.process(rig.pop());
    rig.controller.resync(start + Duration::from_secs(3));
    while let Some(Some(batch)) = rig.controller.queue.pop(100).now_or_never() {
        rig.controller.process(batch);
        rig.controller.continue_resync();
    }
    assert_eq!((rig.told().len(), often.told().len()), (OBJECTS, 2 * OBJECTS));
}

/// Counts how often another task runs while a list is applied.
#[tokio::test]
async fn a_long_list_is_applied_in_steps() {
    const STEPS: usize = 12;
    let rig = Rig::new();
    rig.list((0..STEPS * BATCH).map(|i| object(&format!("ns/{i:06}"), i as u64 + 1)), 100_000);
    rig.controller.take_in(rig.pop());
    let mut turns = 0;
    let others = async {
        loop {
            turns += 1;
            assert_eq!(rig.stored().len(), 0, "the list is applied whole");
            drop(rig.controller.between_batches());
            yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = rig.controller.finish_batch() => {}
        () = others => {}
    }
    assert!(turns >= STEPS - 1, "{turns}");
    assert_eq!(rig.stored().len(), STEPS * BATCH);
}

/// Notifications, such as `~a@1>2`.
fn noted(note: impl FnOnce(&mut Vec<Notification>)) -> Vec<String> {
    let mut notifications = Vec::new();
    note(&mut notifications);
    let text = |notification: &Notification| match notification {
        Notification::Change(event, _) => short_event(event),
        Notification::Sync(object) => format!(".{}", short(object)),
    };
    notifications.iter().map(text).collect()
}

#[test]
fn the_state_that_is_stored_is_no_news() {
    let [one, two] = [1, 2].map(|version| object("ns/a", version));
    assert!(noted(|notifications| put(Some(one.clone()), one.clone(), notifications)).is_empty());
    assert_eq!(noted(|notifications| put(Some(one), two, notifications)), ["~a@1>2"]);
}

#[test]
fn an_owner_that_a_deleted_object_lost_is_notified_first() {
    let owned = |owner: Option<&str>, version: u64| {
        let owner = owner.map(
            |uid| json!({"apiVersion": "v1", "kind": "Owner", "name": uid, "uid": uid, "controller": true}),
        );
        let owners: Vec<_> = owner.into_iter().collect();
        parse(&json!({"metadata": {"namespace": "ns", "name": "a", "uid": "a",
            "resourceVersion": version.to_string(), "ownerReferences": owners}}))
    };
    for (before, last, expected) in [
        (Some("x"), Some("y"), &["~a@1>2"][..]),
        (Some("x"), None, &["~a@1>2"]),
        (Some("x"), Some("x"), &[]),
        (None, Some("y"), &[]),
        (None, None, &[]),
    ] {
        let (before, last) = (owned(before, 1), owned(last, 2));
        assert_eq!(noted(|notifications| drop(changed_owner(before, &last, notifications))), expected);
    }
}

/// How a whole list reaches an empty store.
#[derive(Clone, Copy)]
enum Whole {
    InitialList,
    /// The initial list was empty.
    Relist,
    Restored,
}

/// Applying a whole list to an empty store has the same effects as applying its objects one by one.
#[tokio::test(start_paused = true)]
async fn a_list_for_an_empty_store_is_applied_as_its_objects_are() {
    for whole in [Whole::InitialList, Whole::Relist, Whole::Restored] {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let hook = Arc::clone(&reports);
        let rig = Rig::reporting(Some(Arc::new(move |error: &InformerError| {
            lock(&hook).push(error.to_string());
        })));
        let by_name = |object: &AnyObject| {
            assert!(!object.name().starts_with('x'), "on purpose");
            Some(vec![object.name().len()])
        };
        let new = NewIndex::Function(Extract::Function(Arc::new(by_name)));
        let (id, _) = rig.controller.indexer.add_index(&new, || ());
        if let Whole::Relist = whole {
            rig.list([], 1);
            rig.run();
        }
        // Not in key order, and one with a later version than the saved state.
        let objects = ["ns/b", "ns/x2", "ns/ccc", "ns/a", "ns/x1"].into_iter().zip([2, 3, 4, 5, 9]);
        let objects = objects.map(|(key, version)| object(key, version));
        match whole {
            Whole::InitialList | Whole::Relist => rig.list(objects, 8),
            Whole::Restored => {
                let position = Position { partition: 0, version: 8.into() };
                rig.controller.queue.restore(objects.collect(), position, SyncedBy::Proof);
            }
        }
        rig.run();
        let snapshot = rig.controller.indexer.snapshot();
        assert_eq!(rig.stored(), ["a@5", "b@2", "ccc@4", "x1@9", "x2@3"]);
        let index = snapshot.index::<usize>(id).unwrap();
        let found = |len| index.get(&len).map(short).collect::<Vec<_>>();
        assert_eq!((found(1), found(3)), (vec!["a@5".to_owned(), "b@2".into()], vec!["ccc@4".to_owned()]));
        assert_eq!((snapshot.omitted(id), index.values()), (Ok(2), vec![1, 3]));
        let told = match whole {
            Whole::Relist => ["+b@2", "+x2@3", "+ccc@4", "+a@5", "+x1@9"],
            Whole::InitialList | Whole::Restored => ["+a@5!", "+b@2!", "+ccc@4!", "+x1@9!", "+x2@3!"],
        };
        assert_eq!(rig.told(), told);
        let panicked = ["ns/x2", "ns/x1"];
        let reported = lock(&reports).clone();
        assert!(reported.iter().zip(panicked).all(|(report, key)| report.contains(key)), "{reported:?}");
        assert_eq!(reported.len(), panicked.len());
        let is_restored = matches!(whole, Whole::Restored);
        assert_eq!(snapshot.is_confirmed(object("ns/x1", 9).key()), !is_restored);
        assert_eq!((snapshot.is_listed(), snapshot.position(0).is_none()), (!is_restored, is_restored));
        assert_eq!(rig.controller.take_restored(0).is_some(), is_restored);
    }
}
