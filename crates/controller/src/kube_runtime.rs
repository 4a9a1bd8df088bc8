//! The API of `kube_runtime` (kube-rs 5) on packed caches: move a program by changing its imports.
//!
//! ```text
//! -use kube::runtime::{Controller, controller::Action, watcher};
//! +use kube_informer_controller::kube_runtime::{Controller, controller::Action, watcher};
//! ```
//!
//! ```
//! use futures_util::StreamExt;
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use kube::{Api, Client};
//! use kube_informer_controller::kube_runtime::{Controller, controller::Action, reflector::ObjectRef, watcher};
//! use std::{sync::Arc, time::Duration};
//!
//! async fn reconcile(config: Arc<ConfigMap>, _: Arc<()>) -> Result<Action, kube::Error> {
//!     println!("reconcile {}", ObjectRef::from_obj(&*config));
//!     Ok(Action::requeue(Duration::from_secs(300)))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = kube_embedded_apiserver::ApiServer::start().await?;
//! # let client = server.client()?;
//! # let mut config = ConfigMap::default();
//! # config.metadata.name = Some("a".to_owned());
//! # Api::default_namespaced(client.clone()).create(&Default::default(), &config).await?;
//! // In your program: let client = Client::try_default().await?;
//! let results = Controller::new(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
//!     .owns(Api::<Secret>::all(client), watcher::Config::default())
//!     .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), Arc::new(()));
//! # let results = results.take(1);
//! results.for_each(async |result| println!("{result:?}")).await;
//! # Ok(()) }
//! ```
//!
//! # What is better
//!
//! - The cache of a [`Controller`], and a [`Store`](reflector::Store), is packed: objects are decoded when they are read.
//! - A child that is deleted, or loses its owner, while a watch is down is noticed. An object that refers to another owner than
//!   before reconciles both.
//! - Changes are reconciled before the initial list.
//! - A panic in a reconcile is logged, counted and retried with growing delays.
//! - A [`watcher()`] backs off by itself.
//! - A slow subscriber of a shared store does not stop the others.
//!
//! # What differs
//!
//! - A [`Writer`](reflector::store::Writer) needs `K: Serialize + DeserializeOwned`, and a [`Store`](reflector::Store) to be read
//!   `K: DeserializeOwned`: the objects are packed. `Store::state` decodes all objects; prefer `get`, `find` and `len`.
//! - [`Controller::owns`] caches the metadata of owned objects, and [`Controller::watches`] the objects, packed. `kube_runtime`
//!   caches neither.
//! - Informers of a [`Controller`] choose how they list: `list_semantic` and `bookmarks` of a [`watcher::Config`] apply to
//!   [`watcher()`] only.
//! - [`Config::debounce`] waits from the first change of several, not from the last.
//! - `default_backoff` returns the stream itself. `trigger_backoff` and `backoff` do not exist.
//! - [`Error::ObjectNotFound`](controller::Error::ObjectNotFound) is not reported: an object that does not exist is not
//!   reconciled.
//! - [`ObjectRef`](reflector::ObjectRef) is for every [`Resource`](kube::Resource); the trait `Lookup` does not exist.
//! - `applier`, `scheduler`, `metadata_watcher` (use `Api<PartialObjectMeta<K>>`), `ReconcileRequest` and `StreamBackoff` do not
//!   exist, and neither do the `_with` variants of `owns_stream` and `watches_stream`, which need no type.
//! - Repeated events of a [`Recorder`](events::Recorder) are counted, and written now and then. `From<&str>` does not set the
//!   name of the host as the instance of a [`Reporter`](events::Reporter).
//!
//! # What it lacks
//!
//! This API hides the writes of a reconcile from the controller, so it cannot wait until the cache shows them, and it has no
//! leader election. The native [`Controller`](crate::Controller) and [`Manager`](crate::Manager) have both.

pub mod controller;
pub mod events;
pub mod finalizer;
pub mod predicates;
pub mod reflector;
pub mod wait;
mod watch_ext;
pub mod watcher;

pub use controller::{Config, Controller};
pub use finalizer::finalizer;
pub use predicates::{Predicate, PredicateConfig};
pub use reflector::reflector;
pub use wait::conditions;
pub use watch_ext::WatchStreamExt;
pub use watcher::watcher;
