//! HTTP: from bytes to a resolved request, and from an answer to bytes.

mod answer;
mod body;
mod discovery;
mod frames;
mod gzip;
mod handler;
mod negotiate;
mod openapi;
mod probes;
mod route;
mod table;
mod verb;

pub(crate) use body::AnswerBody;
pub(crate) use handler::handle;
pub use verb::Verb;
