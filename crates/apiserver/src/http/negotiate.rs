//! Content negotiation.

use crate::verbs::options::Query;
use kube_informer_types::protobuf;

/// The format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
    Protobuf,
}

/// The part of an object that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// All of it.
    Whole,
    /// Its metadata.
    Metadata,
    /// A row of a table.
    Table(TableOptions),
}

/// The form of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableOptions {
    pub(crate) include: IncludeObject,
    pub(crate) version: MetaVersion,
}

/// A version of `meta.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    V1,
    V1beta1,
}

impl MetaVersion {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1beta1),
            _ => None,
        }
    }

    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// The part of an object that a table row includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    None,
    Metadata,
    Object,
}

/// The representation of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Representation {
    pub(crate) format: Format,
    pub(crate) view: View,
    /// JSON for people: indented.
    pub(crate) pretty: bool,
}

impl Representation {
    pub(crate) const JSON: Self = Self { format: Format::Json, view: View::Whole, pretty: false };

    /// Whether it is the stored form, which needs no decoding.
    pub(crate) fn is_stored_form(self) -> bool {
        self == Self::JSON
    }
}

/// The requested content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Object,
    List,
    Watch,
    /// A review or a binding, which has no table.
    Action,
}

/// No representation fits.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotAcceptable {
    /// No clause names a media type of the server.
    #[error("406: Not Acceptable\n\nAvailable representations: {}", .0.join(", "))]
    NoRepresentation(Vec<&'static str>),
    #[error("only the following media types are accepted: {}", .0.join(", "))]
    MediaType(&'static [&'static str]),
    #[error("you requested PartialObjectMetadata, but the requested object is a list")]
    List,
    #[error("you requested PartialObjectMetadataList, but the requested object is not a list")]
    NotAList,
    #[error(
        "Unable to convert to Table as requested: includeObject: Invalid value: {0:?}: must be 'Metadata', 'Object', 'None', \
         or empty"
    )]
    InvalidIncludeObject(String),
}

/// A failed negotiation. The response is written in the format that was refused, where possible.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) format: Format,
    pub(crate) error: NotAcceptable,
}

impl From<NotAcceptable> for Refused {
    fn from(error: NotAcceptable) -> Self {
        Self { format: Format::Json, error }
    }
}

const MEDIA_TYPES: &[&str] = &["application/json", "application/yaml", protobuf::MEDIA_TYPE];
const STREAM_TYPES: &[&str] = &["application/json;stream=watch", protobuf::WATCH_MEDIA_TYPE];

/// One clause of an `Accept` header.
struct Clause<'a> {
    media: &'a str,
    /// The kind to convert the object to, if any.
    transform: Option<&'a str>,
    group: &'a str,
    version: &'a str,
    quality: f32,
}

/// The best representation that client and server support. Watches have no YAML. `typed` is whether whole objects have a protobuf
/// form; metadata always has one, tables never.
pub(crate) fn negotiate(
    accept: Option<&str>,
    subject: Subject,
    query: &Query,
    typed: bool,
) -> Result<Representation, Refused> {
    let accept = accept.map(str::trim).filter(|a| !a.is_empty()).unwrap_or("*/*");
    let mut clauses: Vec<Clause<'_>> = accept.split(',').map(parse_clause).collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality)); // stable: equals stay in the client's order
    let mut wanted = None;
    for clause in clauses.iter().filter(|c| c.quality > 0.0) {
        let format = match clause.media {
            "application/json" | "application/*" | "*/*" | "*" => Format::Json,
            "application/yaml" => Format::Yaml,
            protobuf::MEDIA_TYPE => Format::Protobuf,
            _ => continue,
        };
        let Some(view) = view(clause, subject, query)? else { continue };
        let fits = match (format, view) {
            (Format::Json, _) => true,
            (Format::Yaml, _) => subject != Subject::Watch,
            (Format::Protobuf, View::Whole) => typed,
            (Format::Protobuf, View::Metadata) => true,
            (Format::Protobuf, View::Table(_)) => false,
        };
        if fits {
            return Ok(Representation { format, view, pretty: false });
        }
        wanted = wanted.or(Some(format));
    }
    let (whole, streams) =
        if typed { (MEDIA_TYPES, STREAM_TYPES) } else { (&MEDIA_TYPES[..2], &STREAM_TYPES[..1]) };
    let error = match (wanted, subject) {
        // No clause names a representation of this server, so the response lists all of them.
        (None, _) if clauses.iter().all(|clause| clause.transform.is_none()) => {
            let mut all = whole.to_vec();
            let single = matches!(subject, Subject::Object | Subject::Action);
            all.extend_from_slice(if single { &[] } else { streams });
            NotAcceptable::NoRepresentation(all)
        }
        (_, Subject::Watch) => NotAcceptable::MediaType(streams),
        _ => NotAcceptable::MediaType(whole),
    };
    Err(Refused { format: wanted.unwrap_or(Format::Json), error })
}

/// `None` if the clause requests an unknown kind.
fn view(clause: &Clause<'_>, subject: Subject, query: &Query) -> Result<Option<View>, NotAcceptable> {
    let Some(kind) = clause.transform else { return Ok(Some(View::Whole)) };
    let Some(version) = MetaVersion::parse(clause.version).filter(|_| clause.group == "meta.k8s.io") else {
        return Ok(None);
    };
    match (kind, subject) {
        ("Table", Subject::Action) => Ok(None),
        ("Table", _) => {
            include_object(query).map(|include| Some(View::Table(TableOptions { include, version })))
        }
        _ if version != MetaVersion::V1 => Ok(None),
        ("PartialObjectMetadata", Subject::List) => Err(NotAcceptable::List),
        ("PartialObjectMetadataList", Subject::Object | Subject::Watch | Subject::Action) => {
            Err(NotAcceptable::NotAList)
        }
        ("PartialObjectMetadata" | "PartialObjectMetadataList", _) => Ok(Some(View::Metadata)),
        _ => Ok(None),
    }
}

fn include_object(query: &Query) -> Result<IncludeObject, NotAcceptable> {
    match query.text("includeObject") {
        "" | "Metadata" => Ok(IncludeObject::Metadata),
        "Object" => Ok(IncludeObject::Object),
        "None" => Ok(IncludeObject::None),
        other => Err(NotAcceptable::InvalidIncludeObject(other.to_owned())),
    }
}

fn parse_clause(clause: &str) -> Clause<'_> {
    let mut parts = clause.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    let mut parsed = Clause { media, transform: None, group: "", version: "", quality: 1.0 };
    for parameter in parts {
        match parameter.split_once('=') {
            Some(("as", kind)) => parsed.transform = Some(kind),
            Some(("g", group)) => parsed.group = group,
            Some(("v", version)) => parsed.version = version,
            Some(("q", value)) => parsed.quality = value.parse().unwrap_or(0.0),
            _ => {}
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(accept: &str, subject: Subject, query: &str) -> Result<Representation, Refused> {
        negotiate(Some(accept), subject, &Query::parse(Some(query)), true)
    }

    #[test]
    fn the_first_known_clause_of_the_best_quality_wins() {
        for (accept, format) in [
            ("", Some(Format::Json)),
            ("*/*", Some(Format::Json)),
            ("application/yaml", Some(Format::Yaml)),
            ("application/json;q=0.5, application/yaml", Some(Format::Yaml)),
            ("application/vnd.kubernetes.protobuf, application/json", Some(Format::Protobuf)),
            (
                "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io, application/json",
                Some(Format::Json),
            ),
            ("application/json;as=Table;v=v2;g=meta.k8s.io,application/json", Some(Format::Json)),
            ("text/csv", None),
            ("application/json;as=Chart", None),
            ("application/json;q=0", None),
            (";;;,,,=;q=x", None),
        ] {
            assert_eq!(ask(accept, Subject::List, "").ok().map(|r| r.format), format, "{accept}");
        }
        assert!(negotiate(None, Subject::List, &Query::default(), false).is_ok());
        assert_eq!(ask("application/yaml", Subject::Watch, "").unwrap_err().format, Format::Yaml);
    }

    #[test]
    fn kinds_without_a_protobuf_form_fall_back_to_json() {
        let untyped = |accept| negotiate(Some(accept), Subject::Object, &Query::default(), false);
        assert_eq!(untyped(protobuf::MEDIA_TYPE).unwrap_err().format, Format::Protobuf);
        let either = format!("{},application/json", protobuf::MEDIA_TYPE);
        assert_eq!(untyped(&either).unwrap().format, Format::Json);
        let metadata = format!("{};as=PartialObjectMetadata;v=v1;g=meta.k8s.io", protobuf::MEDIA_TYPE);
        assert_eq!(untyped(&metadata).unwrap().format, Format::Protobuf);
    }

    fn table_of(include: IncludeObject, version: MetaVersion) -> View {
        View::Table(TableOptions { include, version })
    }

    #[test]
    fn views_fit_their_subject() {
        let beta = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";
        assert_eq!(
            ask(beta, Subject::List, "").unwrap().view,
            table_of(IncludeObject::Metadata, MetaVersion::V1beta1)
        );
        assert!(ask(beta, Subject::Action, "").is_err(), "a review has no table");
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        assert_eq!(
            ask(table, Subject::List, "").unwrap().view,
            table_of(IncludeObject::Metadata, MetaVersion::V1)
        );
        assert_eq!(
            ask(table, Subject::Watch, "includeObject=None").unwrap().view,
            table_of(IncludeObject::None, MetaVersion::V1)
        );
        assert!(ask(table, Subject::Object, "includeObject=Some").is_err());
        let one = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
        let many = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
        assert_eq!(ask(one, Subject::Watch, "").unwrap().view, View::Metadata);
        assert_eq!(ask(many, Subject::List, "").unwrap().view, View::Metadata);
        assert!(ask(one, Subject::List, "").is_err() && ask(many, Subject::Object, "").is_err());
    }
}
