//! Fuzz targets for every parser of the project.
//!
//! A target is a function of bytes that panics if a property does not hold; [`TARGETS`] lists them. The tests of
//! this crate run each target over its corpus and some thousand mutations of it. cargo-fuzz runs it for any time.

mod cache_directory;
mod cel;
mod certificates;
mod custom_resources;
mod mutate;
mod objects;
mod parameters;
mod patches;
mod protobuf_kinds;
mod response_bodies;
mod text_values;
mod web_socket;

pub use cache_directory::cache_directory;
pub use cel::cel_expression;
pub use cel::cel_rules;
pub use certificates::certificate_subject;
pub use custom_resources::definition;
pub use custom_resources::json_path;
pub use custom_resources::schema;
pub use mutate::Mutator;
pub use objects::json_body;
pub use objects::object;
pub use objects::packed;
pub use objects::protobuf;
pub use objects::saved;
pub use parameters::accept;
pub use parameters::continue_token;
pub use parameters::duration;
pub use parameters::query;
pub use patches::field_sets;
pub use patches::json_patch;
pub use patches::merge_patch;
pub use patches::strategic_patch;
pub use protobuf_kinds::protobuf_kinds;
pub use response_bodies::list_body;
pub use response_bodies::protobuf_list;
pub use response_bodies::protobuf_watch;
pub use response_bodies::watch_body;
pub use text_values::field_path;
pub use text_values::field_selector;
pub use text_values::key;
pub use text_values::label_selector;
pub use text_values::version;
pub use web_socket::web_socket;

use kube_informer_wire::{Kind, Origin};
use serde_json::Value;
use std::sync::Arc;

/// A fuzz target: panics if a property does not hold for these bytes.
pub type Target = fn(&[u8]);

/// Every target with its name, which is also the name of its corpus and of its binary for cargo-fuzz.
pub const TARGETS: &[(&str, Target)] = &[
    ("accept", accept),
    ("cache_directory", cache_directory),
    ("cel_expression", cel_expression),
    ("cel_rules", cel_rules),
    ("certificate_subject", certificate_subject),
    ("continue_token", continue_token),
    ("definition", definition),
    ("duration", duration),
    ("field_path", field_path),
    ("field_selector", field_selector),
    ("field_sets", field_sets),
    ("json_body", json_body),
    ("json_patch", json_patch),
    ("json_path", json_path),
    ("key", key),
    ("label_selector", label_selector),
    ("list_body", list_body),
    ("merge_patch", merge_patch),
    ("object", object),
    ("packed", packed),
    ("protobuf", protobuf),
    ("protobuf_kinds", protobuf_kinds),
    ("protobuf_list", protobuf_list),
    ("protobuf_watch", protobuf_watch),
    ("query", query),
    ("saved", saved),
    ("schema", schema),
    ("strategic_patch", strategic_patch),
    ("version", version),
    ("watch_body", watch_body),
    ("web_socket", web_socket),
];

/// The bytes as text, if they are UTF-8.
fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

/// Two parts, separated by the first newline.
fn halves(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let cut = data.iter().position(|byte| *byte == b'\n')?;
    Some((&data[..cut], &data[cut + 1..]))
}

/// Two JSON values, separated by the first newline.
fn values(data: &[u8]) -> Option<(Value, Value)> {
    let (first, second) = halves(data)?;
    Some((serde_json::from_slice(first).ok()?, serde_json::from_slice(second).ok()?))
}

/// The nesting depth of a JSON value: 0 for a scalar.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// The origin of pods.
fn origin() -> Arc<Origin> {
    Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods")))
}
