//! Random durations of informers: usual ones, and those at the limits of what a clock can represent.

use kube_informer::InformerBuilder;
use std::time::Duration;

/// The durations of an informer.
#[derive(Debug, Clone)]
pub(crate) struct Durations {
    pub(crate) resync: Duration,
    /// The first and the longest delay of a retry.
    backoff: Option<(Duration, Duration)>,
    pub(crate) max_retry_after: Duration,
    min_watch_timeout: Option<Duration>,
    deadlines: Vec<(Deadline, Duration)>,
}

/// A deadline of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deadline {
    ListResponse,
    ListItem,
    WatchResponse,
    StreamingListEvent,
    StreamingList,
    WatchEnd,
    WatchWithoutTimeout,
    ProbeAfter,
    Probe,
}

/// A duration that can be represented, unlike the time at which it ends.
const HUGE: Duration = Duration::from_secs(1 << 60);
const NANOSECOND: Duration = Duration::from_nanos(1);

impl Durations {
    pub(crate) fn random(rng: &mut fastrand::Rng) -> Self {
        let seconds = Duration::from_secs;
        // A resync much shorter than a world takes would be most of its work.
        let resync =
            [Duration::ZERO, Duration::ZERO, seconds(10), seconds(60), seconds(300), HUGE, Duration::MAX];
        // An unlimited Retry-After may never end.
        let max_retry_after = [seconds(600), seconds(600), seconds(60), NANOSECOND, Duration::ZERO];
        Self {
            resync: rng.choice(resync).unwrap_or_default(),
            backoff: backoff(rng),
            max_retry_after: rng.choice(max_retry_after).unwrap_or_default(),
            min_watch_timeout: rng.choice([None, None, Some(Duration::ZERO), Some(Duration::MAX)]).flatten(),
            deadlines: (0..rng.usize(0..4)).filter_map(|_| deadline(rng)).collect(),
        }
    }

    /// Whether a request may wait longer for the server than a world takes to converge.
    pub(crate) fn waits_without_limit(&self) -> bool {
        self.min_watch_timeout == Some(Duration::MAX)
            || self.deadlines.iter().any(|(_, duration)| *duration >= HUGE)
    }

    pub(crate) fn apply(&self, mut builder: InformerBuilder) -> InformerBuilder {
        builder = builder.resync(self.resync).max_retry_after(self.max_retry_after);
        if let Some((first, longest)) = self.backoff {
            builder = builder.backoff(first, longest);
        }
        if let Some(timeout) = self.min_watch_timeout {
            builder = builder.min_watch_timeout(timeout);
        }
        builder.deadlines(|deadlines| {
            for &(deadline, duration) in &self.deadlines {
                let field = match deadline {
                    Deadline::ListResponse => &mut deadlines.list_response,
                    Deadline::ListItem => &mut deadlines.list_item,
                    Deadline::WatchResponse => &mut deadlines.watch_response,
                    Deadline::StreamingListEvent => &mut deadlines.streaming_list_event,
                    Deadline::StreamingList => &mut deadlines.streaming_list,
                    Deadline::WatchEnd => &mut deadlines.watch_end,
                    Deadline::WatchWithoutTimeout => &mut deadlines.watch_without_timeout,
                    Deadline::ProbeAfter => &mut deadlines.probe_after,
                    Deadline::Probe => &mut deadlines.probe,
                };
                *field = duration;
            }
        })
    }
}

fn backoff(rng: &mut fastrand::Rng) -> Option<(Duration, Duration)> {
    let (short, second) = (Duration::from_millis(20), Duration::from_secs(1));
    match rng.u8(0..16) {
        0..7 => None,
        7..13 => Some((short, second)),
        13 => Some((if rng.bool() { NANOSECOND } else { Duration::ZERO }, second)),
        14 => Some((Duration::MAX, second)),
        // The first delay is limited by the longest.
        _ => Some((HUGE, short)),
    }
}

/// A deadline that is short, or without limit. It is zero if requests can succeed without it.
fn deadline(rng: &mut fastrand::Rng) -> Option<(Deadline, Duration)> {
    let (second, moment) = (Duration::from_secs(1), Duration::from_millis(200));
    // The embedded server needs three seconds to find that a version is too large.
    let response = Duration::from_secs(5);
    let short = [
        (Deadline::ListResponse, response),
        (Deadline::ListItem, second),
        (Deadline::WatchResponse, response),
        (Deadline::StreamingListEvent, moment),
        (Deadline::StreamingList, moment),
        (Deadline::WatchEnd, NANOSECOND),
        (Deadline::WatchWithoutTimeout, NANOSECOND),
        (Deadline::ProbeAfter, second),
        (Deadline::Probe, response),
    ];
    let (deadline, short) = rng.choice(short)?;
    // Without a response no request succeeds, and without a probe no restore is noticed.
    let required = matches!(
        deadline,
        Deadline::ListResponse | Deadline::ListItem | Deadline::WatchResponse | Deadline::Probe
    );
    let duration = match rng.u8(0..16) {
        0..6 => short,
        6..10 if deadline != Deadline::ProbeAfter => Duration::MAX,
        10..14 if deadline != Deadline::ProbeAfter => HUGE,
        14 if !required => Duration::ZERO,
        15 if !required => NANOSECOND,
        // Without probes a client may never notice that the server was restored.
        _ => short,
    };
    Some((deadline, duration))
}

/// The resync period of a handler; `None` is that of its informer.
pub(super) fn handler_resync(seed: u64) -> Option<Duration> {
    let seconds = Duration::from_secs(15);
    let periods =
        [None, None, Some(Duration::ZERO), Some(seconds), Some(Duration::MAX), Some(HUGE), None, None];
    periods[seed as usize % periods.len()]
}

/// The time limit of a wait: usually less than a minute.
pub(crate) fn time_limit(rng: &mut fastrand::Rng) -> Duration {
    match rng.u8(0..16) {
        0 => Duration::ZERO,
        1 => NANOSECOND,
        2 => HUGE,
        3 => Duration::MAX,
        _ => Duration::from_millis(rng.u64(1..20_000)),
    }
}

/// The delay of a key in a queue, until it must be processed; `None` is never.
pub(crate) fn key_delay(rng: &mut fastrand::Rng) -> Option<Duration> {
    match rng.u8(0..32) {
        0 => Some(NANOSECOND),
        1 => Some(Duration::from_secs(3)),
        2 => None,
        _ => Some(Duration::ZERO),
    }
}
