//! What befalls requests and open watches, whoever answers them.

use crate::{log::Log, totals::Fault};

/// Something that befalls an open watch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Blow {
    Cut,
    /// It ends as if all had been said, in the middle of a word.
    Truncate,
    Break,
    Stall,
    Expire,
    Error,
    /// The next change arrives garbled, with or without its version.
    Garble {
        version: bool,
    },
    /// Every event takes this long.
    Slow(u64),
    /// Everything there is has been sent: the server says so.
    Bookmark,
}

/// Something that befalls the next request it fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Trap {
    Unanswered,
    Refused,
    /// It is done, and the connection breaks instead of an answer.
    ResponseLost,
    Expired,
    Busy {
        retry_after: u32,
    },
    Internal,
    /// Something in between answers with a page for people.
    NotJson,
    /// The answer is cut off by something that does not speak of it, or is no JSON.
    Malformed(usize),
    Late(u64),
    BreakAfter(usize),
    /// The answer comes in small pieces.
    Trickle,
    Duplicate(usize),
    Stale(u64),
    CompactAfterList,
    /// One item cannot be read, but for its name at best.
    UnreadableItem {
        at: usize,
        named: bool,
    },
}

/// Something that lasts until it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Condition {
    Unauthorized,
    Forbidden,
    /// There is no such kind: its definition is gone, with all objects, or nobody says why.
    Absent,
    PagesExpire,
    NoEndBookmark,
    NoStreaming,
    /// 410 comes as an answer instead of in the stream.
    ExpiredOverHttp,
    /// The server's cache is behind its store.
    Lagging,
    /// Bookmarks come whenever there is nothing else to say.
    EagerBookmarks,
}

/// What is asked, as far as trouble depends on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// Something is to be changed.
    pub(crate) write: bool,
    pub(crate) watch: bool,
    /// A watch that begins with all objects.
    pub(crate) streaming: bool,
    /// The version that is asked for.
    pub(crate) version: Option<u64>,
    /// A later page of a list.
    pub(crate) continued: bool,
    /// Only how far the server is: a list of one object, which nobody keeps.
    pub(crate) probe: bool,
}

/// The limit of a list that nobody keeps. No informer here has pages of that size.
pub(crate) const PROBE: u32 = 1;

/// Why a request gets no further.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Refusal {
    Status { code: u16, reason: &'static str, retry_after: u32 },
    Connection,
    Lost,
    NotJson,
}

/// A `Retry-After` that stands for more seconds than a clock can count, where a header can hold them.
pub(crate) const ENDLESS: u32 = u32::MAX;

/// Most traps that lie at once.
const MOST_TRAPS: usize = 6;

/// What is in the way of requests.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    conditions: Vec<Condition>,
    traps: Vec<Trap>,
}

impl Trouble {
    pub(crate) fn has(&self, condition: Condition) -> bool {
        self.conditions.contains(&condition)
    }

    /// A condition begins or ends.
    pub(crate) fn set(&mut self, condition: Condition, on: bool) {
        self.conditions.retain(|&other| other != condition);
        if on {
            self.conditions.push(condition);
        }
    }

    pub(crate) fn lay(&mut self, trap: Trap) {
        if self.traps.len() < MOST_TRAPS {
            self.traps.push(trap);
        }
    }

    /// Ends every condition and removes every trap. Connections that are dead stay dead.
    pub(crate) fn heal(&mut self) {
        self.conditions.clear();
        self.traps.clear();
    }

    /// The answer to a request, if it is a refusal; otherwise what it is in for.
    pub(crate) fn receive(&mut self, asked: Asked, log: &Log) -> Result<Option<Trap>, Refusal> {
        let refusals = [
            (Condition::Unauthorized, Fault::Unauthorized, 401, "Unauthorized"),
            (Condition::Forbidden, Fault::Forbidden, 403, "Forbidden"),
            (Condition::Absent, Fault::Absent, 404, "NotFound"),
        ];
        for (condition, fault, code, reason) in refusals {
            if self.has(condition) {
                log.strike(fault);
                return Err(Refusal::Status { code, reason, retry_after: 0 });
            }
        }
        if asked.streaming && self.has(Condition::NoStreaming) {
            log.strike(Fault::NoStreaming);
            return Err(Refusal::Status { code: 422, reason: "Invalid", retry_after: 0 });
        }
        let Some(at) = self.traps.iter().position(|&trap| asked.fits(trap)) else { return Ok(None) };
        let trap = self.traps.remove(at);
        let status = |code, reason, retry_after| Some(Refusal::Status { code, reason, retry_after });
        let (fault, refusal) = match trap {
            Trap::Unanswered => (Fault::Unanswered, None),
            Trap::Refused => (Fault::Refused, Some(Refusal::Connection)),
            Trap::ResponseLost => (Fault::ResponseLost, Some(Refusal::Lost)),
            Trap::NotJson => (Fault::NotJson, Some(Refusal::NotJson)),
            Trap::Expired => (Fault::ExpiredAtOpen, status(410, "Expired", 0)),
            Trap::Busy { retry_after: 0 } => (Fault::Busy, status(429, "TooManyRequests", 0)),
            Trap::Busy { retry_after } => (Fault::BusyWithDelay, status(429, "TooManyRequests", retry_after)),
            Trap::Internal => (Fault::Internal, status(500, "InternalError", 0)),
            Trap::Late(_) => (Fault::Delayed, None),
            Trap::Malformed(_)
            | Trap::BreakAfter(_)
            | Trap::Trickle
            | Trap::Duplicate(_)
            | Trap::Stale(_)
            | Trap::CompactAfterList
            | Trap::UnreadableItem { .. } => {
                return Ok(Some(trap));
            }
        };
        log.strike(fault);
        refusal.map_or(Ok(Some(trap)), Err)
    }
}

impl Asked {
    fn fits(self, trap: Trap) -> bool {
        let first_page = !self.watch && !self.continued;
        match trap {
            Trap::Malformed(_)
            | Trap::BreakAfter(_)
            | Trap::Trickle
            | Trap::Duplicate(_)
            | Trap::Stale(_)
            | Trap::Expired
            | Trap::CompactAfterList
            | Trap::UnreadableItem { .. }
                if self.write =>
            {
                false
            }
            Trap::Duplicate(_) => self.watch && !self.streaming && self.version.is_some(),
            Trap::Expired => self.watch && self.version.is_some(),
            Trap::Stale(_) => self.streaming || first_page,
            Trap::Malformed(_) | Trap::CompactAfterList | Trap::UnreadableItem { .. } => {
                !self.watch && !self.probe
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: Asked = Asked {
        write: false,
        watch: false,
        streaming: false,
        version: Some(5),
        continued: false,
        probe: false,
    };

    #[tokio::test]
    async fn a_trap_waits_for_the_request_it_fits() {
        let log = Log::new(None);
        let mut trouble = Trouble::default();
        trouble.lay(Trap::Expired);
        trouble.lay(Trap::Internal);
        let internal = Refusal::Status { code: 500, reason: "InternalError", retry_after: 0 };
        assert_eq!(trouble.receive(LIST, &log), Err(internal));
        assert_eq!(trouble.receive(LIST, &log), Ok(None));
        let expired = Refusal::Status { code: 410, reason: "Expired", retry_after: 0 };
        assert_eq!(trouble.receive(Asked { watch: true, ..LIST }, &log), Err(expired));
        assert_eq!(log.totals().struck(Fault::Internal) + log.totals().struck(Fault::ExpiredAtOpen), 2);
    }

    #[tokio::test]
    async fn conditions_last_until_they_are_over() {
        let log = Log::new(None);
        let mut trouble = Trouble::default();
        trouble.set(Condition::Forbidden, true);
        for _ in 0..2 {
            assert!(matches!(trouble.receive(LIST, &log), Err(Refusal::Status { code: 403, .. })));
        }
        trouble.heal();
        assert_eq!(trouble.receive(LIST, &log), Ok(None));
    }
}
