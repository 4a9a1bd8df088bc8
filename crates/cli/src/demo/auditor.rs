//! A consumer that writes events to the journal, and can be stalled.

use super::journal::Journal;
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{Deleted, Event, EventStream, SharedInformer};
use std::sync::Mutex;
use tokio::sync::watch;

/// Reads the events of pods as a stream. While stalled it reads nothing: the informer continues, and pending events are
/// coalesced.
pub(crate) struct Auditor {
    events: Mutex<Option<EventStream<Pod>>>,
    stalled: watch::Sender<bool>,
    journal: Journal,
}

impl Auditor {
    pub(crate) fn new(pods: &SharedInformer<Pod>, journal: Journal) -> Self {
        Self { events: Mutex::new(Some(pods.events())), stalled: watch::Sender::new(false), journal }
    }

    /// Controls whether it is stalled.
    pub(crate) fn stalled(&self) -> watch::Sender<bool> {
        self.stalled.clone()
    }

    /// Reads events until the informer stops.
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
        Event::Updated { new, .. } if new.is_deleting() => format!("~ pod {key} is terminating"),
        Event::Updated { .. } => format!("~ pod {key}"),
        Event::Deleted(Deleted::Seen(_)) => format!("- pod {key}"),
        Event::Deleted(Deleted::FinalStateUnknown { .. }) => {
            format!("- pod {key} (tombstone: the delete was missed)")
        }
    }
}
