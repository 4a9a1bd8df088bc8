//! Random events and bounds: the calls of a handler add up to the state of the collection.

use super::*;
use proptest::prelude::*;

const KEYS: [&str; 4] = ["ns/a", "ns/b", "ns/c", "ns/d"];

#[derive(Debug, Clone)]
enum Op {
    /// Add, or update.
    Put(usize),
    /// Its end, seen or not.
    Delete(usize, bool),
    /// It leaves the selection and comes back.
    LeaveAndEnter(usize),
    /// Another object takes its name, unseen.
    Recreate(usize),
    Resync(usize),
    /// The handler takes this many events.
    Take(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0..KEYS.len();
    prop_oneof![
        5 => key.clone().prop_map(Op::Put),
        3 => (key.clone(), any::<bool>()).prop_map(|(key, seen)| Op::Delete(key, seen)),
        1 => key.clone().prop_map(Op::LeaveAndEnter),
        1 => key.clone().prop_map(Op::Recreate),
        1 => key.prop_map(Op::Resync),
        2 => (1..6usize).prop_map(Op::Take),
    ]
}

/// The truth, the backlog, and what the handler believes.
struct World {
    truth: BTreeMap<&'static str, (u64, AnyObject)>,
    backlog: Backlog,
    bound: usize,
    view: BTreeMap<String, AnyObject>,
    version: u64,
    told: usize,
    pushed: usize,
}

impl World {
    fn object(&mut self, key: &str, uid: u64) -> AnyObject {
        self.version += 1;
        object_of(key, &format!("uid-{uid}"), self.version)
    }

    fn push(&mut self, (event, seen): (Event<Value>, Option<AnyObject>)) {
        self.backlog.push(event, seen);
        self.pushed += 1;
    }

    fn put(&mut self, key: &'static str) {
        let known = self.truth.get(key).cloned();
        let uid = known.as_ref().map_or(self.version + 1, |(uid, _)| *uid);
        let object = self.object(key, uid);
        self.push(match known {
            Some((_, old)) => updated(old, object.clone()),
            None => added(object.clone()),
        });
        self.truth.insert(key, (uid, object));
    }

    fn delete(&mut self, key: &'static str, seen: bool) -> Option<u64> {
        let (uid, old) = self.truth.remove(key)?;
        let last = self.object(key, uid);
        self.push(match seen {
            true => deleted(old, last),
            false => (Event::Deleted(Deleted::unknown(old.clone())), Some(old)),
        });
        Some(uid)
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Put(key) => self.put(KEYS[key]),
            Op::Delete(key, seen) => {
                self.delete(KEYS[key], seen);
            }
            Op::LeaveAndEnter(key) => {
                if let Some(uid) = self.delete(KEYS[key], true) {
                    let object = self.object(KEYS[key], uid);
                    self.push(added(object.clone()));
                    self.truth.insert(KEYS[key], (uid, object));
                }
            }
            Op::Recreate(key) => {
                self.delete(KEYS[key], false);
                self.put(KEYS[key]);
            }
            Op::Resync(key) => {
                if let Some((_, object)) = self.truth.get(KEYS[key]).cloned() {
                    self.push(updated(object.clone(), object));
                }
            }
            Op::Take(count) => (0..count).for_each(|_| {
                self.take();
            }),
        }
        // One more for the second half of an end and an add, one for the walk.
        assert!(self.backlog.len() <= self.bound + 2 + KEYS.len(), "{} entries", self.backlog.len());
    }

    fn take(&mut self) -> bool {
        let Some(event) = self.backlog.next() else { return false };
        self.told += 1;
        let key = event.object().key().to_string();
        let seen = self.view.get(&key);
        match &event {
            Event::Added { .. } => assert!(seen.is_none(), "{event:?} but {seen:?} was seen"),
            Event::Updated { old, new } => {
                assert!(
                    seen.is_some_and(|seen| seen.is_same_version(old)),
                    "{event:?} but {seen:?} was seen"
                );
                assert!(old.is_same(new), "{event:?}");
            }
            Event::Deleted(gone) => {
                assert!(
                    seen.is_some_and(|seen| seen.is_same(gone.object())),
                    "{event:?} but {seen:?} was seen"
                );
            }
        }
        match event {
            Event::Added { object, .. } | Event::Updated { new: object, .. } => self.view.insert(key, object),
            Event::Deleted(_) => self.view.remove(&key),
        };
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_told_adds_up_to_the_truth(
        initial in proptest::sample::subsequence(KEYS.to_vec(), 0..=KEYS.len()),
        bound in 1..6usize,
        ops in proptest::collection::vec(op(), 0..60),
    ) {
        let mut world = World {
            truth: BTreeMap::new(), backlog: Backlog::new(bound), bound, view: BTreeMap::new(),
            version: 0, told: 0, pushed: initial.len(),
        };
        for key in initial {
            let uid = world.version + 1;
            let object = world.object(key, uid);
            world.truth.insert(key, (uid, object));
        }
        let objects = world.truth.values().map(|(_, object)| object.clone());
        world.backlog.walk(snapshot(&Scope::all(), objects), None);
        ops.into_iter().for_each(|op| world.step(op));
        while world.take() {}
        let truth: Vec<_> = world.truth.values().map(|(_, object)| format!("{object:?}")).collect();
        let view: Vec<_> = world.view.values().map(|object| format!("{object:?}")).collect();
        prop_assert_eq!(view, truth);
        let coalesced = world.backlog.coalesced() as usize;
        prop_assert!(world.told <= world.pushed);
        prop_assert_eq!(world.told + coalesced, world.pushed, "each event is delivered or counted as coalesced");
        prop_assert_eq!(world.backlog.len(), 0);
    }
}
