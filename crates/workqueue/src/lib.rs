#![doc = include_str!("../README.md")]
// Time arithmetic saturates: clippy.toml lists the rejected operations. Tests may panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::disallowed_methods))]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

mod add;
mod builder;
mod crowd;
mod delayed;
mod discarded;
mod drain;
mod get;
mod in_flight;
mod index;
mod item;
mod limiter;
mod metrics;
mod panics;
mod priority;
mod queue;
mod ready;
mod shared;
mod state;
mod sync;
mod time;
mod waiters;
mod workers;

pub use add::AddOptions;
pub use builder::Builder;
pub use drain::Delayed;
pub use drain::Drain;
pub use get::Get;
pub use item::Item;
pub use limiter::BucketLimiter;
pub use limiter::ExponentialLimiter;
pub use limiter::FastSlowLimiter;
pub use limiter::JitterLimiter;
pub use limiter::MaxOfLimiter;
pub use limiter::MaxWaitLimiter;
pub use limiter::RateLimiter;
pub use limiter::controller_rate_limiter;
pub use limiter::item_rate_limiter;
pub use priority::Priority;
pub use queue::DelayedKey;
pub use queue::WorkQueue;
pub use workers::HandlerError;
pub use workers::RunWorkers;
pub use workers::Verdict;

/// Number of keys of one hash value that a queue distinguishes, among the queued keys and among the delayed ones.
///
/// Keys with the same hash value must be compared one by one. The bound keeps the cost of an operation constant, so a poor
/// [`Hash`](std::hash::Hash) cannot stall the queue: adding a key costs at most this many comparisons, and one more for each
/// key in flight with the same hash value. Further keys are distinguished by their order if the queue is
/// [`ordered`](Builder::ordered); [`WorkQueue`] documents what happens to them otherwise.
pub const MAX_KEYS_PER_HASH: usize = 64;
