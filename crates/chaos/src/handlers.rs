//! Handlers with different behaviours.

use crate::{
    handler_log::{HandlerLog, View},
    report::{Fault, Report},
    work::Work,
};
use futures_util::StreamExt;
use kube_informer::{CacheSnapshot, Event, Object, Registration, SharedInformer, filter, on_event};
use serde_json::Value;
use std::{panic::resume_unwind, sync::Arc, time::Duration};
use tokio::task::JoinHandle;

/// The behaviour of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Plain,
    Panicking,
    /// Filters objects by color.
    Filtering,
    /// Adds keys to a work queue.
    Enqueuing,
    /// Reads events from a stream, with pauses.
    SlowStream,
    /// Sometimes blocks its thread.
    Blocking,
}

impl Behaviour {
    pub(crate) const ALL: [Self; 6] =
        [Self::Plain, Self::Panicking, Self::Filtering, Self::Enqueuing, Self::SlowStream, Self::Blocking];

    /// The objects of an informer that the handler sees.
    pub(crate) fn view(self, selective: bool) -> View {
        View { selective, color: (self == Self::Filtering).then_some("blue") }
    }
}

/// A handler of an informer, and the log of its events.
pub(crate) struct Handler {
    log: HandlerLog,
    subscription: Subscription,
}

enum Subscription {
    Registered(Registration),
    Stream(JoinHandle<()>),
}

impl Handler {
    pub(crate) fn add(
        behaviour: Behaviour,
        log: HandlerLog,
        informer: &SharedInformer<Value>,
        work: &Work,
        report: &Arc<Report>,
        mut rng: fastrand::Rng,
    ) -> Self {
        let recorder = log.clone();
        let subscription = match behaviour {
            Behaviour::Plain => Subscription::Registered(informer.add_handler(recorder.handler())),
            Behaviour::Panicking => {
                let report = Arc::clone(report);
                let mut calls = 0;
                Subscription::Registered(informer.add_handler(on_event(move |event: &Event<Value>| {
                    recorder.record(event);
                    calls += 1;
                    if calls % 7 == 0 {
                        report.record_fault(Fault::HandlerPanic);
                        // Unwinds like a panic, but prints no message.
                        resume_unwind(Box::new("injected panic"));
                    }
                })))
            }
            Behaviour::Filtering => {
                let view = behaviour.view(false);
                let accept = move |object: &Object<Value>| view.accepts(object);
                Subscription::Registered(informer.add_handler(filter(accept, recorder.handler())))
            }
            Behaviour::Enqueuing => {
                let work = work.clone();
                Subscription::Registered(informer.add_handler(on_event(move |event: &Event<Value>| {
                    recorder.record(event);
                    work.add(event.object().key());
                })))
            }
            Behaviour::Blocking => {
                Subscription::Registered(informer.add_handler(on_event(move |event: &Event<Value>| {
                    recorder.record(event);
                    if rng.u8(0..20) == 0 {
                        // A user mistake: it blocks the thread, not the task.
                        std::thread::sleep(Duration::from_millis(rng.u64(1..10)));
                    }
                })))
            }
            Behaviour::SlowStream => {
                let mut events = informer.events();
                Subscription::Stream(tokio::spawn(async move {
                    while let Some(event) = events.next().await {
                        recorder.record(&event);
                        drop(event);
                        if rng.u8(0..3) == 0 {
                            tokio::time::sleep(Duration::from_millis(rng.u64(1..15))).await;
                        }
                    }
                }))
            }
        };
        Self { log, subscription }
    }

    pub(crate) fn compare(&self, cache: &CacheSnapshot<Value>) -> Result<(), String> {
        self.log.compare(cache)
    }

    /// Removes the handler. It must receive nothing afterwards.
    pub(crate) async fn remove(self) {
        match self.subscription {
            Subscription::Registered(registration) => registration.remove().await,
            Subscription::Stream(reader) => {
                reader.abort();
                let _ = reader.await;
            }
        }
        self.log.close();
    }

    /// Call it when the informer has stopped: the handler must receive nothing more, except what a stream has buffered.
    pub(crate) async fn finish(self) {
        if let Subscription::Stream(reader) = self.subscription {
            let _ = reader.await;
        }
        self.log.close();
    }
}
