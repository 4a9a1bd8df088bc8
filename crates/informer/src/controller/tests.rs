//! The races of the queue with a store that is written late, with the real store and the real fan-out.

use super::*;
use crate::{
    delta_fifo::{Change, Position, Staged},
    fixtures::{object, short, short_event},
    listener::{Listener, Next},
    scope::{Partitions, Scope},
    shared_informer::Selection,
};
use futures_util::FutureExt;
use kube_informer_wire::Kind;
use std::time::Duration;

struct Rig {
    controller: Controller,
    listener: Arc<Listener>,
}

impl Rig {
    fn new() -> Self {
        let partitions = Partitions::of_scope(&Scope::all());
        let queue = Arc::new(DeltaQueue::new(partitions.clone(), 100));
        let indexer = Arc::new(Indexer::new(partitions));
        let kind = Kind::namespaced("", "v1", "ConfigMap", "configmaps");
        let telemetry = Arc::new(Telemetry::new("test", kind, &Scope::all(), &Selection::default(), None));
        let listener = Arc::new(Listener::new(100, telemetry.listener("test")));
        let controller = Controller::new(queue, indexer, Processor::new(Duration::ZERO, false), telemetry);
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
        self.controller.queue.replace(staged, position, &*self.controller.indexer);
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
    rig.controller.queue.resync(&*rig.controller.indexer);
    rig.controller.process(in_flight);
    rig.run();
    assert_eq!(
        (rig.stored(), rig.told()),
        (vec!["a@5".to_owned()], vec!["+a@4!".to_owned(), "~a@4>5".into()])
    );
}

/// Joining happens between two batches: before the list, or after its walk is on its way.
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
