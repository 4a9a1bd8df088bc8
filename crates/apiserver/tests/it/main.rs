//! Integration tests of the embedded API server: one binary, one module per subject.

mod admission;
mod attack;
mod bad_input;
mod behaviour;
mod cluster;
mod conformance;
mod contract;
mod controllers;
mod crd;
mod deletes;
#[cfg(feature = "etcd")]
mod etcd;
mod every_kind;
mod golden;
mod kinds;
mod kube_rs;
mod kubernetes_service;
mod large;
mod node_ports;
mod process;
mod requests;
mod services;
mod shards;
mod shared_bytes;
mod snapshots;
mod storage_faults;
mod subresources;
mod transport;
mod warnings;
