//! What a watch takes of the limits.

use std::sync::Arc;

use http::Extensions;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::engine::Engine;
use crate::status::Status;
use crate::verb::Verb;

/// Seconds until another try makes sense.
const RETRY_AFTER: u32 = 1;

/// How many watches a connection may still open. Rides along with each of its requests.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionWatches(Arc<Semaphore>);

impl ConnectionWatches {
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))))
    }
}

/// Held by a watch as long as it is open: one seat of the server, and one of its connection if it has one.
#[derive(Debug)]
pub(crate) struct WatchSeats {
    _server: OwnedSemaphorePermit,
    _connection: Option<OwnedSemaphorePermit>,
}

impl WatchSeats {
    /// `None` for what is no watch.
    pub(crate) fn take(engine: &Engine, verb: Verb, extensions: &Extensions) -> Result<Option<Self>, Status> {
        if verb != Verb::Watch {
            return Ok(None);
        }
        let seat = |seats: &Arc<Semaphore>, whose| {
            Arc::clone(seats).try_acquire_owned().map_err(|_| {
                let message =
                    format!("too many watches on this {whose}: close some, or raise the limit of the server");
                Status::too_many_requests(message, RETRY_AFTER)
            })
        };
        let connection = extensions.get::<ConnectionWatches>();
        let connection = connection.map(|watches| seat(&watches.0, "connection")).transpose()?;
        Ok(Some(Self { _server: seat(&engine.watches, "server")?, _connection: connection }))
    }
}
