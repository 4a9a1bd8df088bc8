//! The part of upkeep for content that is in a file: writing it, and fetching objects again whose content cannot be read.

use crate::{indexer::Indexer, refetch::Refetch, telemetry::Telemetry, time};
use kube_informer_wire::{ObjectKey, Packer, sync::lock};
use std::{
    panic::resume_unwind,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{task::spawn_blocking, time::Instant};

/// The first and the longest wait after a write that failed.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// Objects whose content cannot be read are looked for at most this often.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);

/// Writes content to disk, and looks for content that was lost there or in the file of a saved cache.
///
/// 1. A write that fails is reported once, and retried after a delay. Everything stays in memory meanwhile.
/// 2. Content that cannot be read is reported, and requested from the server again.
/// 3. The disk is used in threads for blocking work only.
pub(crate) struct DiskUpkeep {
    pub(crate) packer: Arc<Packer>,
    pub(crate) indexer: Arc<Indexer>,
    pub(crate) refetch: Arc<Refetch>,
    pub(crate) telemetry: Arc<Telemetry>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When writing is retried after it failed, and the delay before that.
    retry: Option<(Instant, Duration)>,
    /// When lost content is looked for again.
    look: Option<Instant>,
}

impl DiskUpkeep {
    pub(crate) fn new(
        packer: &Arc<Packer>,
        indexer: &Arc<Indexer>,
        refetch: Arc<Refetch>,
        telemetry: &Arc<Telemetry>,
    ) -> Self {
        Self {
            packer: Arc::clone(packer),
            indexer: Arc::clone(indexer),
            refetch,
            telemetry: Arc::clone(telemetry),
            state: Mutex::default(),
        }
    }

    /// Whether [`work`](Self::work) has something to do.
    pub(crate) fn is_due(&self) -> bool {
        self.is_spill_due() || self.is_look_due()
    }

    fn is_spill_due(&self) -> bool {
        self.packer.is_spill_due() && lock(&self.state).retry.is_none_or(|(at, _)| at <= Instant::now())
    }

    fn is_look_due(&self) -> bool {
        self.packer.lost() > 0 && lock(&self.state).look.is_none_or(|at| at <= Instant::now())
    }

    /// When it may become due without being woken. What is due already needs no timer.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        let State { retry, look } = &*lock(&self.state);
        let now = Instant::now();
        retry.map(|(at, _)| at).into_iter().chain(*look).filter(|at| *at > now).min()
    }

    /// Writes what is to be written, unless that failed a moment ago, and looks for lost content.
    pub(crate) async fn work(&self) {
        while self.is_spill_due() {
            let packer = Arc::clone(&self.packer);
            match blocking(move || packer.spill()).await {
                Some(Ok(())) => {
                    if lock(&self.state).retry.take().is_some() {
                        self.telemetry.disk_write_recovered();
                    }
                    self.telemetry.disk_bytes(self.packer.file_bytes());
                }
                Some(Err(error)) => self.write_failed(&error),
                None => return,
            }
        }
        if self.is_look_due() {
            lock(&self.state).look = time::after(Instant::now(), LOOK_INTERVAL);
            self.request_lost();
        }
    }

    fn write_failed(&self, error: &std::io::Error) {
        let mut state = lock(&self.state);
        let (first, longest) = RETRY;
        let delay = state.retry.map_or(first, |(_, delay)| delay.saturating_mul(2).min(longest));
        let is_first = state.retry.is_none();
        state.retry = time::after(Instant::now(), delay).map(|at| (at, delay));
        drop(state);
        self.telemetry.disk_write_failed(error.to_string(), is_first);
    }

    /// Requests cached objects whose content is lost. Objects that only readers hold are not fetched: the server does not have
    /// these states any more.
    fn request_lost(&self) {
        let snapshot = self.indexer.snapshot();
        let lost: Vec<&ObjectKey> =
            snapshot.objects().filter(|object| object.is_content_lost()).map(|object| object.key()).collect();
        if let Some(first) = lost.first() {
            self.telemetry.contents_lost(lost.len(), (*first).clone());
        }
        lost.iter().for_each(|key| self.refetch.request(key.namespace()));
    }
}

/// Runs something that blocks; `None` if the runtime is shut down.
pub(crate) async fn blocking<R: Send + 'static>(run: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    match spawn_blocking(run).await {
        Ok(result) => Some(result),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => None,
        },
    }
}
