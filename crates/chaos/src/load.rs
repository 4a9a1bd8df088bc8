//! Much of everything: handlers, informers, objects, writes a second.
//!
//! The server is a process of its own, so that memory is that of the informers; whoever fills it and writes is in that
//! process and talks to it without sockets, so that two cores are enough.

mod handlers;
mod informers;
mod objects;
mod rate;
mod server;
mod truth;
mod writing;

pub use handlers::HandlerLoad;
pub use handlers::many_handlers;
pub use informers::InformerLoad;
pub use informers::many_informers;
pub use objects::ObjectLoad;
pub use objects::many_objects;
pub use rate::RateLoad;
pub use rate::many_writes;
pub use server::serve;

/// Megabytes, for people.
fn mb(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}
