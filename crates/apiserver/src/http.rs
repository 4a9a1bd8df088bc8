//! HTTP: from bytes to a resolved request, and from a response to bytes.

mod body;
mod discovery;
mod dispatch;
mod error;
mod frames;
pub(crate) mod fuzzing;
mod gzip;
mod handler;
mod list_encoder;
mod metrics;
mod negotiate;
mod openapi;
mod probes;
mod request_head;
mod resource_request;
mod respond;
mod route;
mod snapshots;
mod switches;
mod table;
mod verb;
mod warnings;
mod watch_permits;

pub(crate) use body::ResponseBody;
pub(crate) use body::WatchBody;
pub(crate) use body::WholeEvent;
pub(crate) use error::HttpError;
pub(crate) use handler::ResponseLost;
pub(crate) use handler::handle;
pub(crate) use handler::refuse;
pub(crate) use negotiate::NotAcceptable;
pub(crate) use route::ResourcePath;
pub(crate) use watch_permits::ConnectionWatches;
pub(crate) use watch_permits::WatchPermits;
