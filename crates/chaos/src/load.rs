//! Load tests: many handlers, informers, objects, or writes per second.
//!
//! The server runs in a child process, so that the memory measured here is that of the informers. The writers run in the
//! child too and write without sockets, so that two cores are enough.

mod child_server;
mod compare;
mod handlers;
mod informers;
mod local_writes;
mod objects;
mod rate;

pub use child_server::serve;
pub use handlers::HandlerLoad;
pub use handlers::many_handlers;
pub use informers::InformerLoad;
pub use informers::many_informers;
pub use objects::ObjectLoad;
pub use objects::many_objects;
pub use rate::RateLoad;
pub use rate::many_writes;

/// Bytes as text in megabytes.
fn mb(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}
