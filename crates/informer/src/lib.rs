//! Shared informers for Kubernetes: a local, indexed, current cache of objects, and a handler call for every change.
//!
//! An informer lists and watches one kind of objects, keeps them in an indexed local store, and calls its handlers for
//! every change. All parts of a program that need the same objects share one informer: one watch and one copy. The
//! components and names are those of client-go, with idiomatic Rust types.
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_informer::{HandlerFuncs, InformerFactory, Object};
//! use std::time::Duration;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let factory = InformerFactory::from_config(kube::Config::infer().await?)?;
//! let pods = factory.of::<Pod>(); // or factory.core().v1().pods().informer()
//! let by_node = pods.index_field("spec.nodeName")?;
//! pods.add_handler(
//!     HandlerFuncs::new()
//!         .on_add(|pod: &Object<Pod>, _initial| println!("+ {}", pod.key()))
//!         .on_update(|_old, new| println!("~ {}", new.key()))
//!         .on_delete(|deleted| println!("- {}", deleted.key())),
//! );
//! factory.start();
//! factory.synced(Duration::from_secs(30)).await?;
//! for pod in pods.lister().by(&by_node, "node-1")? {
//!     println!("{} has labels {:?}", pod.key(), pod.labels()); // decodes nothing
//!     let decoded = pod.decode()?; // the k8s-openapi type
//!     println!("{:?}", decoded.status.as_ref().and_then(|status| status.phase.as_ref()));
//! }
//! factory.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! # Overview
//!
//! - [`InformerFactory`] shares informers; [`SharedInformer`] is one of them, and documents its guarantees.
//! - [`Lister`] reads the cache of [`Object`]s: the identity is decoded, the content is bytes.
//! - [`EventHandler`], [`HandlerFuncs`], [`on_event`], [`enqueue`], [`filter`], [`updates_when`] and
//!   [`SharedInformer::events`] receive changes.
//! - [`SharedInformer::reached`] waits for your own writes, [`SharedInformer::wait_until`] for a condition.
//! - [`SharedInformer::keep_view`] keeps the fields that a program reads often.
//! - [`Transform`] drops fields before objects are cached, [`Packing`] selects how they are stored, and [`Storage`] where:
//!   in memory, or on disk.
//! - [`FactoryBuilder::persist`] saves caches, so that the next process starts with them ([`PersistOptions`]).
//! - [`InformerStatus`] and [`InformerError`] report failures. An informer recovers by itself.
//! - [`testing::FakeSource`] is a source for tests that fails on demand.
//!
//! # Four ways to read an object
//!
//! - The identity (key, labels, version, owner, …) is always decoded: [`Object::labels`] and its neighbours cost nothing.
//! - A kept view ([`SharedInformer::keep_view`]) has the fields that a program reads of many objects or very often:
//!   reading it is a pointer, and it costs the memory of these fields for every object.
//! - [`Object::view`] decodes a few fields of one object, some microseconds each time.
//! - [`Object::decode`] decodes all of it, tens of microseconds; the last few values are shared. Use it where a reconcile
//!   needs the whole object, not in a loop over the cache.
//!
//! With [`Storage::Disk`] the last two block for a disk read unless the content was written or read lately, and can fail. The
//! same holds for a short time after a cache was restored ([`PersistOptions`]). [`ReadAsync`] has variants of them that do
//! not block.
//!
//! # Content on disk
//!
//! Kinds that are large and seldom read, such as Secrets, need not be in memory:
//!
//! ```no_run
//! # use kube_informer::{InformerFactory, Storage};
//! # use k8s_openapi::api::core::v1::Secret;
//! # fn example(factory: InformerFactory) {
//! let secrets = factory.of_with::<Secret, Secret>(|options| options.storage(Storage::disk()));
//! # }
//! ```
//!
//! The file is private to the process: it has no name, is encrypted with a key that exists in this process only, and ends with
//! it. Choose a directory on a disk ([`DiskOptions::in_directory`]): `/tmp` is in memory on many systems. An object then takes a
//! few hundred bytes of memory; kinds whose objects are smaller than a few kilobytes gain little. Do not use it for kinds whose
//! whole content is read in loops: keep a view of the fields that such a loop reads, or the kind in memory. See
//! [`InformerBuilder::storage`] for what happens when the disk fails.
//!
//! Built-in kinds are requested and stored in protobuf, custom resources in JSON. All of the above read both.
//!
//! # The application chooses the Kubernetes version
//!
//! This crate enables no version feature of `k8s-openapi`, because two in one build do not compile. Your
//! program does: `k8s-openapi = { version = "0.29", features = ["latest"] }`.
//!
//! # Metrics
//!
//! The crate reports through the `metrics` facade, with the labels `name`, `group`, `version`, `resource`, `scope` and
//! `selector` (long values are cut, and end in a hash), so that no two informers, and no two handlers of one, write the same
//! series: `informer_queued_items`, `informer_processing_latency_seconds` and `informer_store_resource_version` as in
//! client-go, and `informer_lists_total` (`mode`), `informer_version_queries_total`, `informer_watches_total`,
//! `informer_relists_total` (`reason`), `informer_events_total` (`type`), `informer_duplicate_events_total`,
//! `informer_quarantined_total`, `informer_transform_failures_total`, `informer_cached_objects`, `informer_cached_bytes`,
//! `informer_disk_bytes`, `informer_disk_write_failures_total`, `informer_lost_contents_total`, `informer_coalesced_total` and
//! `informer_handler_lag_seconds` (both with `handler`), `informer_handler_panics_total`,
//! `informer_handler_slow_calls_total`, `informer_task_failures_total` (`task`), `informer_persist_commits_total`,
//! `informer_persist_failures_total`. Install the recorder before building informers.

// Time arithmetic saturates: clippy.toml lists the rejected operations. Tests may panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::disallowed_methods))]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

mod backlog;
mod compaction;
mod controller;
mod delta;
mod delta_fifo;
mod delta_queue;
mod disk;
mod enqueue;
mod factory;
mod fail_point;
#[cfg(test)]
mod fixtures;
mod handler;
mod indexer;
mod kind;
mod listener;
mod lister;
mod memory;
mod persist;
mod predicate;
mod processor;
mod read_async;
mod references;
mod refetch;
mod reflector;
mod registration;
mod resync;
mod scope;
mod shared_informer;
mod source;
mod status;
mod supervision;
mod telemetry;
mod time;
mod transform;
mod views;

pub mod testing;

pub use delta::Deleted;
pub use enqueue::Enqueue;
pub use enqueue::EnqueueOwner;
pub use enqueue::enqueue;
pub use enqueue::enqueue_owner;
pub use enqueue::enqueue_with;
pub use factory::FactoryBuilder;
pub use factory::InformerFactory;
pub use factory::InformerFor;
pub use factory::InformerOptions;
pub use factory::builtin;
#[doc(hidden)]
pub use fail_point::FailPoint;
pub use handler::Event;
pub use handler::EventHandler;
pub use handler::FilteringHandler;
pub use handler::HandlerFuncs;
pub use handler::filter;
pub use handler::on_event;
pub use indexer::Index;
pub use indexer::IndexMissing;
pub use kind::kind_of;
pub use kind::kind_of_discovered;
pub use lister::CacheIter;
pub use lister::CacheSnapshot;
pub use lister::Lister;
pub use memory::MemoryUsage;
pub use persist::PersistError;
pub use persist::PersistOptions;
pub use persist::PersistStatus;
pub use predicate::UpdatesWhen;
pub use predicate::annotations_changed;
pub use predicate::generation_changed;
pub use predicate::labels_changed;
pub use predicate::updates_when;
pub use predicate::version_changed;
pub use read_async::ReadAsync;
pub use references::ObjectReferences;
pub use reflector::Deadlines;
pub use registration::HandlerEnded;
pub use registration::HandlerInfo;
pub use registration::HandlerLoad;
pub use registration::Registration;
pub use registration::ScopedRegistration;
pub use scope::Scope;
pub use scope::ScopeError;
pub use shared_informer::EventStream;
pub use shared_informer::HandlerOptions;
pub use shared_informer::IndexError;
pub use shared_informer::InformerBuilder;
pub use shared_informer::NotReady;
pub use shared_informer::SharedInformer;
pub use shared_informer::Stop;
pub use shared_informer::SyncError;
pub use shared_informer::UnsyncedCache;
pub use shared_informer::WaitError;
pub use shared_informer::WeakInformer;
pub use source::ClientError;
pub use source::KubeSource;
pub use source::informer_client;
pub use status::InformerStatus;
pub use telemetry::InformerError;
pub use telemetry::Task;
pub use transform::Transform;
pub use views::KeptView;

// Objects, their identity and their content.
#[doc(inline)]
pub use kube_informer_derive::HeapSize;
#[doc(inline)]
pub use kube_informer_wire::Apply;
#[doc(inline)]
pub use kube_informer_wire::DecodeError;
#[doc(inline)]
pub use kube_informer_wire::DecodeFailure;
#[doc(inline)]
pub use kube_informer_wire::DiskOptions;
#[doc(inline)]
pub use kube_informer_wire::EditError;
#[doc(inline)]
pub use kube_informer_wire::FieldPath;
#[doc(inline)]
pub use kube_informer_wire::FieldPathError;
#[doc(inline)]
pub use kube_informer_wire::FieldStep;
#[doc(inline)]
pub use kube_informer_wire::HeapSize;
#[doc(inline)]
pub use kube_informer_wire::JsonPatch;
#[doc(inline)]
pub use kube_informer_wire::Kind;
#[doc(inline)]
pub use kube_informer_wire::Labels;
#[doc(inline)]
pub use kube_informer_wire::Limits;
#[doc(inline)]
pub use kube_informer_wire::Malformed;
#[doc(inline)]
pub use kube_informer_wire::MediaType;
#[doc(inline)]
pub use kube_informer_wire::Object;
#[doc(inline)]
pub use kube_informer_wire::ObjectKey;
#[doc(inline)]
pub use kube_informer_wire::Omission;
#[doc(inline)]
pub use kube_informer_wire::Omissions;
#[doc(inline)]
pub use kube_informer_wire::Origin;
#[doc(inline)]
pub use kube_informer_wire::Owner;
#[doc(inline)]
pub use kube_informer_wire::PackStats;
#[doc(inline)]
pub use kube_informer_wire::Packing;
#[doc(inline)]
pub use kube_informer_wire::ParseKeyError;
#[doc(inline)]
pub use kube_informer_wire::ResourceVersion;
#[doc(inline)]
pub use kube_informer_wire::SegmentFile;
#[doc(inline)]
pub use kube_informer_wire::Storage;
#[doc(inline)]
pub use kube_informer_wire::Uid;
#[doc(inline)]
pub use kube_informer_wire::View;

// Selectors.
#[doc(inline)]
pub use kube_informer_wire::FieldSelector;
#[doc(inline)]
pub use kube_informer_wire::FieldTerm;
#[doc(inline)]
pub use kube_informer_wire::LabelSelector;
#[doc(inline)]
pub use kube_informer_wire::Lookup;
#[doc(inline)]
pub use kube_informer_wire::Operator;
#[doc(inline)]
pub use kube_informer_wire::Requirement;
#[doc(inline)]
pub use kube_informer_wire::SelectorError;
#[doc(inline)]
pub use kube_informer_wire::ShardRange;
#[doc(inline)]
pub use kube_informer_wire::ShardSelector;

// Sources of objects.
#[doc(inline)]
pub use kube_informer_wire::Bookmark;
#[doc(inline)]
pub use kube_informer_wire::BoxFuture;
#[doc(inline)]
pub use kube_informer_wire::Cause;
#[doc(inline)]
pub use kube_informer_wire::Details;
#[doc(inline)]
pub use kube_informer_wire::ListMeta;
#[doc(inline)]
pub use kube_informer_wire::ListOptions;
#[doc(inline)]
pub use kube_informer_wire::ListPart;
#[doc(inline)]
pub use kube_informer_wire::ListStream;
#[doc(inline)]
pub use kube_informer_wire::ListWatch;
#[doc(inline)]
pub use kube_informer_wire::ListWatchError;
#[doc(inline)]
pub use kube_informer_wire::Status;
#[doc(inline)]
pub use kube_informer_wire::VersionMatch;
#[doc(inline)]
pub use kube_informer_wire::WatchEvent;
#[doc(inline)]
pub use kube_informer_wire::WatchOptions;
#[doc(inline)]
pub use kube_informer_wire::WatchStream;

// The work queue; `workqueue` has the rest of it, such as rate limiters.
#[doc(inline)]
pub use kube_workqueue as workqueue;
#[doc(inline)]
pub use kube_workqueue::AddOptions;
#[doc(inline)]
pub use kube_workqueue::Delayed;
#[doc(inline)]
pub use kube_workqueue::HandlerError;
#[doc(inline)]
pub use kube_workqueue::Item;
#[doc(inline)]
pub use kube_workqueue::Priority;
#[doc(inline)]
pub use kube_workqueue::Verdict;
#[doc(inline)]
pub use kube_workqueue::WorkQueue;

// Crates whose types are part of signatures here: a program can name them without depending on the same versions.
pub use bytes;
pub use futures_core;
pub use k8s_openapi;
pub use kube;
pub use serde_json;
