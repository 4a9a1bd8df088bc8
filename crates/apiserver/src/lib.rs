//! A Kubernetes API server with true LIST and WATCH semantics that starts in milliseconds inside a test.

#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

mod admission;
mod api;
mod authentication;
mod budget;
mod caches;
mod client;
mod clock;
mod continue_token;
mod controllers;
mod cpu_pool;
mod custom;
mod delegate;
mod faults;
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod ids;
mod managed;
mod metrics;
mod patch;
mod registry;
mod schema;
mod server;
mod service_addresses;
mod serving;
mod shutdown;
mod snapshots;
mod status;
pub mod storage;
mod verb;
mod verbs;
pub mod watch_cache;
mod work;

pub use admission::AdmissionPluginError;
pub use faults::Fault;
pub use faults::FaultRule;
pub use faults::Faults;
pub use server::ApiServer;
pub use server::ApiServerBuilder;
pub use server::LocalServer;
pub use server::ServerLimits;
pub use server::StartError;
pub use server::Tls;
pub use server::TlsError;
pub use server::TokenError;
pub use server::Tokens;
pub use snapshots::ClusterSnapshot;
pub use verb::Verb;
