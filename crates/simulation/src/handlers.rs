//! Handlers of every temper.

use crate::{
    log::Log,
    tape::{Accept, Tape},
    totals::Fault,
    work::Work,
};
use futures_util::StreamExt;
use kube_informer::{
    Deleted, EventHandler, HandlerLoad, HandlerOptions, Object, ObjectKey, Registration, SharedInformer,
    filter,
};
use serde_json::Value;
use std::{panic::resume_unwind, sync::Arc, time::Duration};
use tokio::task::JoinHandle;

/// How a handler behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Temper {
    Plain,
    Panicking,
    Filtering {
        color: u64,
    },
    /// Puts keys on a work queue.
    Feeding,
    /// Reads a stream and pauses up to so many milliseconds after each event.
    Slow {
        pause: u64,
    },
}

/// A handler and what it was told.
pub(crate) struct Handler {
    pub(crate) tape: Tape,
    seat: Seat,
}

enum Seat {
    Registered(Registration),
    Stream { reader: JoinHandle<()>, load: Arc<std::sync::Mutex<Option<HandlerLoad>>> },
}

/// What a handler needs of the world.
pub(crate) struct Surroundings<'a> {
    pub(crate) informer: &'a SharedInformer<Value>,
    pub(crate) work: &'a Work,
    pub(crate) log: &'a Arc<Log>,
    pub(crate) seed: u64,
    pub(crate) resync: Option<Duration>,
}

pub(crate) fn accept(temper: Temper) -> Accept {
    match temper {
        Temper::Filtering { color } => Accept::Color(color),
        _ => Accept::All,
    }
}

impl Handler {
    pub(crate) fn add(temper: Temper, tape: Tape, around: &Surroundings<'_>) -> Self {
        let options = HandlerOptions::new().name(tape.name()).resync(around.resync);
        let informer = around.informer;
        let seat = match temper {
            Temper::Plain => Seat::Registered(informer.add_handler_with(tape.clone(), options)),
            Temper::Panicking => {
                let handler =
                    Panicking { tape: tape.clone(), log: Arc::clone(around.log), calls: around.seed % 5 };
                Seat::Registered(informer.add_handler_with(handler, options))
            }
            Temper::Filtering { color } => {
                let name = crate::history::color_name(color);
                let wanted = move |object: &Object<Value>| object.labels().get("color") == Some(&name);
                Seat::Registered(informer.add_handler_with(filter(wanted, tape.clone()), options))
            }
            Temper::Feeding => {
                let handler = Feeding { tape: tape.clone(), work: around.work.clone() };
                Seat::Registered(informer.add_handler_with(handler, options))
            }
            Temper::Slow { pause } => Self::read(pause, tape.clone(), around),
        };
        Self { tape, seat }
    }

    fn read(pause: u64, tape: Tape, around: &Surroundings<'_>) -> Seat {
        let mut events = around.informer.events();
        let mut rng = fastrand::Rng::with_seed(around.seed);
        let (log, work) = (Arc::clone(around.log), around.work.clone());
        let load = Arc::new(std::sync::Mutex::new(None));
        let seen = Arc::clone(&load);
        let reader = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                tape.take(&event);
                drop(event);
                // At rest even the slowest catches up.
                let pause = if work.is_clumsy() { pause } else { pause.min(10) };
                let millis = rng.u64(0..=pause).saturating_sub(pause / 2);
                *seen.lock().expect("nobody panics with it") = None;
                if millis > 0 {
                    log.strike(Fault::SlowHandler);
                    tokio::time::sleep(Duration::from_millis(millis)).await;
                }
                *seen.lock().expect("nobody panics with it") = Some(events.load());
            }
        });
        Seat::Stream { reader, load }
    }

    /// Whether it has been told everything that there is to tell, as far as can be seen.
    pub(crate) fn is_idle(&self) -> bool {
        match &self.seat {
            Seat::Registered(registration) => registration.load().waiting == 0,
            Seat::Stream { .. } => false,
        }
    }

    /// Whether it has been told everything that was there before it.
    pub(crate) fn is_synced(&self) -> bool {
        match &self.seat {
            Seat::Registered(registration) => registration.is_synced(),
            Seat::Stream { .. } => true,
        }
    }

    fn coalesced(&self) -> u64 {
        let load = match &self.seat {
            Seat::Registered(registration) => Some(registration.load()),
            Seat::Stream { load, .. } => *load.lock().expect("nobody panics with it"),
        };
        load.map_or(0, |load| load.coalesced)
    }

    /// Removes it; afterwards it is told nothing.
    pub(crate) async fn remove(self, log: &Log) {
        if self.coalesced() > 0 {
            log.strike(Fault::Coalesced);
        }
        match self.seat {
            Seat::Registered(registration) => registration.remove().await,
            Seat::Stream { reader, .. } => {
                reader.abort();
                let _ = reader.await;
            }
        }
        self.tape.end();
        if self.tape.is_shared() {
            log.fail(format_args!("{} is removed and still held", self.tape.name()));
        }
    }

    /// Its informer has stopped: nothing more may come, except what a stream still holds.
    pub(crate) async fn stopped(self, log: &Log) -> Tape {
        if self.coalesced() > 0 {
            log.strike(Fault::Coalesced);
        }
        match self.seat {
            Seat::Registered(_) => self.tape.end(),
            // It ends by itself.
            Seat::Stream { reader, .. } => {
                let _ = reader.await;
            }
        }
        self.tape
    }
}

/// Panics now and then, after it has written down what it was told.
struct Panicking {
    tape: Tape,
    log: Arc<Log>,
    calls: u64,
}

impl Panicking {
    fn maybe(&mut self) {
        self.calls += 1;
        if self.calls.is_multiple_of(5) {
            self.log.strike(Fault::HandlerPanic);
            // Unwinds as a panic does, without the message on the terminal.
            resume_unwind(Box::new("simulated"));
        }
    }
}

impl EventHandler<Value> for Panicking {
    fn on_add(&mut self, object: &Object<Value>, initial: bool) {
        self.tape.on_add(object, initial);
        self.maybe();
    }

    fn on_update(&mut self, old: &Object<Value>, new: &Object<Value>) {
        self.tape.on_update(old, new);
        self.maybe();
    }

    fn on_delete(&mut self, deleted: &Deleted<Value>) {
        self.tape.on_delete(deleted);
        self.maybe();
    }
}

/// Puts keys on a work queue.
struct Feeding {
    tape: Tape,
    work: Work,
}

impl Feeding {
    fn feed(&self, key: &ObjectKey) {
        self.work.add(key);
    }
}

impl EventHandler<Value> for Feeding {
    fn on_add(&mut self, object: &Object<Value>, initial: bool) {
        self.tape.on_add(object, initial);
        self.feed(object.key());
    }

    fn on_update(&mut self, old: &Object<Value>, new: &Object<Value>) {
        self.tape.on_update(old, new);
        self.feed(new.key());
    }

    fn on_delete(&mut self, deleted: &Deleted<Value>) {
        self.tape.on_delete(deleted);
        self.feed(deleted.key());
    }
}
