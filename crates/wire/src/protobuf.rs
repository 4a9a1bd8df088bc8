//! Responses in the protobuf encoding of Kubernetes: framing of lists and watches.
//!
//! A body starts with magic bytes and one message, the *envelope*, which has the kind and the encoded object or list. A
//! watch is a sequence of events, each after its length. Numbers of fields are those of Kubernetes, which never change.

pub(crate) mod framing;
pub(crate) mod list_splitter;
pub(crate) mod watch_splitter;
