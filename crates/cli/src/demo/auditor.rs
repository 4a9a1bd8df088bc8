//! A handler that writes down what it hears, and can be stalled.

use super::journal::Journal;
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{Deleted, Event, EventStream, SharedInformer};
use std::sync::Mutex;
use tokio::sync::watch;

/// Follows the pods as a stream. While stalled it takes nothing from it: the informer goes on, and what this reader misses becomes net effects.
pub(crate) struct Auditor {
    events: Mutex<Option<EventStream<Pod>>>,
    stalled: watch::Sender<bool>,
    journal: Journal,
}

impl Auditor {
    pub(crate) fn new(pods: &SharedInformer<Pod>, journal: Journal) -> Self {
        Self { events: Mutex::new(Some(pods.events())), stalled: watch::Sender::new(false), journal }
    }

    /// The switch.
    pub(crate) fn stalled(&self) -> watch::Sender<bool> {
        self.stalled.clone()
    }

    /// Listens until the informer stops.
    pub(crate) async fn run(&self) {
        let taken = self.events.lock().ok().and_then(|mut events| events.take());
        let Some(mut events) = taken else { return };
        let mut stalled = self.stalled.subscribe();
        loop {
            if stalled.wait_for(|stalled| !*stalled).await.is_err() {
                return;
            }
            tokio::select! {
                biased;
                _ = stalled.changed() => {}
                event = events.next() => match event {
                    Some(event) => self.journal.write(line(&event)),
                    None => std::future::pending().await,
                },
            }
        }
    }
}

fn line(event: &Event<Pod>) -> String {
    let key = event.object().key();
    match event {
        Event::Added { .. } => format!("+ pod {key}"),
        Event::Updated { new, .. } if new.is_deleting() => format!("~ pod {key} is ending"),
        Event::Updated { .. } => format!("~ pod {key}"),
        Event::Deleted(Deleted::Seen(_)) => format!("- pod {key}"),
        Event::Deleted(Deleted::FinalStateUnknown { .. }) => {
            format!("- pod {key} (tombstone: its end was missed)")
        }
    }
}
