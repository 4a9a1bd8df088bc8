//! What the built-in kinds look like: field names, JSON types and merge rules, as one table read once.
//!
//! The table serves three readers: decoding a body ([`conform`]: wrong types are errors, unknown fields are reported and
//! dropped, as a typed server would), strategic merge patches (merge keys), and later server-side apply (list and map types).
//! It belongs to this crate and not to `k8s-openapi`, so that a user's choice of Kubernetes version there changes nothing here.

mod conform;
mod parse;
mod quantity;
mod table;

pub(crate) use conform::conform;
pub(crate) use parse::Parsed;
pub(crate) use parse::parse_json;
pub(crate) use quantity::Quantity;
pub(crate) use table::ListKind;
pub(crate) use table::Merge;
pub(crate) use table::Shape;
pub(crate) use table::Type;
pub(crate) use table::types;
