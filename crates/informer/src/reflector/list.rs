//! Listing the collection: by a streaming list or by pages.

use super::{
    Deadlines, Input, OpenStream, Reflector,
    machine::{Delivered, Failure},
    silent,
};
use crate::{
    delta_fifo::{Compare, Staged},
    status::InformerStatus,
    time::timeout,
};
use futures_util::StreamExt;
use kube_informer_wire::{
    ListMeta, ListOptions, ListPart, ListStream, ListWatchError, Malformed, Object, WatchEvent, WatchOptions,
};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// Objects between two updates of the status.
const STATUS_EVERY: usize = 256;

/// The use of the items of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Items {
    Stage,
    Skip,
}

impl Reflector {
    /// Stages a streaming list until it is complete.
    pub(super) async fn stream_list(&mut self, options: WatchOptions) -> Input {
        self.queue.room().await;
        self.begin_list();
        self.telemetry.streaming();
        let mut stream = match self.open(options).await {
            Ok(stream) => stream,
            Err(error) => return self.stream_failed(Failure::of(&error), error),
        };
        let Deadlines { streaming_list_event, streaming_list, .. } = self.deadlines;
        let mut last_object = Instant::now();
        loop {
            self.disk_room().await;
            let size = self.staged.len();
            let event = match timeout(streaming_list_event, stream.events.next()).await {
                Err(_) => return self.stalled(streaming_list_event, &stream.url),
                Ok(None) => return self.ended_early(&stream.url),
                Ok(Some(Err(error))) => return self.stream_failed(Failure::of(&error), error),
                Ok(Some(Ok(event))) => event,
            };
            if let Some(end) = self.stage_event(event, &mut stream) {
                return end;
            }
            if self.staged.len() > size {
                last_object = Instant::now();
                self.report_progress(None);
            } else if stream.opened.elapsed() >= streaming_list
                && last_object.elapsed() >= streaming_list_event
            {
                return self.stalled(streaming_list, &stream.url);
            }
        }
    }

    fn stalled(&mut self, after: Duration, url: &Arc<str>) -> Input {
        let error = silent("progress of the streaming list", after, url);
        self.stream_failed(Failure::of(&error), error);
        Input::StreamStalled
    }

    fn ended_early(&mut self, url: &Arc<str>) -> Input {
        let message = "the streaming list ended before it was complete".into();
        let error = ListWatchError::Broken { message, url: Arc::clone(url) };
        self.stream_failed(Failure::of(&error), error)
    }

    /// Stages one event of a streaming list. Returns the input that ends the list, if it does.
    fn stage_event(&mut self, event: WatchEvent, stream: &mut OpenStream) -> Option<Input> {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => self.stage(object),
            WatchEvent::Deleted(object) => self.staged.remove(object.key()),
            WatchEvent::Malformed(malformed) => self.stage_malformed(malformed),
            WatchEvent::Error(status) => {
                let failure = Failure::in_stream(&status);
                let error = ListWatchError::api(status, Arc::clone(&stream.url));
                return Some(self.stream_failed(failure, error));
            }
            WatchEvent::Bookmark(bookmark) if bookmark.initial_events_end => {
                stream.delivered = Delivered::Events;
                stream.in_version_order = true;
                let events = std::mem::replace(&mut stream.events, futures_util::stream::empty().boxed());
                self.stream = Some(OpenStream { events, url: Arc::clone(&stream.url), ..*stream });
                return Some(Input::StreamListed(bookmark.resource_version));
            }
            WatchEvent::Bookmark(_) => {}
        }
        None
    }

    /// Stages the first page of a list.
    pub(super) async fn list(&mut self, options: ListOptions) -> Input {
        self.queue.room().await;
        self.begin_list();
        self.list_page(options).await
    }

    /// Stages one page of a list.
    pub(super) async fn list_page(&mut self, options: ListOptions) -> Input {
        let page = options.continue_token.clone();
        let options = self.tweaks.list(options);
        let url = self.source.list_url(&options);
        match self.read_list(options, Items::Stage).await {
            // The token says where the next page begins: these pages would never end.
            Ok(meta) if page.is_some() && meta.continue_token == page => {
                let message = "the page has the continue token that it was requested with".into();
                self.list_failed(ListWatchError::Broken { message, url })
            }
            Ok(meta) => Input::Page { version: meta.resource_version, continue_token: meta.continue_token },
            Err(error) => self.list_failed(error),
        }
    }

    /// Sends a LIST and reads its response. Returns the metadata of the list.
    pub(super) async fn read_list(
        &mut self,
        options: ListOptions,
        items: Items,
    ) -> Result<ListMeta, ListWatchError> {
        match items {
            Items::Stage => self.telemetry.listing(),
            Items::Skip => self.telemetry.querying_version(),
        }
        let Deadlines { list_response, list_item, .. } = self.deadlines;
        let url = self.source.list_url(&options);
        let opening = timeout(list_response, self.source.list(options));
        let mut parts: ListStream = opening.await.map_err(|_| silent("response", list_response, &url))??;
        let mut whole = ListMeta::default();
        loop {
            self.disk_room().await;
            let part = timeout(list_item, parts.next()).await;
            match part.map_err(|_| silent("item of the list", list_item, &url))?.transpose()? {
                None => return Ok(whole),
                Some(ListPart::Meta(meta)) => merge(&mut whole, meta),
                Some(_) if items == Items::Skip => {}
                Some(ListPart::Item(object)) => {
                    self.stage(object);
                    self.report_progress(whole.remaining);
                }
                Some(ListPart::Malformed(malformed)) => self.stage_malformed(malformed),
            }
        }
    }

    fn begin_list(&mut self) {
        if let Some(reason) = self.reason {
            self.telemetry.relisting(reason);
        }
        self.stream = None;
        self.staged = Staged::begin(self.views.added());
        if !self.indexer.snapshot().is_partition_filled(self.partition) && !self.health.is_failing() {
            self.set_status(InformerStatus::Syncing { so_far: 0, of: None });
        }
    }

    /// Stages one listed object. Of an object in a known state only the key is staged.
    fn stage(&mut self, object: Object<Value>) {
        if !self.shards.matches(object.uid()) {
            return;
        }
        if !self.covers(object.key()) {
            let reason = "it is in another namespace than the requested one";
            return self.telemetry.quarantined(Malformed::new(reason));
        }
        let compare = self.machine.compare();
        if compare == Compare::Version && self.queue.is_known(&object, compare, &*self.indexer) {
            return self.staged.note(&object);
        }
        let object = self.transform.apply(object, &self.telemetry);
        if self.queue.is_known(&object, compare, &*self.indexer) {
            return self.staged.note(&object);
        }
        self.staged.insert(self.pack(object));
    }

    fn stage_malformed(&mut self, malformed: Malformed) {
        self.staged.malformed(malformed.key.as_ref());
        self.telemetry.quarantined(malformed);
    }

    fn report_progress(&mut self, remaining: Option<u64>) {
        let size = self.staged.len();
        if size % STATUS_EVERY == 1 && !self.indexer.snapshot().is_partition_filled(self.partition) {
            let so_far = size as u64;
            self.set_status(InformerStatus::Syncing {
                so_far,
                of: remaining.map(|remaining| so_far.saturating_add(remaining)),
            });
        }
    }
}

fn merge(whole: &mut ListMeta, part: ListMeta) {
    whole.resource_version = part.resource_version.or(whole.resource_version.take());
    whole.continue_token = part.continue_token.or(whole.continue_token.take());
    whole.remaining = part.remaining.or(whole.remaining);
}
