//! A local, indexed, always-current copy of Kubernetes objects, and a call for every change.

mod backlog;
mod controller;
mod delta;
mod delta_fifo;
mod delta_queue;
mod handler;
mod indexer;
mod listener;
mod lister;
mod processor;
mod reflector;
mod registration;
mod resync;
mod scope;
mod shared_informer;
mod source;
mod status;
mod telemetry;
mod transform;

pub mod testing;

pub use delta::Deleted;
pub use handler::Event;
pub use handler::EventHandler;
pub use handler::FilteringHandler;
pub use handler::HandlerFuncs;
pub use handler::filter;
pub use indexer::Index;
pub use lister::CacheSnapshot;
pub use lister::Lister;
pub use registration::HandlerEnded;
pub use registration::HandlerLoad;
pub use registration::Registration;
pub use registration::ScopedRegistration;
pub use scope::Scope;
pub use shared_informer::EventStream;
pub use shared_informer::HandlerOptions;
pub use shared_informer::IndexError;
pub use shared_informer::InformerBuilder;
pub use shared_informer::Laggard;
pub use shared_informer::NotReady;
pub use shared_informer::SharedInformer;
pub use shared_informer::Stop;
pub use shared_informer::SyncError;
pub use shared_informer::WaitError;
pub use source::ClientError;
pub use source::KubeSource;
pub use source::informer_client;
pub use status::InformerStatus;
pub use telemetry::InformerError;
pub use transform::Transform;

pub use kube_informer_wire::*;
