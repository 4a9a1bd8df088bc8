//! Handlers with different behaviours.

use crate::{
    handler_log::{Accept, HandlerLog},
    history::color_name,
    log::Log,
    totals::Fault,
    work::Work,
};
use futures_util::StreamExt;
use kube_informer::{
    Event, EventHandler, HandlerLoad, HandlerOptions, Object, Registration, SharedInformer, filter, on_event,
};
use kube_informer_wire::sync::lock;
use serde_json::Value;
use std::{
    panic::resume_unwind,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::task::JoinHandle;

/// The behaviour of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Plain,
    /// Panics on every fifth event, after it has recorded the event.
    Panicking,
    /// Filters objects by color.
    Filtering {
        color: u64,
    },
    /// Adds keys to a work queue.
    Enqueueing,
    /// Reads events from a stream, with pauses of up to this many milliseconds.
    Slow {
        pause: u64,
    },
}

impl Behaviour {
    /// The objects that the handler receives.
    pub(crate) fn accept(self) -> Accept {
        match self {
            Self::Filtering { color } => Accept::Color(color),
            _ => Accept::All,
        }
    }
}

/// A handler of an informer, and the log of its events.
pub(crate) struct Handler {
    pub(crate) handler_log: HandlerLog,
    subscription: Subscription,
}

enum Subscription {
    Registered(Registration),
    Stream { reader: JoinHandle<()>, load: StreamLoad },
}

/// The load of a stream after its last event; `None` while the reader pauses.
type StreamLoad = Arc<Mutex<Option<HandlerLoad>>>;

/// The parts of a world that a new handler uses.
pub(crate) struct HandlerContext<'a> {
    pub(crate) informer: &'a SharedInformer<Value>,
    pub(crate) work: &'a Work,
    pub(crate) log: &'a Arc<Log>,
    pub(crate) seed: u64,
    pub(crate) resync: Option<Duration>,
}

impl HandlerContext<'_> {
    fn register(&self, name: &str, handler: impl EventHandler<Value>) -> Subscription {
        let options = HandlerOptions::new().name(name).resync(self.resync);
        Subscription::Registered(self.informer.add_handler_with(handler, options))
    }

    fn read_stream(&self, pause: u64, recorder: HandlerLog) -> Subscription {
        let mut events = self.informer.events();
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let (log, work) = (Arc::clone(self.log), self.work.clone());
        let load = StreamLoad::default();
        let last_load = Arc::clone(&load);
        let set_load = move |load| *lock(&last_load) = load;
        let reader = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                recorder.record(&event);
                drop(event);
                // While the world converges, slow readers must catch up.
                let pause = if work.injects_failures() { pause } else { pause.min(10) };
                let millis = rng.u64(0..=pause).saturating_sub(pause / 2);
                set_load(None);
                if millis > 0 {
                    log.record_fault(Fault::SlowHandler);
                    tokio::time::sleep(Duration::from_millis(millis)).await;
                }
                set_load(Some(events.load()));
            }
        });
        Subscription::Stream { reader, load }
    }
}

impl Handler {
    pub(crate) fn add(behaviour: Behaviour, handler_log: HandlerLog, context: &HandlerContext<'_>) -> Self {
        let (name, recorder) = (handler_log.name(), handler_log.clone());
        let subscription = match behaviour {
            Behaviour::Plain => context.register(name, recorder.handler()),
            Behaviour::Panicking => {
                let log = Arc::clone(context.log);
                let mut calls = context.seed % 5;
                let handler = on_event(move |event: &Event<Value>| {
                    recorder.record(event);
                    calls += 1;
                    if calls.is_multiple_of(5) {
                        log.record_fault(Fault::HandlerPanic);
                        // Unwinds like a panic, but prints no message.
                        resume_unwind(Box::new("simulated"));
                    }
                });
                context.register(name, handler)
            }
            Behaviour::Filtering { color } => {
                let color = color_name(color);
                let accept = move |object: &Object<Value>| object.labels().get("color") == Some(&color);
                context.register(name, filter(accept, recorder.handler()))
            }
            Behaviour::Enqueueing => {
                let work = context.work.clone();
                let handler = on_event(move |event: &Event<Value>| {
                    recorder.record(event);
                    work.add(event.object().key());
                });
                context.register(name, handler)
            }
            Behaviour::Slow { pause } => context.read_stream(pause, recorder),
        };
        Self { handler_log, subscription }
    }

    /// Whether the handler has certainly received everything that was queued for it.
    pub(crate) fn is_idle(&self) -> bool {
        match &self.subscription {
            Subscription::Registered(registration) => registration.load().waiting == 0,
            Subscription::Stream { .. } => false,
        }
    }

    /// Whether the handler has received the objects that existed when it was added.
    pub(crate) fn is_synced(&self) -> bool {
        match &self.subscription {
            Subscription::Registered(registration) => registration.is_synced(),
            Subscription::Stream { .. } => true,
        }
    }

    fn coalesced(&self) -> u64 {
        let load = match &self.subscription {
            Subscription::Registered(registration) => Some(registration.load()),
            Subscription::Stream { load, .. } => *lock(load),
        };
        load.map_or(0, |load| load.coalesced)
    }

    /// Removes the handler. It must receive nothing afterwards.
    pub(crate) async fn remove(self, log: &Log) {
        if self.coalesced() > 0 {
            log.record_fault(Fault::Coalesced);
        }
        match self.subscription {
            Subscription::Registered(registration) => registration.remove().await,
            Subscription::Stream { reader, .. } => {
                reader.abort();
                let _ = reader.await;
            }
        }
        self.handler_log.close();
        if self.handler_log.is_shared() {
            log.fail(format_args!("{} is removed and its handler is not dropped", self.handler_log.name()));
        }
    }

    /// Call it when the informer has stopped: the handler must receive nothing more, except what a stream has buffered.
    pub(crate) async fn finish(self, log: &Log) -> HandlerLog {
        if self.coalesced() > 0 {
            log.record_fault(Fault::Coalesced);
        }
        match self.subscription {
            Subscription::Registered(_) => self.handler_log.close(),
            Subscription::Stream { reader, .. } => {
                let _ = reader.await;
            }
        }
        self.handler_log
    }
}
