//! Tests of informers over real sockets: with faults injected, and under load.
//!
//! The simulation checks informers against a model in one thread. This crate checks them over TCP, on several threads,
//! against processes that are killed and paused, for hours. Caches are compared with a LIST over a connection
//! without faults. It also runs hostile clients against the embedded server.

mod attacks;
mod cluster;
mod endpoint;
mod etcd_client;
mod handler_log;
mod handlers;
mod load;
mod ports;
mod proxy;
mod report;
mod resources;
mod server_process;
mod shards;
mod sockets;
mod subject;
mod work;
mod writers;

pub use attacks::Attack;
pub use attacks::AttackOptions;
pub use attacks::attacks;
pub use attacks::serve_attacked;
pub use load::HandlerLoad;
pub use load::InformerLoad;
pub use load::ObjectLoad;
pub use load::RateLoad;
pub use load::many_handlers;
pub use load::many_informers;
pub use load::many_objects;
pub use load::many_writes;
pub use load::serve;
pub use report::Fault;
pub use report::Report;
pub use shards::ShardOptions;
pub use shards::run_replica;
pub use shards::shards;
pub use sockets::SocketOptions;
pub use sockets::Step;
pub use sockets::sockets;
