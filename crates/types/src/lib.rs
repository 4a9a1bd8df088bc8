//! The types of the built-in Kubernetes resources, and their protobuf encoding read by serde.
//!
//! [`types`] is a table of field names, JSON types, zero values and merge rules at Kubernetes 1.36. [`protobuf`] joins it with the
//! field numbers of the protobuf encoding: a message is read as if it had been the JSON that the server would have sent.

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
