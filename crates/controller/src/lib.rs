#![doc = include_str!("../README.md")]
// Time arithmetic saturates: clippy.toml lists the rejected operations. Tests may panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::disallowed_methods))]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

mod action;
mod barrier;
mod clock;
mod conditions;
mod context;
mod controller;
mod events;
mod failure;
mod finalizer;
mod freshness;
mod in_flight;
mod intake;
pub mod kube_runtime;
mod leader;
mod leadership;
mod manager;
mod merge_patch;
mod owner;
mod phase;
mod request;
mod run;
mod shards;
mod telemetry;
mod time;
mod worker;
mod write_error;
mod written_status;

pub use action::Action;
pub use barrier::StaleCache;
pub use conditions::Conditions;
pub use context::Context;
pub use controller::Controller;
pub use events::EventType;
pub use failure::BoxError;
pub use failure::FailureCause;
pub use failure::ReconcileFailure;
pub use leader::ElectionConfigError;
pub use leader::ElectionError;
pub use leader::Elector;
pub use leader::LeaderElection;
pub use leadership::Leadership;
pub use leadership::NotLeading;
pub use manager::InstallError;
pub use manager::Manager;
pub use manager::ManagerError;
pub use manager::Metrics;
pub use owner::OwnerError;
pub use owner::child_name;
pub use owner::controlled_by;
pub use run::RunController;
pub use run::RunError;
pub use shards::Sharding;
pub use write_error::WriteError;

// The crate whose types are part of signatures here.
pub use kube_informer;
