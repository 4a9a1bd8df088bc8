//! The body of a response between server and replica.

use super::{BoxError, Network, Process, reset};
use bytes::Bytes;
use futures_util::{Stream, stream};
use http_body::Frame;
use http_body_util::BodyExt;
use kube::client::Body;
use std::sync::Arc;

/// The body of a response. It is interrupted by faults of the link.
pub(super) struct ResponseStream {
    network: Arc<Network>,
    process: Arc<Process>,
    generation: u64,
    resets: u64,
    watch: bool,
    body: Body,
    ended: bool,
}

/// Whether a body may deliver more.
enum Gate {
    Open,
    Closed,
    Reset,
}

type Item = Result<Frame<Bytes>, BoxError>;

impl ResponseStream {
    pub(super) fn new(
        network: &Arc<Network>,
        process: &Arc<Process>,
        generation: u64,
        resets: u64,
        watch: bool,
        body: Body,
    ) -> Self {
        let (network, process) = (Arc::clone(network), Arc::clone(process));
        Self { network, process, generation, resets, watch, body, ended: false }
    }

    pub(super) fn frames(self) -> impl Stream<Item = Item> + Send {
        stream::unfold(self, |mut body| async { Some((body.next().await?, body)) })
    }

    async fn next(&mut self) -> Option<Item> {
        if self.ended {
            return None;
        }
        let network = Arc::clone(&self.network);
        loop {
            let mut changed = std::pin::pin!(network.changed.notified());
            // Registered before the state is read, so that no change is missed.
            changed.as_mut().enable();
            match self.gate() {
                Gate::Reset => {
                    self.ended = true;
                    return Some(Err(reset()));
                }
                Gate::Closed => changed.await,
                Gate::Open => tokio::select! {
                    biased;
                    () = changed => {}
                    frame = self.body.frame() => return frame.map(|frame| frame.map_err(Into::into)),
                },
            }
        }
    }

    fn gate(&self) -> Gate {
        if self.process.is_suspended() || self.process.is_dead() {
            return Gate::Closed;
        }
        let generation = self.network.lock().generation;
        let link = self.network.link(&self.process);
        if generation != self.generation || link.resets != self.resets {
            return Gate::Reset;
        }
        match link.partitioned || (self.watch && link.stalled) {
            true => Gate::Closed,
            false => Gate::Open,
        }
    }
}
