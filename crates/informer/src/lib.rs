//! A local, indexed, always-current copy of Kubernetes objects, and a call for every change.

mod source;

pub use source::ClientError;
pub use source::KubeSource;
pub use source::informer_client;
