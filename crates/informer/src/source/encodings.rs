//! The encodings that a source requests.

use super::request::Content;
use kube_informer_wire::Kind;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The encoding that a source requests: protobuf for built-in kinds, until a response shows that it must be JSON.
#[derive(Debug)]
pub(super) struct Encodings {
    protobuf: AtomicBool,
}

impl Encodings {
    pub(super) fn of(kind: &Kind) -> Self {
        let known = may_be_built_in(&kind.group)
            && kube_informer_types::protobuf::knows(&kind.api_version(), &kind.kind);
        Self { protobuf: AtomicBool::new(known) }
    }

    pub(super) fn json() -> Self {
        Self { protobuf: AtomicBool::new(false) }
    }

    pub(super) fn content(&self) -> Content {
        if self.protobuf.load(Relaxed) { Content::Protobuf } else { Content::Json }
    }

    /// Requests JSON from now on.
    pub(super) fn fall_back(&self) {
        self.protobuf.store(false, Relaxed);
    }
}

/// Whether built-in kinds may be in a group. A program that only watches custom resources does not parse the table of types,
/// which takes a megabyte.
pub(crate) fn may_be_built_in(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}
