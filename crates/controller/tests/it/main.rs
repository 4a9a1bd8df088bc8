//! Controllers against the embedded API server.

mod controller;
mod failures;
mod finalizers;
mod kube_runtime;
mod leader;
mod manager;
mod messages;
mod objects;
mod shards;
mod stale_reads;
mod support;
