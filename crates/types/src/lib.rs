//! The types of the built-in Kubernetes resources, and their protobuf encoding read by serde.
//!
//! [`types`] is a table of field names, JSON types, zero values and merge rules at Kubernetes 1.36. [`protobuf`] joins
//! it with the field numbers of the protobuf encoding: a message is read as if it had been the JSON that the server
//! would have sent.
//!
//! ```
//! use kube_informer_types::protobuf::{self, Envelope, MessageType};
//!
//! #[derive(serde::Deserialize)]
//! #[serde(rename_all = "camelCase")]
//! struct Spec { node_name: String }
//!
//! #[derive(serde::Deserialize)]
//! struct Pod { spec: Spec }
//!
//! let body = protobuf::encode(br#"{"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": "n1"}}"#)?;
//! let Envelope { api_version, kind, raw } = Envelope::decode(&body)?;
//! let message = MessageType::of(api_version, kind).expect("pods are in the table");
//! let pod: Pod = message.decode(raw, (kind, api_version))?;
//! assert_eq!(pod.spec.node_name, "n1");
//! assert!(message.to_json(raw, (kind, api_version))?.starts_with(br#"{"kind":"Pod","apiVersion":"v1","#));
//! # Ok::<(), protobuf::ProtobufError>(())
//! ```

#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

pub mod protobuf;
mod table;

pub use table::Field;
pub use table::ListKind;
pub use table::Merge;
pub use table::Shape;
pub use table::Type;
pub use table::Types;
pub use table::Zero;
pub use table::types;
