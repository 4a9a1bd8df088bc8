//! Handlers of several tempers.

use crate::{
    handler_log::{HandlerLog, View},
    ledger::{Fault, Ledger},
    work::Work,
};
use futures_util::StreamExt;
use kube_informer::{CacheSnapshot, Event, Object, Registration, SharedInformer, filter, on_event};
use serde_json::Value;
use std::{panic::resume_unwind, sync::Arc, time::Duration};
use tokio::task::JoinHandle;

/// How a handler behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Temper {
    Plain,
    Panicking,
    /// Wants one color only.
    Filtering,
    /// Puts keys on a work queue.
    Feeding,
    /// A stream, read with pauses.
    Slow,
    /// Holds up its thread now and then.
    Blocking,
}

impl Temper {
    pub(crate) const ALL: [Self; 6] =
        [Self::Plain, Self::Panicking, Self::Filtering, Self::Feeding, Self::Slow, Self::Blocking];

    /// What it sees of an informer.
    pub(crate) fn view(self, selective: bool) -> View {
        View { selective, color: (self == Self::Filtering).then_some("blue") }
    }
}

/// A handler and what it was recorder.
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
        temper: Temper,
        log: HandlerLog,
        informer: &SharedInformer<Value>,
        work: &Work,
        ledger: &Arc<Ledger>,
        mut rng: fastrand::Rng,
    ) -> Self {
        let recorder = log.clone();
        let subscription = match temper {
            Temper::Plain => Subscription::Registered(informer.add_handler(recorder.handler())),
            Temper::Panicking => {
                let ledger = Arc::clone(ledger);
                let mut calls = 0;
                Subscription::Registered(informer.add_handler(on_event(move |event: &Event<Value>| {
                    recorder.record(event);
                    calls += 1;
                    if calls % 7 == 0 {
                        ledger.strike(Fault::HandlerPanic);
                        // Unwinds as a panic does, without the message on the terminal.
                        resume_unwind(Box::new("injected panic"));
                    }
                })))
            }
            Temper::Filtering => {
                let view = temper.view(false);
                let wanted = move |object: &Object<Value>| view.accepts(object);
                Subscription::Registered(informer.add_handler(filter(wanted, recorder.handler())))
            }
            Temper::Feeding => {
                let work = work.clone();
                Subscription::Registered(informer.add_handler(on_event(move |event: &Event<Value>| {
                    recorder.record(event);
                    work.add(event.object().key());
                })))
            }
            Temper::Blocking => {
                Subscription::Registered(informer.add_handler(on_event(move |event: &Event<Value>| {
                    recorder.record(event);
                    if rng.u8(0..20) == 0 {
                        // As users do who should not: the thread is held, not the task.
                        std::thread::sleep(Duration::from_millis(rng.u64(1..10)));
                    }
                })))
            }
            Temper::Slow => {
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

    /// Removes it; afterwards it is recorder nothing.
    pub(crate) async fn remove(self) {
        match self.subscription {
            Subscription::Registered(registration) => registration.remove().await,
            Subscription::Stream(reader) => {
                reader.abort();
                let _ = reader.await;
            }
        }
        self.log.end();
    }

    /// Its informer has stopped: nothing more may come, except what a stream still holds.
    pub(crate) async fn stopped(self) {
        if let Subscription::Stream(reader) = self.subscription {
            // It ends by itself.
            let _ = reader.await;
        }
        self.log.end();
    }
}
