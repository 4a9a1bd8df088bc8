//! Responses to WATCH requests and streaming lists.

use super::{ModelServer, ModelState, connection::Connection, connection::Next, requested_version};
use crate::{
    faults::{Condition, RequestFault, RequestInfo},
    reader::after_waits,
    selection::Part,
    totals::Fault,
    truth::ClientId,
};
use futures_util::{StreamExt, stream};
use kube_informer::{ListWatchError, WatchEvent, WatchOptions, WatchStream};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// The client's end of a connection. Dropping it closes the connection.
struct ClientStream {
    server: Arc<ModelServer>,
    id: u64,
    ended: bool,
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        self.server.lock().connections.remove(&self.id);
    }
}

pub(super) async fn respond(
    server: Arc<ModelServer>,
    client: ClientId,
    part: Part,
    options: WatchOptions,
) -> Result<WatchStream, ListWatchError> {
    let request = request_info(&options);
    if let Some(from) = request.watches_from() {
        server.truth.lock().watches_from(client, from);
    }
    let fault = server.intercept(client, request).await?;
    let id = server.lock().open(client, part, &options, fault)?;
    let client_stream = ClientStream { server, id, ended: false };
    Ok(stream::unfold(client_stream, |mut stream| async { Some((stream.next().await?, stream)) }).boxed())
}

fn request_info(options: &WatchOptions) -> RequestInfo {
    let version = requested_version(options.resource_version.as_deref());
    RequestInfo {
        write: false,
        watch: true,
        streaming: options.send_initial_events == Some(true),
        version,
        continued: false,
        probe: false,
    }
}

impl ModelState {
    fn open(
        &mut self,
        client: ClientId,
        part: Part,
        options: &WatchOptions,
        fault: Option<RequestFault>,
    ) -> Result<u64, ListWatchError> {
        let requested = requested_version(options.resource_version.as_deref());
        let streaming = options.send_initial_events == Some(true);
        let deadline = options.timeout.map(|timeout| Instant::now() + timeout);
        let mut connection =
            Connection::new(client, self.truth.lock().history.epoch(), options.allow_bookmarks, deadline);
        let version = self.choose_version(requested, fault)?;
        match requested {
            Some(from) if !streaming && from > 0 => {
                connection.cursor = from;
                let compacted = self.truth.lock().history.compacted;
                if from < compacted {
                    self.expire(&mut connection)?;
                } else if let Some(RequestFault::Duplicate(count)) = fault {
                    connection.cursor = self.truth.lock().history.rewind(from, count, &part);
                    if connection.cursor < from {
                        self.log.record_fault(Fault::Duplicate);
                    }
                }
            }
            _ => {
                connection.initial = self.objects(version, &part).into();
                connection.cursor = version;
                connection.initial_end = streaming.then_some(version);
                connection.no_end_bookmark = streaming && self.has(Condition::NoEndBookmark);
                if connection.no_end_bookmark {
                    self.log.record_fault(Fault::NoEndBookmark);
                }
            }
        }
        if let Some(RequestFault::BreakAfter(after)) = fault {
            connection.break_after = Some(after % (connection.initial.len() + 4));
        }
        self.log.note(format_args!(
            "client {client} watches from @{}, streaming: {streaming}",
            connection.cursor
        ));
        connection.part = part;
        self.opened += 1;
        self.connections.insert(self.opened, connection);
        Ok(self.opened)
    }

    /// The delay of the next event of a connection.
    fn delay(&mut self, id: u64) -> Delay {
        match self.connections.get(&id).and_then(|connection| connection.faults.slow) {
            Some(slow) => Delay::Time(slow),
            None => match self.rng.u8(0..16) {
                0 => Delay::Time(Duration::from_millis(1)),
                1..4 => Delay::Yield,
                _ => Delay::None,
            },
        }
    }

    fn deadline(&self, id: u64) -> Option<Instant> {
        self.connections.get(&id).and_then(|connection| connection.deadline)
    }
}

enum Delay {
    None,
    Yield,
    Time(Duration),
}

impl ClientStream {
    async fn next(&mut self) -> Option<Result<WatchEvent, ListWatchError>> {
        if self.ended {
            return None;
        }
        let (server, id) = (Arc::clone(&self.server), self.id);
        server.lock().polled(id);
        after_waits(self.receive(), || server.lock().waited(id)).await
    }

    async fn receive(&mut self) -> Option<Result<WatchEvent, ListWatchError>> {
        let delay = self.server.lock().delay(self.id);
        match delay {
            Delay::None => {}
            Delay::Yield => tokio::task::yield_now().await,
            Delay::Time(time) => tokio::time::sleep(time).await,
        }
        let server = Arc::clone(&self.server);
        loop {
            let mut changed = std::pin::pin!(server.changed.notified());
            // Registered before the state is read, so that no change is missed.
            changed.as_mut().enable();
            let next = server.lock().next(self.id);
            match next {
                Next::Event(event) => return Some(Ok(*event)),
                Next::Fail(error) => return self.end(Some(Err(error))),
                Next::End => return self.end(None),
                Next::Wait => self.wait(changed).await,
                Next::Stall => changed.await,
            }
        }
    }

    fn end(
        &mut self,
        last: Option<Result<WatchEvent, ListWatchError>>,
    ) -> Option<Result<WatchEvent, ListWatchError>> {
        self.ended = true;
        last
    }

    /// Waits until something changes, or until the watch times out.
    async fn wait(&self, changed: impl Future<Output = ()>) {
        let deadline = self.server.lock().deadline(self.id);
        let timed_out = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = changed => {}
            () = timed_out => {}
        }
    }
}
