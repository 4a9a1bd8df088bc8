//! Changes as a stream.

use super::{HandlerOptions, SharedInformer};
use crate::{
    handler::Event,
    listener::{Listener, Next},
    registration::{HandlerEnded, HandlerLoad, Registration},
};
use futures_core::Stream;
use futures_util::StreamExt;
use kube_informer_wire::DecodeError;
use serde::de::DeserializeOwned;
use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// The changes of an informer as a stream: everything the cache holds first, then every change.
///
/// The stream is a handler like any other: it has a backlog of its own, and if it is not polled for long it
/// gets the net effect of what it missed. Dropping it ends it. It ends by itself when the informer stops; after
/// [`Stop::Drain`](crate::Stop) queued events can still be taken from it.
#[must_use = "streams do nothing unless polled, and dropping this one ends it"]
pub struct EventStream<T> {
    registration: Registration,
    events: Pin<Box<dyn Stream<Item = Event<T>> + Send>>,
}

impl<T: 'static> SharedInformer<T> {
    /// The changes as a stream, for code that wants to `.await` between them.
    pub fn events(&self) -> EventStream<T> {
        self.events_with(HandlerOptions::default())
    }

    /// The changes as a stream with a name (`stream` by default) or a resync period of its own.
    pub fn events_with(&self, options: HandlerOptions) -> EventStream<T> {
        let name = options.name.unwrap_or_else(|| "stream".into());
        let resync = options.resync.unwrap_or(self.core.resync);
        let (registration, ()) = self.core.join(name, resync, |listener, core| {
            listener.set_pulled();
            if core.tasks.is_stopped() {
                listener.ended();
            }
        });
        let listener = Arc::clone(&registration.listener);
        EventStream { registration, events: Box::pin(futures_util::stream::unfold(listener, next).fuse()) }
    }

    /// Each object that is added or changed, decoded: what kube-rs calls `applied_objects`.
    #[must_use = "streams do nothing unless polled"]
    pub fn applied_objects(&self) -> impl Stream<Item = Result<Arc<T>, DecodeError>> + Send + use<T>
    where
        T: DeserializeOwned + Send + Sync,
    {
        self.events().filter_map(|event| {
            std::future::ready(match event {
                Event::Added { object, .. } | Event::Updated { new: object, .. } => Some(object.decode()),
                Event::Deleted(_) => None,
            })
        })
    }
}

async fn next<T>(listener: Arc<Listener>) -> Option<(Event<T>, Arc<Listener>)> {
    loop {
        match listener.next() {
            Next::Event(event) => return Some((event.cast(), listener)),
            Next::Wait => listener.wait().await,
            Next::End => {
                listener.ended();
                return None;
            }
        }
    }
}

impl<T> EventStream<T> {
    /// Resolves when everything that was there before the stream has been taken from it.
    pub async fn synced(&self) -> Result<(), HandlerEnded> {
        self.registration.synced().await
    }

    /// How far behind the reader is.
    pub fn load(&self) -> HandlerLoad {
        self.registration.load()
    }
}

impl<T> Stream for EventStream<T> {
    type Item = Event<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event<T>>> {
        self.events.as_mut().poll_next(context)
    }
}

impl<T> Drop for EventStream<T> {
    fn drop(&mut self) {
        self.registration.leave();
        self.registration.listener.ended();
    }
}

impl<T> fmt::Debug for EventStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventStream({:?})", self.load())
    }
}
