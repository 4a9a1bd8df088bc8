//! Relists that repair what a watch left open.

use crate::time;
use kube_informer_wire::ResourceVersion;
use std::time::Duration;
use tokio::time::Instant;

/// The shortest time between two repairs. A server that keeps sending malformed events must not cost a list each.
const MIN_INTERVAL: Duration = Duration::from_secs(60);

/// An event after which only a list shows the state of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anomaly {
    /// The event is older than the version that the stream had reached.
    Rewound,
    /// The event cannot be decoded.
    Malformed,
}

/// Where in a stream an anomaly occurred. After a version is another place than at that version.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    At(ResourceVersion),
    /// The event has no version; the last version before it, if there was one.
    After(Option<ResourceVersion>),
}

/// When a watch is interrupted by a list that repairs an anomaly.
///
/// 1. Each place is repaired once. A repair of one kind of anomaly at a place does not count for the other kind: the
///    malformed event may have been sent since.
/// 2. Two repairs are at least [`MIN_INTERVAL`] apart. An anomaly in between is repaired later.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    rewound: Option<Place>,
    malformed: Option<Place>,
    last: Option<Instant>,
    due: Option<Instant>,
    hidden: bool,
}

impl Repairs {
    /// Whether an anomaly has not been met at this place. `at` is the version of the event, `position` the version that
    /// the stream had reached.
    pub(super) fn is_new(
        &mut self,
        anomaly: Anomaly,
        at: Option<ResourceVersion>,
        position: Option<&ResourceVersion>,
    ) -> bool {
        let place = at.map_or_else(|| Place::After(position.cloned()), Place::At);
        let last = match anomaly {
            Anomaly::Rewound => &mut self.rewound,
            Anomaly::Malformed => &mut self.malformed,
        };
        last.replace(place.clone()) != Some(place)
    }

    /// Requests a repair of an anomaly. Returns whether to list now; otherwise a repair is due later.
    pub(super) fn request(&mut self, anomaly: Anomaly, now: Instant) -> bool {
        let is_due = self.request_list(now);
        self.hidden |= !is_due && anomaly == Anomaly::Malformed;
        is_due
    }

    /// Requests a list that hides no change. Returns whether to list now; otherwise it is due later.
    pub(super) fn request_list(&mut self, now: Instant) -> bool {
        self.due = self.last.map_or(Some(now), |last| time::after(last, MIN_INTERVAL));
        self.take_due(now)
    }

    /// Returns whether a repair is due, and takes note that it begins.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due {
            (self.due, self.last) = (None, Some(now));
        }
        is_due
    }

    /// When the next repair is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether a change was passed over that a list has yet to show.
    pub(super) fn hides_a_change(&self) -> bool {
        self.hidden
    }

    /// A list was committed, which shows everything up to its version.
    pub(super) fn committed(&mut self) {
        (self.due, self.hidden) = (None, false);
    }

    /// The server has another history, to which no known place belongs.
    pub(super) fn forget_places(&mut self) {
        (self.rewound, self.malformed) = (None, None);
    }
}
