//! The state of a response in flight.

use super::{State, request::status};
use crate::{
    faults::{RequestFault, RequestInfo, StreamFault, StreamFaults, Termination},
    log::Log,
    totals::Fault,
    truth::ClientId,
};

/// A response in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    client: ClientId,
    generation: u64,
    /// The epoch of the history that the response shows.
    pub(super) epoch: u32,
    watch: bool,
    /// A streaming list that is not yet complete.
    pub(super) initial: bool,
    /// The client has received the end of the body.
    pub(super) ended: bool,
    pub(super) faults: StreamFaults,
    /// The connection is reset after this many bytes.
    break_after: Option<u64>,
    /// The body ends after this many bytes, as if it were complete.
    truncate_after: Option<u64>,
    /// The body arrives in chunks of a few bytes.
    pub(super) trickle: bool,
    /// The body begins with events that were sent before.
    pub(super) repeats: bool,
}

/// The next step of a response in flight.
pub(super) enum NextStep {
    Continue,
    /// Delivers nothing until the connection is reset.
    Stall,
    Break,
    /// Ends at once, as if the body were complete.
    Truncate,
    /// Ends after the bytes that are already sent.
    End,
    /// Sends this event, and ends.
    SendError(String),
}

/// The number of bytes that counts as one part of a body.
const PART: usize = 173;

impl InFlight {
    pub(super) fn new(
        client: ClientId,
        generation: u64,
        epoch: u32,
        request: RequestInfo,
        fault: Option<RequestFault>,
    ) -> Self {
        let bytes = |parts: usize| Some((parts * PART) as u64);
        Self {
            client,
            generation,
            epoch,
            watch: request.watch,
            initial: request.streaming,
            ended: false,
            faults: StreamFaults::default(),
            break_after: if let Some(RequestFault::BreakAfter(parts)) = fault { bytes(parts) } else { None },
            truncate_after: if let Some(RequestFault::MalformedList(parts)) = fault {
                bytes(parts)
            } else {
                None
            },
            trickle: fault == Some(RequestFault::Trickle),
            repeats: matches!(fault, Some(RequestFault::Duplicate(_))),
        }
    }

    /// Whether the response is a watch of this client that delivers changes, as far as the server knows.
    pub(super) fn is_live(&self, client: ClientId) -> bool {
        self.client == client && self.watch && !self.initial && self.is_open()
    }

    fn is_open(&self) -> bool {
        !self.ended && self.faults.is_open()
    }

    /// Whether a fault applies to this response. The server decides itself when it sends bookmarks.
    pub(super) fn is_affected_by(&self, fault: StreamFault) -> bool {
        let also_lists = matches!(
            fault,
            StreamFault::Break | StreamFault::Truncate | StreamFault::Stall | StreamFault::Slow(_)
        );
        self.is_open() && (self.watch || also_lists) && fault != StreamFault::Bookmark
    }
}

impl State {
    /// The next step of a response of which the client has received this many bytes.
    pub(super) fn next_step(&mut self, id: u64, received: u64, log: &Log) -> NextStep {
        let generation = self.generation;
        let Some(response) = self.in_flight.get_mut(&id) else { return NextStep::Break };
        if response.faults.stalled {
            return NextStep::Stall;
        }
        if response.generation != generation {
            log.record_fault(Fault::Broken);
            return NextStep::Break;
        }
        if response.break_after.is_some_and(|after| received >= after) {
            log.record_fault(Fault::Broken);
            return NextStep::Break;
        }
        if response.truncate_after.is_some_and(|after| received >= after) {
            log.record_fault(Fault::MalformedList);
            return NextStep::Truncate;
        }
        match response.faults.termination {
            None => NextStep::Continue,
            Some(Termination::Break) => NextStep::Break,
            Some(Termination::Truncate) => NextStep::Truncate,
            Some(Termination::End) => NextStep::End,
            Some(Termination::Error { code, reason }) => {
                response.faults.termination = Some(Termination::End);
                NextStep::SendError(format!(
                    "{{\"type\":\"ERROR\",\"object\":{}}}\n",
                    status(code, reason, None)
                ))
            }
        }
    }

    /// The number of bytes that the client may still receive before the response is broken or truncated.
    pub(super) fn remaining(&self, id: u64, received: u64) -> u64 {
        let response = self.in_flight.get(&id);
        let limits =
            response.into_iter().flat_map(|response| [response.break_after, response.truncate_after]);
        limits.flatten().map(|limit| limit.saturating_sub(received)).min().unwrap_or(u64::MAX)
    }
}
