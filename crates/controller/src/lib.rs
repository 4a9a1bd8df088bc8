#![doc = include_str!("../README.md")]
// Time arithmetic saturates: clippy.toml lists the rejected operations. Tests may panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::disallowed_methods))]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

mod action;
mod barrier;
mod context;
mod controller;
mod failure;
mod in_flight;
mod intake;
mod merge_patch;
mod request;
mod run;
mod telemetry;
mod time;
mod worker;
mod write_error;

pub use action::Action;
pub use barrier::StaleCache;
pub use context::Context;
pub use controller::Controller;
pub use failure::BoxError;
pub use failure::FailureCause;
pub use failure::ReconcileFailure;
pub use run::RunController;
pub use run::RunError;
pub use write_error::WriteError;

// The crate whose types are part of signatures here.
pub use kube_informer;
