//! The model of the queue: a few lists, searched linearly.

use super::Key;

/// The delay of every retry, in milliseconds.
pub(super) const RETRY_AFTER: u64 = 10;

pub(super) struct Model {
    /// Milliseconds since the beginning.
    pub(super) now: u64,
    pub(super) closed: bool,
    ready: Vec<Ready>,
    /// Keys in flight, and the priority with which they were added again.
    in_flight: Vec<(Key, Option<i32>)>,
    delayed: Vec<Waiting>,
    arrivals: u64,
    /// Takes since the first priority was used; before that, order is arrival.
    takes: Option<u32>,
    oldest_every: u32,
}

struct Ready {
    key: Key,
    priority: i32,
    arrival: u64,
}

struct Waiting {
    due: u64,
    arrival: u64,
    key: Key,
    priority: i32,
}

impl Model {
    pub(super) fn new(oldest_every: u32) -> Self {
        let (ready, in_flight, delayed) = (Vec::new(), Vec::new(), Vec::new());
        Self { now: 0, closed: false, ready, in_flight, delayed, arrivals: 0, takes: None, oldest_every }
    }

    pub(super) fn add(&mut self, key: Key, priority: i32) {
        if !self.closed {
            self.queue(key, priority);
        }
    }

    pub(super) fn add_after(&mut self, key: Key, delay: u64, priority: i32) {
        if delay == 0 {
            return self.add(key, priority);
        }
        if self.closed {
            return;
        }
        let (due, arrival) = (self.now + delay, self.arrive());
        match self.delayed.iter_mut().find(|waiting| waiting.key == key) {
            Some(waiting) => {
                waiting.priority = waiting.priority.max(priority);
                if due < waiting.due {
                    (waiting.due, waiting.arrival) = (due, arrival);
                }
            }
            None => self.delayed.push(Waiting { due, arrival, key, priority }),
        }
        self.delayed.sort_by_key(|waiting| (waiting.due, waiting.arrival));
    }

    pub(super) fn promote(&mut self) {
        while self.delayed.first().is_some_and(|waiting| waiting.due <= self.now) {
            let Waiting { key, priority, .. } = self.delayed.remove(0);
            self.queue(key, priority);
        }
    }

    pub(super) fn take(&mut self) -> Option<Key> {
        if self.ready.is_empty() {
            return None;
        }
        let oldest = match &mut self.takes {
            None => true,
            Some(takes) => {
                *takes += 1;
                takes.is_multiple_of(self.oldest_every)
            }
        };
        let rank =
            |ready: &&Ready| if oldest { (0, ready.arrival) } else { (-ready.priority, ready.arrival) };
        let key = self.ready.iter().min_by_key(rank)?.key;
        self.ready.retain(|ready| ready.key != key);
        assert!(self.in_flight.iter().all(|(held, _)| *held != key), "held twice");
        self.in_flight.push((key, None));
        Some(key)
    }

    pub(super) fn finish(&mut self, key: Key) {
        let at = self.in_flight.iter().position(|(held, _)| *held == key).expect("held");
        if let (key, Some(priority)) = self.in_flight.remove(at) {
            self.queue(key, priority);
        }
    }

    pub(super) fn cancel(&mut self, key: Key) -> bool {
        let before = self.delayed.len();
        self.delayed.retain(|waiting| waiting.key != key);
        self.delayed.len() < before
    }

    pub(super) fn close(&mut self, run_delayed: bool) {
        self.closed = true;
        if !run_delayed {
            self.delayed.clear();
        }
    }

    pub(super) fn ready_len(&self) -> usize {
        self.ready.len()
    }

    pub(super) fn delayed(&self) -> Vec<(u64, Key, i32)> {
        self.delayed.iter().map(|waiting| (waiting.due, waiting.key, waiting.priority)).collect()
    }

    pub(super) fn exhausted(&self) -> bool {
        let dirty = self.in_flight.iter().any(|(_, again)| again.is_some());
        self.closed && !dirty && self.ready.is_empty() && self.delayed.is_empty()
    }

    pub(super) fn nothing_to_take(&self) -> bool {
        self.ready.is_empty() && !self.exhausted()
    }

    fn queue(&mut self, key: Key, priority: i32) {
        if let Some((_, again)) = self.in_flight.iter_mut().find(|(held, _)| *held == key) {
            *again = Some(again.unwrap_or(priority).max(priority));
            return;
        }
        if priority != 0 && self.takes.is_none() {
            self.takes = Some(0);
        }
        let arrival = self.arrive();
        match self.ready.iter_mut().find(|ready| ready.key == key) {
            Some(ready) => ready.priority = ready.priority.max(priority),
            None => self.ready.push(Ready { key, priority, arrival }),
        }
    }

    fn arrive(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }
}
