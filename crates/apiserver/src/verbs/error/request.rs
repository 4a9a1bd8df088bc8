//! Requests that cannot be executed, whatever is stored.

use kube_informer_wire::SelectorError;

use crate::registry::UnknownLabel;
use crate::status::FieldErrors;
use crate::verb::Verb;
use crate::watch_cache::ShardSelectorError;
use kube_informer_types::protobuf::ProtobufError;

/// A request that cannot be executed, whatever is stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// A version, resource or subresource that a known group does not have.
    #[error("the server could not find the requested resource")]
    NoSuchResource,
    #[error(
        "the server could not find the requested resource: {resource}/{subresource} needs a kubelet, which this server has not"
    )]
    NeedsKubelet { resource: String, subresource: String },
    #[error("the server does not allow this method on the requested resource")]
    MethodNotAllowed,
    /// The custom resource definition of the kind is being deleted.
    #[error("{} not allowed while custom resource definition is terminating", .0.as_str())]
    KindTerminating(Verb),
    #[error(
        "the body of the request was in an unknown format - accepted media types include: {}", .0.join(", ")
    )]
    UnsupportedMediaType(&'static [&'static str]),
    #[error("415: Unsupported Media Type")]
    UnsupportedPatchType,
    #[error("Request entity too large: limit is {limit}")]
    BodyTooLarge { limit: usize },
    #[error("the request body could not be read: {0}")]
    BodyNotReceived(Box<dyn std::error::Error + Send + Sync>),
    #[error("the request body cannot be decoded: {0}")]
    BodyNotDecoded(ProtobufError),
    /// A number in the query.
    #[error("strconv.ParseInt: parsing {text:?}: {}", if *.out_of_range { "value out of range" } else { "invalid syntax" })]
    InvalidNumber { text: String, out_of_range: bool },
    #[error("invalid timeout specified in the request URL: {0:?}")]
    InvalidTimeout(String),
    /// Query options that contradict each other or have unknown values.
    #[error("invalid {kind}")]
    InvalidOptions { kind: &'static str, errors: FieldErrors },
    #[error("the export parameter, deprecated since v1.14, is no longer supported")]
    ExportNotSupported,
    #[error(transparent)]
    Selector(#[from] SelectorError),
    #[error(transparent)]
    Shards(#[from] ShardSelectorError),
    #[error(transparent)]
    FieldLabel(#[from] UnknownLabel),
    #[error("fieldSelector metadata.name doesn't match requested name")]
    SelectsOtherName,
    /// The resource version of a GET or watch.
    #[error(transparent)]
    Version(#[from] VersionError),
    #[error("invalid resource version: {0}")]
    ListVersion(VersionError),
}

/// A resource version in a query that is not a number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("resourceVersion: Invalid value: {0:?}: strconv.ParseUint: parsing {0:?}: invalid syntax")]
pub(crate) struct VersionError(pub(crate) String);
