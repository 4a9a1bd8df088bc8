//! Answering a WATCH, or a streaming list.

use super::{Server, Source, connection::Connection, connection::Next, version_asked};
use crate::{
    totals::Fault,
    trouble::{Asked, Condition, Trap},
    truth::ClientId,
};
use futures_util::{StreamExt, stream};
use kube_informer::{ListWatchError, WatchEvent, WatchOptions, WatchStream};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// The client's end of a connection; the server forgets it when this is dropped.
struct Watching {
    source: Arc<Source>,
    id: u64,
    ended: bool,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.source.lock().connections.remove(&self.id);
    }
}

pub(super) async fn answer(
    source: Arc<Source>,
    client: ClientId,
    namespace: Option<String>,
    options: WatchOptions,
) -> Result<WatchStream, ListWatchError> {
    let asked = asked(&options);
    if let Some(from) = asked.from() {
        source.truth.lock().asks_from(client, from);
    }
    let trap = source.arrive(asked).await?;
    let id = source.lock().open(client, namespace, &options, trap)?;
    let watching = Watching { source, id, ended: false };
    Ok(stream::unfold(watching, |mut watching| async { Some((watching.next().await?, watching)) }).boxed())
}

fn asked(options: &WatchOptions) -> Asked {
    let version = version_asked(options.resource_version.as_deref());
    Asked {
        write: false,
        watch: true,
        streaming: options.send_initial_events == Some(true),
        version,
        continued: false,
        probe: false,
    }
}

impl Server {
    fn open(
        &mut self,
        client: ClientId,
        namespace: Option<String>,
        options: &WatchOptions,
        trap: Option<Trap>,
    ) -> Result<u64, ListWatchError> {
        let asked = version_asked(options.resource_version.as_deref());
        let streaming = options.send_initial_events == Some(true);
        let deadline = options.timeout.map(|timeout| Instant::now() + timeout);
        let mut connection =
            Connection::new(client, self.truth.lock().history.epoch(), options.allow_bookmarks, deadline);
        let chosen = self.choose(asked, trap)?;
        match asked {
            Some(from) if !streaming && from > 0 => {
                connection.cursor = from;
                let floor = self.truth.lock().history.floor;
                if from < floor {
                    self.expired(&mut connection)?;
                } else if let Some(Trap::Duplicate(count)) = trap {
                    connection.cursor = self.truth.lock().history.rewind(from, count, namespace.as_deref());
                    if connection.cursor < from {
                        self.log.strike(Fault::Duplicate);
                    }
                }
            }
            _ => {
                connection.initial = self.objects(chosen, namespace.as_deref()).into();
                connection.cursor = chosen;
                connection.complete = streaming.then_some(chosen);
                connection.endless = streaming && self.has(Condition::NoEndBookmark);
                if connection.endless {
                    self.log.strike(Fault::NoEndBookmark);
                }
            }
        }
        if let Some(Trap::BreakAfter(after)) = trap {
            connection.break_after = Some(after % (connection.initial.len() + 4));
        }
        self.log.note(format_args!(
            "client {client} watches from @{}, streaming: {streaming}",
            connection.cursor
        ));
        connection.namespace = namespace;
        self.opened += 1;
        self.connections.insert(self.opened, connection);
        Ok(self.opened)
    }

    /// How long the next event of a connection takes.
    fn delay(&mut self, id: u64) -> Delay {
        match self.connections.get(&id).and_then(|connection| connection.slow) {
            Some(slow) => Delay::Time(slow),
            None => match self.rng.u8(0..16) {
                0 => Delay::Time(Duration::from_millis(1)),
                1..4 => Delay::Turn,
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
    Turn,
    Time(Duration),
}

impl Watching {
    async fn next(&mut self) -> Option<Result<WatchEvent, ListWatchError>> {
        if self.ended {
            return None;
        }
        self.source.lock().reads_on(self.id);
        let delay = self.source.lock().delay(self.id);
        match delay {
            Delay::None => {}
            Delay::Turn => tokio::task::yield_now().await,
            Delay::Time(time) => tokio::time::sleep(time).await,
        }
        let source = Arc::clone(&self.source);
        loop {
            let mut changed = std::pin::pin!(source.changed.notified());
            // Waits from here on, so that no change is missed after looking.
            changed.as_mut().enable();
            let next = source.lock().next(self.id);
            match next {
                Next::Event(event) => return Some(Ok(*event)),
                Next::Fail(error) => return self.end(Some(Err(error))),
                Next::End => return self.end(None),
                Next::Wait => self.until_due(changed).await,
                Next::Never => std::future::pending().await,
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

    /// Until something changes, or time is up.
    async fn until_due(&self, changed: impl Future<Output = ()>) {
        let deadline = self.source.lock().deadline(self.id);
        let up = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = changed => {}
            () = up => {}
        }
    }
}
