//! Integration tests of the embedded API server: one binary, one module per subject.

mod bad_input;
mod behaviour;
mod cluster;
mod contract;
mod crd;
mod golden;
mod kube_rs;
mod transport;
