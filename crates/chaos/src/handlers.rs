//! Handlers of several tempers.

use crate::{
    ledger::{Fault, Ledger},
    tape::{Tape, View},
    work::Work,
};
use futures_util::StreamExt;
use kube_informer::{
    CacheSnapshot, Deleted, Event, EventHandler, Object, Registration, SharedInformer, filter, on_event,
};
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

/// A handler and what it was told.
pub(crate) struct Handler {
    tape: Tape,
    seat: Seat,
}

enum Seat {
    Registered(Registration),
    Stream(JoinHandle<()>),
}

impl Handler {
    pub(crate) fn add(
        temper: Temper,
        tape: Tape,
        informer: &SharedInformer<Value>,
        work: &Work,
        ledger: &Arc<Ledger>,
        mut rng: fastrand::Rng,
    ) -> Self {
        let told = tape.clone();
        let seat = match temper {
            Temper::Plain => Seat::Registered(informer.add_handler(told)),
            Temper::Panicking => {
                let ledger = Arc::clone(ledger);
                let mut calls = 0;
                Seat::Registered(informer.add_handler(on_event(move |event: &Event<Value>| {
                    told.take(event);
                    calls += 1;
                    if calls % 7 == 0 {
                        ledger.strike(Fault::HandlerPanic);
                        // Unwinds as a panic does, without the message on the terminal.
                        resume_unwind(Box::new("made up"));
                    }
                })))
            }
            Temper::Filtering => {
                let view = temper.view(false);
                let wanted = move |object: &Object<Value>| view.accepts(object);
                Seat::Registered(informer.add_handler(filter(wanted, told)))
            }
            Temper::Feeding => {
                let handler = Feeding { tape: told, work: work.clone() };
                Seat::Registered(informer.add_handler(handler))
            }
            Temper::Blocking => {
                Seat::Registered(informer.add_handler(on_event(move |event: &Event<Value>| {
                    told.take(event);
                    if rng.u8(0..20) == 0 {
                        // As users do who should not: the thread is held, not the task.
                        std::thread::sleep(Duration::from_millis(rng.u64(1..10)));
                    }
                })))
            }
            Temper::Slow => {
                let mut events = informer.events();
                Seat::Stream(tokio::spawn(async move {
                    while let Some(event) = events.next().await {
                        told.take(&event);
                        drop(event);
                        if rng.u8(0..3) == 0 {
                            tokio::time::sleep(Duration::from_millis(rng.u64(1..15))).await;
                        }
                    }
                }))
            }
        };
        Self { tape, seat }
    }

    pub(crate) fn compare(&self, cache: &CacheSnapshot<Value>) -> Result<(), String> {
        self.tape.compare(cache)
    }

    /// Removes it; afterwards it is told nothing.
    pub(crate) async fn remove(self) {
        match self.seat {
            Seat::Registered(registration) => registration.remove().await,
            Seat::Stream(reader) => {
                reader.abort();
                let _ = reader.await;
            }
        }
        self.tape.end();
    }

    /// Its informer has stopped: nothing more may come, except what a stream still holds.
    pub(crate) async fn stopped(self) {
        if let Seat::Stream(reader) = self.seat {
            // It ends by itself.
            let _ = reader.await;
        }
        self.tape.end();
    }
}

/// Puts keys on a work queue.
struct Feeding {
    tape: Tape,
    work: Work,
}

impl EventHandler<Value> for Feeding {
    fn on_add(&mut self, object: &Object<Value>, initial: bool) {
        self.tape.on_add(object, initial);
        self.work.add(object.key());
    }

    fn on_update(&mut self, old: &Object<Value>, new: &Object<Value>) {
        self.tape.on_update(old, new);
        self.work.add(new.key());
    }

    fn on_delete(&mut self, deleted: &Deleted<Value>) {
        self.tape.on_delete(deleted);
        self.work.add(deleted.key());
    }
}
