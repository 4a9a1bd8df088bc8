//! Private parsers with plain types, for the fuzz targets in `crates/fuzz`. Not part of the API.

use serde_json::{Map, Value};
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::authentication::{User, user_of_certificate, user_of_subject};
use crate::continue_token::{ContinueToken, TokenFormat};
use crate::patch::{Patch, PatchKind};
use crate::schema::{conform, parse_json, types};
use crate::status::Status;
use crate::verbs::options::{ListOptions, Query, WriteOptions};
use crate::work::Work;
use kube_informer_types::protobuf;

pub use crate::custom::fuzzing::Schema;
pub use crate::custom::fuzzing::definition;
pub use crate::custom::fuzzing::follow;
pub use crate::http::fuzzing::Accepted;
pub use crate::http::fuzzing::accept;
pub use crate::http::fuzzing::duration;
pub use crate::managed::fuzzing::FieldSet;
pub use crate::server::fuzzing::web_socket;

/// Decodes a continue token to its revision and start key.
pub fn decode_continue(token: &str) -> Result<(i64, String), String> {
    ContinueToken::decode(token).map(|token| (token.revision, token.start))
}

/// Encodes a continue token, in the format of the cache or of the store.
pub fn encode_continue(revision: i64, start: &str, cached: bool) -> String {
    let format = if cached { TokenFormat::Cache } else { TokenFormat::Storage };
    ContinueToken { revision, start: start.to_owned() }.encode(format)
}

/// Applies a patch of a media type. Strategic merge patches use the schema of Pods.
pub fn patch(media_type: &str, body: Value, object: Value) -> Result<Value, String> {
    let kind = PatchKind::of(media_type).ok_or("no patch")?;
    let patch = Patch::read(kind, body).map_err(|e| e.to_string())?;
    patch.apply(object, types().kind("", "v1", "Pod"), &Work::default()).map_err(|e| e.to_string())
}

/// Decodes a protobuf body to JSON.
pub fn decode_protobuf(body: &[u8]) -> Result<Value, String> {
    protobuf::decode(body).map_err(|e| e.to_string())
}

/// Encodes an object as a protobuf body.
pub fn encode_protobuf(object: &Value) -> Result<Vec<u8>, String> {
    protobuf::encode(object.to_string().as_bytes()).map(Into::into).map_err(|e| e.to_string())
}

/// Parses a JSON body, and returns the paths of its duplicate fields.
pub fn json_body(text: &[u8]) -> Result<(Value, Vec<String>), String> {
    parse_json(text)
        .map(|parsed| (parsed.value, parsed.duplicates.iter().map(ToString::to_string).collect()))
        .map_err(|e| e.to_string())
}

/// Normalizes an object to the schema of Pods, and returns the paths of removed fields.
pub fn conform_pod(object: &mut Map<String, Value>) -> Result<Vec<String>, String> {
    let shape = types().kind("", "v1", "Pod").ok_or("no such type")?;
    conform(shape, "Pod", object).map_err(|e| e.to_string())
}

/// Parses the options of a list; returns its limit, or the body of the error response.
pub fn list_options(query: &str) -> Result<i64, Vec<u8>> {
    ListOptions::parse(&Query::parse(Some(query)))
        .map(|options| options.limit)
        .map_err(|e| Status::from(&e).to_json())
}

/// Parses the options of a patch; returns whether it is a dry run, or the body of the error response.
pub fn write_options(query: &str, apply: bool) -> Result<bool, Vec<u8>> {
    let query = Query::parse(Some(query));
    let options =
        if apply { WriteOptions::parse_apply(&query) } else { WriteOptions::parse(&query, "PatchOptions") };
    options.map(|options| options.dry_run).map_err(|e| Status::from(&e).to_json())
}

/// The name, the uid and the groups of the user that a certificate names.
pub fn certificate(der: &[u8]) -> Option<(String, String, Vec<String>)> {
    user_of_certificate(&CertificateDer::from(der)).map(identity)
}

/// The same for the subject of a certificate, which is DER without its outer sequence.
pub fn certificate_subject(der: &[u8]) -> Option<(String, String, Vec<String>)> {
    user_of_subject(der).map(identity)
}

fn identity(user: User) -> (String, String, Vec<String>) {
    (user.name, user.uid, user.groups)
}
