//! Seeded generators of realistic Kubernetes objects.
//!
//! Objects are JSON values, so they do not depend on a version of k8s-openapi. The same seed gives the same objects.

#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

mod app;
mod kinds;
mod node;
mod pod;
mod stored;
mod stubborn;

pub use app::App;
pub use kinds::config_map;
pub use kinds::event;
pub use kinds::secret;
pub use kinds::widget;
pub use kinds::widget_definition;
pub use node::node;
pub use pod::Pods;
pub use stored::stored;
pub use stubborn::StubbornPods;
