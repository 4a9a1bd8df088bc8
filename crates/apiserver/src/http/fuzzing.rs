//! Headers and query parameters in plain types, for the fuzz targets.

use std::time::Duration;

use super::negotiate::{Format, Subject, View, negotiate};
use super::request_head::parse_duration;
use crate::status::Status;
use crate::verbs::options::Query;
use kube_informer_types::protobuf;

/// The result of a negotiation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// The media type.
    pub media_type: &'static str,
    /// Whether the object is shown as a row of a table.
    pub table: bool,
    /// Whether all of it is shown.
    pub whole: bool,
}

/// The representation for a header, or the code of the refusal. `typed` is whether the kind has a protobuf form.
pub fn accept(header: &str, query: &str, watch: bool, typed: bool) -> Result<Accepted, u16> {
    let subject = if watch { Subject::Watch } else { Subject::List };
    let chosen = negotiate(Some(header), subject, &Query::parse(Some(query)), typed);
    let chosen = chosen.map_err(|refused| Status::from(&refused.error).code().as_u16())?;
    let media_type = match chosen.format {
        Format::Json => "application/json",
        Format::Yaml => "application/yaml",
        Format::Protobuf => protobuf::MEDIA_TYPE,
    };
    let (table, whole) = (matches!(chosen.view, View::Table(_)), chosen.view == View::Whole);
    Ok(Accepted { media_type, table, whole })
}

/// A duration as Go prints it.
pub fn duration(text: &str) -> Option<Duration> {
    parse_duration(text)
}
