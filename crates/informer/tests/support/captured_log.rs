//! The log of the current thread, kept as text.
//!
//! One subscriber serves the whole test binary and asks the thread whether, and down to which level, it keeps its
//! log. A subscriber per test would race: `tracing` caches for each call site whether anyone listens, and a thread
//! without a subscriber that passes a call site first would silence it for the one that has a subscriber.

use std::{
    cell::RefCell,
    io::{self, Write},
    rc::Rc,
    sync::Once,
};
use tracing::{Level, Metadata};
use tracing_subscriber::{
    Layer,
    filter::dynamic_filter_fn,
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
};

/// Everything the thread has logged since [`capture`](CapturedLog::capture), until this is dropped.
pub(crate) struct CapturedLog {
    text: Rc<RefCell<Vec<u8>>>,
}

struct Kept {
    text: Rc<RefCell<Vec<u8>>>,
    level: Level,
}

thread_local! {
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

impl CapturedLog {
    pub(crate) fn capture(level: Level) -> CapturedLog {
        static SUBSCRIBER: Once = Once::new();
        SUBSCRIBER.call_once(|| {
            let kept = dynamic_filter_fn(|metadata, _| is_kept(metadata));
            let layer = fmt::layer().with_ansi(false).with_writer(ToThread).with_filter(kept);
            tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))
                .expect("nobody else installs a subscriber");
            // A call site passed between the making and the installing of the subscriber was cached as unheard.
            tracing::callsite::rebuild_interest_cache();
        });
        let text = Rc::default();
        KEPT.set(Some(Kept { text: Rc::clone(&text), level }));
        CapturedLog { text }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.text.borrow().clone()).expect("log lines are text")
    }
}

impl Drop for CapturedLog {
    fn drop(&mut self) {
        KEPT.set(None);
    }
}

fn is_kept(metadata: &Metadata<'_>) -> bool {
    KEPT.with_borrow(|kept| kept.as_ref().is_some_and(|kept| *metadata.level() <= kept.level))
}

struct ToThread;

impl MakeWriter<'_> for ToThread {
    type Writer = ToThread;

    fn make_writer(&self) -> ToThread {
        ToThread
    }
}

impl Write for ToThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        KEPT.with_borrow(|kept| {
            if let Some(kept) = kept {
                kept.text.borrow_mut().extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
