//! Controllers against the embedded API server.

mod controller;
mod failures;
mod stale_reads;
mod support;
