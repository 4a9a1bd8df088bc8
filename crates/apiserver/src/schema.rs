//! The schema of the built-in kinds: field names, JSON types, zero values and merge rules, parsed once from a table.
//!
//! The table has three users: decoding a body ([`conform`] reports wrong types and drops unknown fields, [`write_zeros`] adds the zero
//! values that kube-apiserver always writes), strategic merge patches (merge keys), and server-side apply (list and map types).
//! This crate has its own table because that of `k8s-openapi` depends on the Kubernetes version its user selects.

mod conform;
mod parse;
mod quantity;
mod reported;
mod zeros;

pub(crate) use conform::conform;
pub(crate) use kube_informer_types::ListKind;
pub(crate) use kube_informer_types::Merge;
pub(crate) use kube_informer_types::Shape;
pub(crate) use kube_informer_types::Type;
pub(crate) use kube_informer_types::types;
pub(crate) use parse::Duplicate;
pub(crate) use parse::Parsed;
pub(crate) use parse::parse_json;
pub(crate) use parse::parse_yaml;
pub(crate) use quantity::Quantity;
pub(crate) use reported::Reported;
pub(crate) use zeros::write_zeros;
