use std::time::Duration;

use serde_json::json;

use super::*;
use crate::storage::{Change, Document, Stored, apply};

const PERIOD: Duration = Duration::from_secs(75);

/// A window over a resource in which every write takes one revision.
struct Fixture {
    window: Window,
    tree: Tree,
    now: Instant,
    revision: u64,
}

impl Fixture {
    fn new(min: usize, max: usize) -> Self {
        let mut window = Window::new(WindowSize { min, max, period: PERIOD });
        window.reset(1000, Tree::new());
        Self { window, tree: Tree::new(), now: Instant::now(), revision: 1000 }
    }

    /// Writes `count` versions of the objects `/x/0 .. /x/6`, all at `now`; every fifth write is a delete.
    fn write(&mut self, count: u64) {
        for _ in 0..count {
            self.revision += 1;
            let key: Arc<str> = format!("/x/{}", self.revision % 7).into();
            let document = Document::encode(&json!({"metadata": {}, "r": self.revision}), []).unwrap();
            let previous = self.tree.get(&*key).cloned();
            let deletes = self.revision.is_multiple_of(5) && previous.is_some();
            let current = (!deletes)
                .then(|| Arc::new(Stored { key: Arc::clone(&key), revision: self.revision, document }));
            let change = Change { revision: self.revision, previous, current };
            apply(&mut self.tree, &change);
            self.window.push(Arc::new(Event::new(Arc::new(change))), &self.tree, self.now);
        }
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
    }
}

#[test]
fn a_window_without_dropped_changes_reaches_back_to_its_reset() {
    let mut it = Fixture::new(100, 100);
    assert_eq!((it.window.oldest(), it.window.after(999), it.window.after(1000)), (1000, None, Some(1)));
    it.write(100);
    assert_eq!(it.window.oldest(), 1000);
    it.write(1);
    assert_eq!(it.window.oldest(), 1001, "the change at 1001 was dropped, so a watch can start at 1001");
    assert_eq!((it.window.after(1000), it.window.after(1001)), (None, Some(it.window.first())));
    assert_eq!(it.window.after(5000), Some(it.window.end()), "a future revision is at the end");
}

#[test]
fn a_full_window_of_young_changes_doubles_up_to_its_bound() {
    let mut it = Fixture::new(100, 400);
    it.write(100);
    assert_eq!(it.window.capacity(), 100);
    for (writes, capacity) in [(1, 200), (100, 400), (1000, 400)] {
        it.write(writes);
        assert_eq!(it.window.capacity(), capacity);
    }
}

#[test]
fn a_window_whose_newest_quarter_is_old_halves_down_to_its_bound() {
    let mut it = Fixture::new(100, 400);
    it.write(401);
    assert_eq!(it.window.capacity(), 400);
    for capacity in [200, 100, 100] {
        it.advance(PERIOD + Duration::from_secs(1));
        it.write(1);
        assert_eq!(it.window.capacity(), capacity);
        it.write(capacity as u64 - it.window.events.len() as u64);
    }
}

#[test]
fn a_window_that_spans_the_period_keeps_its_size() {
    let mut it = Fixture::new(100, 400);
    for _ in 0..300 {
        it.write(1);
        it.advance(Duration::from_secs(1));
    }
    assert_eq!(it.window.capacity(), 100, "100 changes are 100 seconds");
}

#[test]
fn a_reader_behind_the_window_gets_no_events() {
    let mut it = Fixture::new(100, 100);
    let start = it.window.after(1000).unwrap();
    it.write(100);
    assert_eq!(it.window.read(start, 10).unwrap().len(), 10);
    assert_eq!(it.window.read(it.window.end(), 10).unwrap().len(), 0);
    it.write(1);
    assert!(it.window.read(start, 10).is_none());
}

#[test]
fn a_position_from_before_a_reset_is_never_valid_again() {
    let mut it = Fixture::new(100, 100);
    it.write(10);
    let end = it.window.end();
    it.window.reset(2000, Tree::new());
    assert!(it.window.read(end, 10).is_none());
    assert_eq!((it.window.oldest(), it.window.after(1010)), (2000, None));
}

/// The state at every revision in the window is exact, regardless of the checkpoints.
#[test]
fn the_state_at_an_older_revision_is_exact() {
    let mut it = Fixture::new(100, 1600);
    let mut states = vec![(1000, it.tree.clone())];
    for step in 0..100 {
        for _ in 0..37 {
            it.write(1);
            states.push((it.revision, it.tree.clone()));
        }
        if step % 2 == 0 {
            it.advance(Duration::from_secs(60));
        }
        let oldest = it.window.oldest();
        let mut served = 0;
        for (revision, expected) in &states {
            if let Some(state_at) = it.window.state_at(*revision) {
                let tree = state_at.tree();
                let same = tree.len() == expected.len()
                    && tree.iter().zip(expected).all(|(a, b)| Arc::ptr_eq(a.1, b.1));
                assert!(same, "state at {revision}, now {}", it.revision);
                assert!(*revision >= oldest);
                served += 1;
            }
        }
        let kept = it.revision - oldest;
        assert!(served + 1600 / 4 > kept, "all but the oldest few of {kept} are served, not {served}");
    }
}

#[test]
fn compacted_revisions_are_not_served() {
    let mut it = Fixture::new(100, 100);
    it.write(20);
    it.window.compacted(1010);
    assert!(it.window.state_at(1010).is_none());
    assert!(it.window.state_at(1011).is_some());
}

#[test]
fn a_burst_of_large_objects_keeps_the_window_small() {
    let mut it = Fixture::new(10, 1000);
    let text = "x".repeat(8 << 20);
    let document = Document::encode(&json!({"metadata": {}, "text": text}), []).unwrap();
    let stored = Arc::new(Stored { key: "/x/large".into(), revision: 1, document });
    for revision in 1001..1101 {
        let change =
            Change { revision, previous: Some(Arc::clone(&stored)), current: Some(Arc::clone(&stored)) };
        it.window.push(Arc::new(Event::new(Arc::new(change))), &it.tree, it.now);
    }
    assert_eq!(it.window.events.len(), MAX_REPLACED_BYTES / stored.document.encoded_len());
    assert!(it.window.replaced <= MAX_REPLACED_BYTES);
    it.window.reset(2000, Tree::new());
    assert_eq!(it.window.replaced, 0);
}
