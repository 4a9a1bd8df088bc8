//! Faults of requests and of open responses, injected in the same way into both backends.

use crate::{log::Log, retry_after::RetryAfter, totals::Fault};
use std::time::Duration;

/// A fault of an open response: a watch, and in the network also a list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum StreamFault {
    /// The stream ends between two events.
    Cut,
    /// The stream ends within an event, as if it were complete.
    Truncate,
    /// The connection is reset.
    Break,
    /// The stream stays open and delivers nothing more.
    Stall,
    /// The stream ends with a 410 event.
    Expire,
    /// The stream ends with a 500 event.
    Error,
    /// The next event is malformed. Whether it has a resource version.
    MalformedEvent { with_version: bool },
    /// Every event takes this many milliseconds.
    Slow(u64),
    /// No fault: the server sends a bookmark once everything else is sent.
    Bookmark,
}

/// A fault of the next request that it applies to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RequestFault {
    /// No response is ever sent.
    NoResponse,
    /// The connection is refused.
    Refused,
    /// The server processes the request, and the connection is reset instead of a response.
    ResponseLost,
    /// 410.
    Expired,
    /// 429.
    Busy { retry_after: RetryAfter },
    /// 500.
    Internal,
    /// A proxy responds with an HTML page.
    NotJson,
    /// The body of a list ends early, as if it were complete, or is not JSON.
    MalformedList(usize),
    /// The response takes this many milliseconds.
    Delayed(u64),
    /// The response has headers that make no sense, and very long ones.
    StrangeHeaders,
    /// The connection is reset after this many parts of the body.
    BreakAfter(usize),
    /// The body arrives in chunks of a few bytes.
    Trickle,
    /// The watch repeats this many events that were sent before.
    Duplicate(usize),
    /// The list is this many versions behind.
    Stale(u64),
    /// The history is compacted between the list and the watch that follows it.
    CompactAfterList,
    /// One item of the list is malformed. Whether its key can still be read.
    MalformedItem { at: usize, with_key: bool },
}

/// A fault that lasts until it is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Condition {
    Unauthorized,
    Forbidden,
    /// 404: the model denies the resource, a cluster has its CRD deleted.
    Absent,
    /// Continue tokens expire.
    PagesExpire,
    /// Streaming lists never send the bookmark that completes them.
    NoEndBookmark,
    /// Streaming lists are rejected.
    NoStreaming,
    /// 410 is the status of the response, not an event of the stream.
    ExpiredOverHttp,
    /// The watch cache of the server is behind its store.
    Lagging,
    /// No fault: a bookmark follows whenever everything else is sent.
    EagerBookmarks,
}

/// The parts of a request on which faults depend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestInfo {
    pub(crate) write: bool,
    pub(crate) watch: bool,
    /// A watch that begins with all objects.
    pub(crate) streaming: bool,
    pub(crate) version: Option<u64>,
    /// A later page of a list.
    pub(crate) continued: bool,
    /// A list of one object, which only asks for the current version of the server.
    pub(crate) probe: bool,
}

/// The limit of a list that is a probe. No informer here has pages of that size.
pub(crate) const PROBE: u32 = 1;

/// The error that a client receives for a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rejection {
    Status { code: u16, reason: &'static str, retry_after: RetryAfter },
    ConnectionRefused,
    ResponseLost,
    NotJson,
}

/// Maximum number of request faults that are armed at once.
const MAX_ARMED: usize = 6;

/// The faults that are in force or armed.
#[derive(Debug, Default)]
pub(crate) struct FaultInjector {
    conditions: Vec<Condition>,
    armed: Vec<RequestFault>,
}

impl FaultInjector {
    pub(crate) fn has(&self, condition: Condition) -> bool {
        self.conditions.contains(&condition)
    }

    pub(crate) fn set(&mut self, condition: Condition, on: bool) {
        self.conditions.retain(|&other| other != condition);
        if on {
            self.conditions.push(condition);
        }
    }

    /// Keeps a fault for the next request that it applies to.
    pub(crate) fn arm(&mut self, fault: RequestFault) {
        if self.armed.len() < MAX_ARMED {
            self.armed.push(fault);
        }
    }

    /// Ends every condition and disarms every fault. Broken and stalled streams stay as they are.
    pub(crate) fn clear(&mut self) {
        self.conditions.clear();
        self.armed.clear();
    }

    /// Rejects a request, or returns the fault of its response.
    pub(crate) fn intercept(
        &mut self,
        request: RequestInfo,
        log: &Log,
    ) -> Result<Option<RequestFault>, Rejection> {
        let rejections = [
            (Condition::Unauthorized, Fault::Unauthorized, 401, "Unauthorized"),
            (Condition::Forbidden, Fault::Forbidden, 403, "Forbidden"),
            (Condition::Absent, Fault::NotFound, 404, "NotFound"),
        ];
        for (condition, counted, code, reason) in rejections {
            if self.has(condition) {
                log.record_fault(counted);
                return Err(Rejection::Status { code, reason, retry_after: RetryAfter::None });
            }
        }
        if request.streaming && self.has(Condition::NoStreaming) {
            log.record_fault(Fault::NoStreaming);
            return Err(Rejection::Status { code: 422, reason: "Invalid", retry_after: RetryAfter::None });
        }
        let Some(at) = self.armed.iter().position(|&fault| request.is_affected_by(fault)) else {
            return Ok(None);
        };
        let fault = self.armed.remove(at);
        let status = |code, reason, retry_after| Some(Rejection::Status { code, reason, retry_after });
        let (counted, rejection) = match fault {
            RequestFault::NoResponse => (Fault::NoResponse, None),
            RequestFault::Refused => (Fault::Refused, Some(Rejection::ConnectionRefused)),
            RequestFault::ResponseLost => (Fault::ResponseLost, Some(Rejection::ResponseLost)),
            RequestFault::NotJson => (Fault::NotJson, Some(Rejection::NotJson)),
            RequestFault::Expired => (Fault::ExpiredAtOpen, status(410, "Expired", RetryAfter::None)),
            RequestFault::Busy { retry_after } => {
                let counted =
                    if retry_after == RetryAfter::None { Fault::Busy } else { Fault::BusyWithDelay };
                (counted, status(429, "TooManyRequests", retry_after))
            }
            RequestFault::Internal => (Fault::Internal, status(500, "InternalError", RetryAfter::None)),
            RequestFault::Delayed(_) => (Fault::Delayed, None),
            // Counted when they take effect.
            RequestFault::MalformedList(_)
            | RequestFault::BreakAfter(_)
            | RequestFault::Trickle
            | RequestFault::Duplicate(_)
            | RequestFault::Stale(_)
            | RequestFault::CompactAfterList
            | RequestFault::StrangeHeaders
            | RequestFault::MalformedItem { .. } => return Ok(Some(fault)),
        };
        log.record_fault(counted);
        rejection.map_or(Ok(Some(fault)), Err)
    }
}

impl RequestInfo {
    /// The version after which a watch requests changes.
    pub(crate) fn watches_from(self) -> Option<u64> {
        self.version.filter(|&version| self.watch && !self.streaming && version > 0)
    }

    fn is_affected_by(self, fault: RequestFault) -> bool {
        let first_page = !self.watch && !self.continued;
        match fault {
            RequestFault::MalformedList(_)
            | RequestFault::BreakAfter(_)
            | RequestFault::Trickle
            | RequestFault::Duplicate(_)
            | RequestFault::Stale(_)
            | RequestFault::Expired
            | RequestFault::CompactAfterList
            | RequestFault::StrangeHeaders
            | RequestFault::MalformedItem { .. }
                if self.write =>
            {
                false
            }
            RequestFault::Duplicate(_) => self.watch && !self.streaming && self.version.is_some(),
            RequestFault::Expired => self.watch && self.version.is_some(),
            RequestFault::Stale(_) => self.streaming || first_page,
            RequestFault::MalformedList(_)
            | RequestFault::CompactAfterList
            | RequestFault::MalformedItem { .. } => !self.watch && !self.probe,
            _ => true,
        }
    }
}

/// The faults that one open response has received.
#[derive(Debug, Default)]
pub(crate) struct StreamFaults {
    pub(crate) termination: Option<Termination>,
    pub(crate) stalled: bool,
    /// The next event is malformed: with or without its version.
    pub(crate) malformed: Option<bool>,
    pub(crate) slow: Option<Duration>,
    pub(crate) bookmark_due: bool,
}

/// How a response ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Termination {
    /// After the current event.
    End,
    /// Within the current event.
    Truncate,
    Break,
    /// With an error event.
    Error {
        code: u16,
        reason: &'static str,
    },
}

impl StreamFaults {
    /// Resets the connection, also if it is stalled.
    pub(crate) fn reset(&mut self) {
        (self.stalled, self.termination) = (false, Some(Termination::Break));
    }

    /// Whether the stream still delivers events, as far as the server knows.
    pub(crate) fn is_open(&self) -> bool {
        !self.stalled && self.termination.is_none()
    }

    pub(crate) fn inject(&mut self, fault: StreamFault, log: &Log) {
        let (termination, counted) = match fault {
            StreamFault::Cut => (Some(Termination::End), Fault::Cut),
            StreamFault::Truncate => (Some(Termination::Truncate), Fault::Truncated),
            StreamFault::Break => (Some(Termination::Break), Fault::Broken),
            StreamFault::Expire => {
                (Some(Termination::Error { code: 410, reason: "Expired" }), Fault::ExpiredInStream)
            }
            StreamFault::Error => {
                (Some(Termination::Error { code: 500, reason: "InternalError" }), Fault::ErrorInStream)
            }
            StreamFault::Stall => {
                self.stalled = true;
                (None, Fault::Stalled)
            }
            StreamFault::Slow(millis) => {
                self.slow = Some(Duration::from_millis(millis));
                (None, Fault::SlowReader)
            }
            StreamFault::MalformedEvent { with_version } => {
                // Counted when an event is malformed.
                self.malformed = Some(with_version);
                return;
            }
            StreamFault::Bookmark => {
                self.bookmark_due = true;
                return;
            }
        };
        self.termination = termination.or(self.termination);
        log.record_fault(counted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: RequestInfo = RequestInfo {
        write: false,
        watch: false,
        streaming: false,
        version: Some(5),
        continued: false,
        probe: false,
    };

    #[tokio::test]
    async fn a_fault_stays_armed_until_a_request_that_it_applies_to() {
        let log = Log::new(None);
        let mut faults = FaultInjector::default();
        faults.arm(RequestFault::Expired);
        faults.arm(RequestFault::Internal);
        let internal =
            Rejection::Status { code: 500, reason: "InternalError", retry_after: RetryAfter::None };
        assert_eq!(faults.intercept(LIST, &log), Err(internal));
        assert_eq!(faults.intercept(LIST, &log), Ok(None));
        let expired = Rejection::Status { code: 410, reason: "Expired", retry_after: RetryAfter::None };
        assert_eq!(faults.intercept(RequestInfo { watch: true, ..LIST }, &log), Err(expired));
        assert_eq!(log.totals().count(Fault::Internal) + log.totals().count(Fault::ExpiredAtOpen), 2);
    }

    #[tokio::test]
    async fn a_condition_lasts_until_it_is_ended() {
        let log = Log::new(None);
        let mut faults = FaultInjector::default();
        faults.set(Condition::Forbidden, true);
        for _ in 0..2 {
            assert!(matches!(faults.intercept(LIST, &log), Err(Rejection::Status { code: 403, .. })));
        }
        faults.clear();
        assert_eq!(faults.intercept(LIST, &log), Ok(None));
    }
}
