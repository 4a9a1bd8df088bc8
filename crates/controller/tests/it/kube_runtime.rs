//! The API of `kube_runtime`.

mod controllers;
mod objects;
mod streams;
