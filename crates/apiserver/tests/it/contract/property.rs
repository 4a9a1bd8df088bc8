//! Random histories: list and watch agree for all orders of writes and reads.

use std::collections::BTreeMap;

use kube_embedded_apiserver::watch_cache::{
    EventType, ListRequest, RevisionMatch, RevisionOption, WatchItem, WatchRequest,
};
use proptest::prelude::*;

use super::world::{Reader, Spec, Watch, World, at, key};

#[derive(Debug, Clone)]
enum Step {
    /// Create, update or delete, whichever is possible.
    Write {
        object: u8,
        label: u8,
        delete: bool,
    },
    Elsewhere,
    /// A watcher reads its pending events.
    Read {
        watcher: u8,
    },
    /// A new watcher starts from the current list.
    Join {
        selective: bool,
    },
    Compact,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0..12_u8, 0..3_u8, any::<bool>()).prop_map(|(object, label, delete)| Step::Write { object, label, delete }),
        2 => Just(Step::Elsewhere),
        4 => (0..4_u8).prop_map(|watcher| Step::Read { watcher }),
        1 => any::<bool>().prop_map(|selective| Step::Join { selective }),
        1 => Just(Step::Compact),
    ];
    proptest::collection::vec(step, 1..300)
}

/// Key to revision: the state as seen by an observer.
type Model = BTreeMap<String, u64>;

struct Observer {
    watch: Watch,
    labels: &'static str,
    state: Model,
    /// The revision of the list, then of each event.
    seen: u64,
    trace: Vec<(EventType, String, u64)>,
    joined_at: u64,
}

impl Observer {
    async fn join(world: &World, selective: bool) -> Self {
        let labels = if selective { "l=1" } else { "" };
        let list =
            world.list(ListRequest { labels: labels.parse().unwrap(), ..ListRequest::default() }).await;
        let request = WatchRequest {
            revision: at(list.revision),
            labels: labels.parse().unwrap(),
            ..WatchRequest::default()
        };
        let state = list.items.iter().map(|stored| (stored.key.to_string(), stored.revision)).collect();
        let watch = world.watch(request).await;
        Self { watch, labels, state, seen: list.revision, trace: Vec::new(), joined_at: list.revision }
    }

    fn read(&mut self) {
        while let Some(item) = self.watch.now() {
            let Some(WatchItem::Event(event)) = item else { panic!("{item:?}") };
            let (key, revision) = (event.object().key.to_string(), event.revision());
            assert!(revision > self.seen, "versions must increase: {revision} after {}", self.seen);
            self.seen = revision;
            let known = self.state.contains_key(&key);
            match event.event_type() {
                EventType::Added => assert!(!known, "{key} was added twice"),
                EventType::Modified | EventType::Deleted => assert!(known, "{key} was never added"),
            }
            match event.event_type() {
                EventType::Deleted => self.state.remove(&key),
                _ => self.state.insert(key.clone(), revision),
            };
            self.trace.push((event.event_type(), key, revision));
        }
    }

    /// Checks that the state equals an exact list at the newest version.
    async fn check(&mut self, world: &World) {
        self.read();
        let current = world.current().await;
        let exact = ListRequest {
            revision: at(current),
            revision_match: Some(RevisionMatch::Exact),
            labels: self.labels.parse().unwrap(),
            ..ListRequest::default()
        };
        let list = world.list(exact).await;
        let listed: Model =
            list.items.iter().map(|stored| (stored.key.to_string(), stored.revision)).collect();
        assert_eq!(self.state, listed, "list + events = list");
    }
}

async fn write(world: &World, object: u8, label: u8, delete: bool, v: u64) {
    let path = format!("ns{}/{object}", object % 3);
    let labels = vec![("l", label.to_string())];
    let document = Spec { labels, v, node: "" }.document(&path);
    let key = key(&path);
    match world.storage.get(&key).await.unwrap() {
        None => drop(world.storage.create(&key, document).await.unwrap()),
        Some(stored) if delete => drop(world.storage.delete(&key, stored.revision).await.unwrap()),
        Some(stored) => drop(world.storage.update(&key, stored.revision, document).await.unwrap()),
    }
}

async fn run(reader: Reader, steps: Vec<Step>) {
    let world = World::with_window(reader, 400).await;
    let mut observers = vec![Observer::join(&world, false).await, Observer::join(&world, true).await];
    for (n, step) in steps.into_iter().enumerate() {
        match step {
            Step::Write { object, label, delete } => write(&world, object, label, delete, n as u64).await,
            Step::Elsewhere => drop(world.write_elsewhere().await),
            Step::Read { watcher } => {
                let index = watcher as usize % observers.len();
                observers[index].read();
            }
            Step::Join { selective } => observers.push(Observer::join(&world, selective).await),
            Step::Compact if reader == Reader::Stored => {
                // A watch on the bare store ends if unread changes are compacted, so all observers read first.
                observers.iter_mut().for_each(Observer::read);
                world.compact().await;
            }
            Step::Compact => drop(world.compact().await),
        }
    }
    for observer in &mut observers {
        observer.check(&world).await;
    }
    let first = &observers[0];
    for other in observers.iter().filter(|other| other.labels.is_empty()) {
        let shared: Vec<_> =
            first.trace.iter().filter(|(.., revision)| *revision > other.joined_at).collect();
        assert_eq!(shared, other.trace.iter().collect::<Vec<_>>(), "all watchers see the same order");
    }
    let any = world.list(ListRequest { revision: RevisionOption::Any, ..ListRequest::default() }).await;
    assert_eq!(any.items.len(), first.state.len());
}

fn on_one_thread(reader: Reader, steps: Vec<Step>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run(reader, steps));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn list_and_watch_agree_through_the_cache(steps in steps()) {
        on_one_thread(Reader::Cached, steps);
    }

    #[test]
    fn list_and_watch_agree_without_feature_gates(steps in steps()) {
        on_one_thread(Reader::NoGates, steps);
    }

    #[test]
    fn list_and_watch_agree_on_the_store(steps in steps()) {
        on_one_thread(Reader::Stored, steps);
    }
}
