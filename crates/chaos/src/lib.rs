//! Informers against real processes over real sockets while things break, and under load.
//!
//! What the simulation checks in one thread against a model, this checks where it is slower and less kind: over
//! TCP, between processes that are killed and paused, on several threads, and for hours. The truth here is what a
//! LIST over an undisturbed connection shows.

mod cluster;
mod door;
mod etcd_client;
mod follower;
mod handler_log;
mod handlers;
mod ledger;
mod load;
mod ports;
mod proxy;
mod resources;
mod served;
mod sockets;
mod until;
mod work;
mod writers;

pub use ledger::Fault;
pub use ledger::Ledger;
pub use load::HandlerLoad;
pub use load::InformerLoad;
pub use load::ObjectLoad;
pub use load::RateLoad;
pub use load::many_handlers;
pub use load::many_informers;
pub use load::many_objects;
pub use load::many_writes;
pub use load::serve;
pub use sockets::SocketOptions;
pub use sockets::Step;
pub use sockets::sockets;
