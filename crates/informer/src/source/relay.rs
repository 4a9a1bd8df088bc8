//! Wake-ups between futures that one task polls together.

use futures_util::task::AtomicWaker;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Wake, Waker},
};

/// Passes wake-ups to the task that reads, unless they come while it polls.
///
/// The body and its connection wake each other with each chunk. One task polls both: otherwise each chunk would wake the task
/// that is running, and another thread would try to take it over.
#[derive(Debug, Default)]
pub(super) struct Relay {
    /// [`IDLE`], [`POLLING`] or [`WOKEN`].
    state: AtomicU8,
    reader: AtomicWaker,
}

/// The reader waits: a wake-up is for it.
const IDLE: u8 = 0;
/// The reader polls, or will poll before it waits.
const POLLING: u8 = 1;
/// The same, and there was a wake-up.
const WOKEN: u8 = 2;

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, Ordering::AcqRel) == IDLE {
            self.reader.wake();
        }
    }
}

impl Relay {
    /// The reader polls from now on.
    pub(super) fn begin(&self) {
        self.state.swap(POLLING, Ordering::AcqRel);
    }

    /// Whether the reader may wait: there was no wake-up since it began to poll. Later ones wake it.
    pub(super) fn may_wait(&self, reader: &Waker) -> bool {
        self.reader.register(reader);
        self.state.compare_exchange(POLLING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn only_a_reader_that_waits_is_woken() {
        let (reader, relay) = (Arc::<Woken>::default(), Arc::<Relay>::default());
        let (task, waker) = (Waker::from(Arc::clone(&reader)), Waker::from(Arc::clone(&relay)));
        relay.begin();
        waker.wake_by_ref();
        assert!(!relay.may_wait(&task), "it has to poll again");
        relay.begin();
        assert!(relay.may_wait(&task));
        assert_eq!(reader.0.load(Ordering::Relaxed), 0);
        waker.wake_by_ref();
        waker.wake_by_ref();
        assert_eq!(reader.0.load(Ordering::Relaxed), 1, "once");
    }
}
