//! How a reflector is configured.

use super::{backoff::Backoff, deadlines::Deadlines};
use kube_informer_wire::{ListOptions, ShardSelector, WatchOptions};
use std::{fmt, sync::Arc, time::Duration};

/// How a reflector is configured.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Page size; `None` leaves it to the rules of client-go.
    pub(crate) page_size: Option<u32>,
    /// Whether to try a streaming list.
    pub(crate) streaming: bool,
    /// Watches are opened with a timeout between this and twice this.
    pub(crate) min_watch: Duration,
    pub(crate) deadlines: Deadlines,
    pub(crate) backoff: Backoff,
    pub(crate) tweaks: Tweaks,
    /// Objects of other shards are dropped, because a server may ignore the selector of the request.
    pub(crate) shards: ShardSelector,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            page_size: None,
            streaming: true,
            min_watch: Duration::from_secs(300),
            deadlines: Deadlines::default(),
            backoff: Backoff::default(),
            tweaks: Tweaks::default(),
            shards: ShardSelector::everything(),
        }
    }
}

type Tweak<Options> = Arc<dyn Fn(&mut Options) + Send + Sync>;

/// Changes that the user makes to the options of each request. They are made before the reflector computes the
/// deadlines of the request.
#[derive(Clone, Default)]
pub(crate) struct Tweaks {
    list: Option<Tweak<ListOptions>>,
    watch: Option<Tweak<WatchOptions>>,
}

impl Tweaks {
    pub(crate) fn set_list(&mut self, tweak: impl Fn(&mut ListOptions) + Send + Sync + 'static) {
        self.list = Some(Arc::new(tweak));
    }

    pub(crate) fn set_watch(&mut self, tweak: impl Fn(&mut WatchOptions) + Send + Sync + 'static) {
        self.watch = Some(Arc::new(tweak));
    }

    pub(super) fn list(&self, mut options: ListOptions) -> ListOptions {
        if let Some(tweak) = &self.list {
            tweak(&mut options);
        }
        options
    }

    pub(super) fn watch(&self, mut options: WatchOptions) -> WatchOptions {
        if let Some(tweak) = &self.watch {
            tweak(&mut options);
        }
        options
    }
}

impl fmt::Debug for Tweaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (list, watch) = (self.list.is_some(), self.watch.is_some());
        f.debug_struct("Tweaks").field("list", &list).field("watch", &watch).finish()
    }
}
