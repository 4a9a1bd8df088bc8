//! Test fixtures that several packages share.
//!
//! Nothing here depends on the crates under test, so that their own tests can use it.

mod captured_log;
mod etcd;
mod faults;
mod namespaces;
mod wait;
mod work_log;

pub use captured_log::CapturedLog;
pub use etcd::ETCD_TIMEOUT;
pub use etcd::Etcd;
pub use faults::FaultCounts;
pub use faults::FaultList;
pub use namespaces::NAMESPACES;
pub use wait::TimedOut;
pub use wait::wait_until;
pub use work_log::WorkLog;
