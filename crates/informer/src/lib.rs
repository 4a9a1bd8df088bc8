//! A local, indexed, always-current copy of Kubernetes objects, and a call for every change.
