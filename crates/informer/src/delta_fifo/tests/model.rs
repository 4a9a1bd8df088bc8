//! Any sequence of operations, against a model that has no queue.

use super::*;

const KEYS: [&str; 5] = ["ns/a", "ns/b", "ns/c", "ns/d", "ns/e"];

#[derive(Debug, Clone)]
enum Op {
    /// The object at this place of `KEYS` is written on the server, and the watch says so.
    Write(usize),
    /// Deleted and re-created within one version: a new uid.
    Recreate(usize),
    Delete(usize),
    /// Written or deleted unseen: only a list will tell.
    Unseen(usize, bool),
    Bookmark,
    Relist,
    /// A list in which the item of this key has a name and nothing else that can be read.
    RelistMalformed(usize),
    /// The server is backed up.
    Backup,
    /// The server goes back to its last backup, and to the version of that backup, and is listed again; the
    /// item of this key is malformed.
    Restore(Option<usize>),
    Resync,
    Pop(usize),
    /// Popped, but stored and committed only later.
    PopHalf(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0..KEYS.len();
    prop_oneof![
        4 => key.clone().prop_map(Op::Write),
        1 => key.clone().prop_map(Op::Recreate),
        2 => key.clone().prop_map(Op::Delete),
        2 => (key, any::<bool>()).prop_map(|(key, delete)| Op::Unseen(key, delete)),
        1 => Just(Op::Bookmark),
        1 => Just(Op::Relist),
        1 => (0..KEYS.len()).prop_map(Op::RelistMalformed),
        1 => Just(Op::Backup),
        2 => proptest::option::of(0..KEYS.len()).prop_map(Op::Restore),
        1 => Just(Op::Resync),
        2 => (1..4usize).prop_map(Op::Pop),
        2 => (1..4usize).prop_map(Op::PopHalf),
    ]
}

fn key_at(place: usize) -> ObjectKey {
    KEYS[place].parse().unwrap()
}

/// A server, the queue, and a store fed from it.
struct World {
    fifo: DeltaFifo,
    server: Stored,
    /// The server and its version when it was last backed up.
    backup: (Stored, u64),
    store: Stored,
    version: u64,
    /// Keys whose state on the server was never shown since it changed.
    hidden: BTreeSet<ObjectKey>,
    uids: u64,
    half: Option<Batch>,
    /// Sequence numbers do not show; versions do. What was popped last of each key, and of all.
    reached: Option<u64>,
    /// Deltas that went in and did not come out yet, by the model's own count.
    waiting: usize,
}

impl World {
    fn new() -> Self {
        Self {
            fifo: fifo(),
            server: Stored::default(),
            backup: (Stored::default(), 0),
            store: Stored::default(),
            version: 0,
            hidden: BTreeSet::new(),
            uids: 0,
            half: None,
            reached: None,
            waiting: 0,
        }
    }

    fn write(&mut self, key: &str, new: bool) -> AnyObject {
        self.version += 1;
        let uid = match self.server.0.contains_key(key) && !new {
            true => self.uid_of(key),
            false => {
                self.uids += 1;
                format!("uid-{}", self.uids)
            }
        };
        let object = object_of(key, &uid, self.version);
        self.server.0.insert(object.key().clone(), object.clone());
        object
    }

    /// The text of the uid, which an object does not give back.
    fn uid_of(&self, key: &str) -> String {
        let content: serde_json::Value = self.server.0[key].view().unwrap();
        content["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    fn delete(&mut self, key: &str) -> Option<AnyObject> {
        let uid = self.server.0.contains_key(key).then(|| self.uid_of(key))?;
        self.server.0.remove(key);
        self.version += 1;
        Some(object_of(key, &uid, self.version))
    }

    fn offer(&mut self, change: Change) {
        self.hidden.remove(change.object().key());
        let before = self.fifo.len();
        let offered = self.fifo.offer(change, Some(at(self.version)), &self.store);
        self.waiting += usize::from(offered == Offered::Queued);
        assert_eq!(self.fifo.len() - before, usize::from(offered == Offered::Queued));
    }

    fn finish(&mut self) {
        if let Some(batch) = self.half.take() {
            batch.deltas.iter().for_each(|delta| self.store.apply(delta));
            self.fifo.commit();
        }
    }

    fn pop(&mut self, max: usize) -> bool {
        self.finish();
        let Some(batch) = self.fifo.pop_expanded(max) else { return false };
        self.waiting -= batch.deltas.len();
        assert!(batch.replaced.is_some() || batch.deltas.len() <= max, "{batch:?}");
        self.check_order(&batch);
        self.half = Some(batch);
        true
    }

    /// Positions never go back, and no change comes before a position that covers it.
    fn check_order(&mut self, batch: &Batch) {
        if batch.replaced.is_none() {
            // A resync has the version of the state it repeats, an end that was missed that of the last state.
            let new = |delta: &&Delta| match delta {
                Delta::Sync(_) => false,
                Delta::Deleted(deleted) => !deleted.is_final_state_unknown(),
                _ => true,
            };
            let news = batch.deltas.iter().filter(new);
            for delta in news {
                let version = delta.object().resource_version().number();
                assert!(version > self.reached, "{} after position {:?}", short_delta(delta), self.reached);
            }
        } else {
            let first_news = batch.deltas.iter().position(|delta| matches!(delta, Delta::Replaced(_)));
            let tombstones = batch.deltas.iter().rposition(|delta| matches!(delta, Delta::Deleted(_)));
            assert!(first_news.zip(tombstones).is_none_or(|(news, tombstone)| tombstone < news), "{batch:?}");
        }
        if let Some(version) = batch.positions.get(&0) {
            // Only a list of a restored server goes back.
            assert!(
                batch.replaced.is_some() || version.number() >= self.reached,
                "{version} after {:?}",
                self.reached
            );
            self.reached = version.number();
        }
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Write(key) => {
                let known = self.server.0.contains_key(KEYS[key]);
                let object = self.write(KEYS[key], false);
                self.offer(if known { Change::Modified(object) } else { Change::Added(object) });
            }
            Op::Recreate(key) => {
                let object = self.write(KEYS[key], true);
                self.offer(Change::Added(object));
            }
            Op::Delete(key) => {
                if let Some(object) = self.delete(KEYS[key]) {
                    self.offer(Change::Deleted(object));
                }
            }
            Op::Unseen(key, delete) => {
                self.hidden.insert(key_at(key));
                match delete {
                    true => drop(self.delete(KEYS[key])),
                    false => drop(self.write(KEYS[key], false)),
                }
            }
            Op::Bookmark => self.fifo.bookmark(at(self.version)),
            Op::Relist => self.relist(Compare::Version, None),
            Op::RelistMalformed(key) => self.relist(Compare::Version, Some(key_at(key))),
            Op::Backup => self.backup = (Stored(self.server.0.clone()), self.version),
            Op::Restore(malformed) => {
                self.server = Stored(self.backup.0.0.clone());
                self.version = self.backup.1;
                self.relist(Compare::Content, malformed.map(key_at));
            }
            Op::Resync => {
                let before = self.fifo.len();
                self.fifo.resync_all(&self.store);
                self.waiting += self.fifo.len() - before;
            }
            Op::Pop(max) => {
                self.pop(max);
                self.finish();
            }
            Op::PopHalf(max) => {
                self.pop(max);
            }
        }
        self.check_books();
    }

    fn relist(&mut self, compare: Compare, malformed: Option<ObjectKey>) {
        let before = self.fifo.len();
        let mut staged = Staged::default();
        for object in self.server.0.values() {
            match malformed.as_ref() == Some(object.key()) {
                true => staged.malformed(malformed.as_ref()),
                false => self.fifo.stage(&mut staged, object.clone(), compare, &self.store),
            }
        }
        self.fifo.replace(staged, at(self.version), &self.store);
        self.hidden = malformed.into_iter().filter(|key| self.server.0.contains_key(key)).collect();
        self.waiting += self.fifo.len() - before;
    }

    fn check_books(&self) {
        let fifo = &self.fifo;
        assert_eq!(fifo.len(), self.waiting);
        let listed: usize = fifo.lists.iter().map(|(_, list)| list.deltas().count()).sum();
        assert_eq!(fifo.len(), fifo.items.values().map(VecDeque::len).sum::<usize>() + listed);
        let syncs = fifo.items.values().flatten().filter(|item| matches!(item.delta, Delta::Sync(_))).count();
        assert_eq!(fifo.is_resyncing(), syncs > 0);
        let filed = fifo.queue.iter().filter_map(|(sequence, filed)| match filed {
            Filed::Key(key) => Some((key, *sequence)),
            _ => None,
        });
        let oldest: HashMap<_, _> =
            fifo.items.iter().map(|(key, deltas)| (key, deltas[0].sequence)).collect();
        assert_eq!(filed.clone().count(), oldest.len());
        assert_eq!(filed.collect::<HashMap<_, _>>(), oldest, "each key is filed under its oldest number");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Order, bookkeeping, and the end: the store has every state that was shown, and after one more list it is
    /// the server.
    #[test]
    fn whatever_happens_the_store_ends_up_as_the_server(ops in proptest::collection::vec(op(), 0..60)) {
        let mut world = World::new();
        ops.into_iter().for_each(|op| world.step(op));
        while world.pop(3) {}
        world.finish();
        for key in (0..KEYS.len()).map(key_at).filter(|key| !world.hidden.contains(key)) {
            let (stored, served) = (world.store.0.get(&key), world.server.0.get(&key));
            prop_assert_eq!(stored.map(short), served.map(short));
        }
        world.step(Op::Relist);
        while world.pop(3) {}
        world.finish();
        let (store, server) = (&world.store.0, &world.server.0);
        prop_assert_eq!(store.keys().collect::<Vec<_>>(), server.keys().collect::<Vec<_>>());
        for (key, object) in store {
            prop_assert!(object.is_same_version(&server[key]), "{:?} {:?}", object, server[key]);
        }
        prop_assert!(world.fifo.items.is_empty() && world.fifo.in_flight.changes.is_empty());
        prop_assert!(world.fifo.queue.is_empty() && world.fifo.lists.is_empty() && world.fifo.in_flight.list.is_none());
    }
}
