//! The log of the current thread, captured as text.
//!
//! One subscriber serves the whole test binary, and checks whether and at which level the current thread captures its
//! log. A subscriber for each test would race: `tracing` caches for each call site whether any subscriber is
//! interested, and a thread without a subscriber that reaches a call site first would disable it for the others.

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

/// The log of this thread since [`capture`](CapturedLog::capture). Dropping it ends the capture.
#[derive(Debug)]
#[must_use]
pub struct CapturedLog {
    text: Rc<RefCell<Vec<u8>>>,
}

struct Capture {
    text: Rc<RefCell<Vec<u8>>>,
    level: Level,
}

thread_local! {
    static CAPTURE: RefCell<Option<Capture>> = const { RefCell::new(None) };
}

impl CapturedLog {
    /// Captures the log of this thread from now on, down to a level.
    ///
    /// # Panics
    /// If another subscriber was installed in this process.
    pub fn capture(level: Level) -> CapturedLog {
        static SUBSCRIBER: Once = Once::new();
        SUBSCRIBER.call_once(|| {
            let captured = dynamic_filter_fn(|metadata, _| is_captured(metadata));
            let layer = fmt::layer().with_ansi(false).with_writer(ToThread).with_filter(captured);
            tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))
                .expect("no other subscriber is installed");
            // A call site that ran before the subscriber was installed is cached as disabled.
            tracing::callsite::rebuild_interest_cache();
        });
        let text = Rc::default();
        CAPTURE.set(Some(Capture { text: Rc::clone(&text), level }));
        CapturedLog { text }
    }

    /// The captured lines.
    ///
    /// # Panics
    /// If a line is not UTF-8.
    pub fn text(&self) -> String {
        String::from_utf8(self.text.borrow().clone()).expect("log lines are text")
    }
}

impl Drop for CapturedLog {
    fn drop(&mut self) {
        CAPTURE.set(None);
    }
}

fn is_captured(metadata: &Metadata<'_>) -> bool {
    CAPTURE.with_borrow(|capture| capture.as_ref().is_some_and(|capture| *metadata.level() <= capture.level))
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
        CAPTURE.with_borrow(|capture| {
            if let Some(capture) = capture {
                capture.text.borrow_mut().extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
