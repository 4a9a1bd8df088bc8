//! HTTP: from bytes to a resolved request, and from an answer to bytes.

mod answer;
mod body;
mod discovery;
mod frames;
pub(crate) mod fuzzing;
mod gzip;
mod handler;
mod metrics;
mod negotiate;
mod openapi;
mod probes;
mod route;
mod switches;
mod table;
mod verb;
mod watch_permits;

pub(crate) use body::AnswerBody;
pub(crate) use handler::AnswerLost;
pub(crate) use handler::handle;
pub(crate) use handler::refuse;
pub(crate) use route::ResourcePath;
pub(crate) use watch_permits::ConnectionWatches;
pub(crate) use watch_permits::WatchPermits;
