//! Seeded generators of realistic Kubernetes objects.
//!
//! Objects are JSON, so that they do not depend on a version of k8s-openapi. The same seed gives the same objects.

mod app;
mod node;
mod pod;

pub use app::App;
pub use node::node;
pub use pod::Pods;
