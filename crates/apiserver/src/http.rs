//! HTTP: from bytes to a resolved request, and from an answer to bytes.

pub(crate) mod route;
