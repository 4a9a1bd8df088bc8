//! Fuzz targets for every parser of the project.
//!
//! A target is a function of bytes that panics if a property does not hold; [`TARGETS`] lists them. The tests of
//! this crate run each over its corpus and over some thousand mutations of it; cargo-fuzz runs them for as long
//! as one likes.

mod bodies;
mod definitions;
mod documents;
mod mutate;
mod requests;
mod texts;
mod writes;

pub use bodies::list_body;
pub use bodies::watch_body;
pub use definitions::definition;
pub use definitions::json_path;
pub use definitions::schema;
pub use documents::json_body;
pub use documents::object;
pub use documents::packed;
pub use documents::protobuf;
pub use mutate::Mutator;
pub use requests::accept;
pub use requests::continue_token;
pub use requests::duration;
pub use requests::query;
pub use texts::field_path;
pub use texts::field_selector;
pub use texts::key;
pub use texts::label_selector;
pub use texts::version;
pub use writes::field_sets;
pub use writes::json_patch;
pub use writes::merge_patch;
pub use writes::strategic_patch;

/// A fuzz target: panics if a property does not hold for these bytes.
pub type Target = fn(&[u8]);

/// Every target by its name, which is also the name of its corpus and of its program under cargo-fuzz.
pub const TARGETS: &[(&str, Target)] = &[
    ("accept", accept),
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
    ("query", query),
    ("schema", schema),
    ("strategic_patch", strategic_patch),
    ("version", version),
    ("watch_body", watch_body),
];

/// The bytes as text, if they are.
fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

/// Two parts, separated by the first newline.
fn halves(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let cut = data.iter().position(|byte| *byte == b'\n')?;
    Some((&data[..cut], &data[cut + 1..]))
}

/// Two JSON values, separated by the first newline.
fn values(data: &[u8]) -> Option<(serde_json::Value, serde_json::Value)> {
    let (first, second) = halves(data)?;
    Some((serde_json::from_slice(first).ok()?, serde_json::from_slice(second).ok()?))
}
