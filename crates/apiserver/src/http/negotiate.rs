//! Which representation the client wants.

use crate::protobuf;
use crate::status::Status;
use crate::verbs::options::Query;

/// How answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
    Protobuf,
}

/// What is shown of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// All of it.
    Whole,
    /// Its metadata.
    Metadata,
    /// A row of a table.
    Table(IncludeObject),
}

/// What rides along in a row of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    None,
    Metadata,
    Object,
}

/// What an answer looks like on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Representation {
    pub(crate) format: Format,
    pub(crate) view: View,
    /// JSON for people: indented.
    pub(crate) pretty: bool,
}

impl Representation {
    pub(crate) const JSON: Self = Self { format: Format::Json, view: View::Whole, pretty: false };

    /// As it is stored: nothing has to be decoded.
    pub(crate) fn is_stored_form(self) -> bool {
        self == Self::JSON
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Object,
    List,
    Watch,
}

/// Nothing fits. The refusal itself is written in the format that was refused, where it can be.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) format: Format,
    pub(crate) status: Status,
}

impl Refused {
    fn json(status: Status) -> Self {
        Self { format: Format::Json, status }
    }
}

/// One clause of an `Accept` header.
struct Clause<'a> {
    media: &'a str,
    /// The kind to show the object as, if not its own.
    transform: Option<&'a str>,
    group: &'a str,
    version: &'a str,
    quality: f32,
}

/// The best representation both sides know. A watch cannot be YAML; `typed` says whether whole objects can be
/// protobuf, as metadata always can, and tables never.
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
    let whole = ["application/json", "application/yaml", protobuf::MEDIA_TYPE];
    let streams = ["application/json;stream=watch", protobuf::WATCH_MEDIA_TYPE];
    let (whole, streams) = if typed { (&whole[..], &streams[..]) } else { (&whole[..2], &streams[..1]) };
    let status = match (wanted, subject) {
        // Nothing that was asked for is ever written: the whole choice is shown.
        (None, _) if clauses.iter().all(|clause| clause.transform.is_none()) => {
            let mut all = whole.to_vec();
            all.extend_from_slice(if subject == Subject::Object { &[] } else { streams });
            Status::no_representation(&all)
        }
        (_, Subject::Watch) => Status::not_acceptable(accepted(streams)),
        _ => Status::not_acceptable(accepted(whole)),
    };
    Err(Refused { format: wanted.unwrap_or(Format::Json), status })
}

fn accepted(types: &[&str]) -> String {
    format!("only the following media types are accepted: {}", types.join(", "))
}

/// `None` if the clause asks for a kind that nobody knows.
fn view(clause: &Clause<'_>, subject: Subject, query: &Query) -> Result<Option<View>, Refused> {
    let Some(kind) = clause.transform else { return Ok(Some(View::Whole)) };
    if clause.group != "meta.k8s.io" || clause.version != "v1" {
        return Ok(None);
    }
    match (kind, subject) {
        ("Table", _) => include_object(query).map(|include| Some(View::Table(include))),
        ("PartialObjectMetadata", Subject::List) => Err(Refused::json(Status::not_acceptable(
            "you requested PartialObjectMetadata, but the requested object is a list",
        ))),
        ("PartialObjectMetadataList", Subject::Object | Subject::Watch) => {
            let why = "you requested PartialObjectMetadataList, but the requested object is not a list";
            Err(Refused::json(Status::not_acceptable(why)))
        }
        ("PartialObjectMetadata" | "PartialObjectMetadataList", _) => Ok(Some(View::Metadata)),
        _ => Ok(None),
    }
}

fn include_object(query: &Query) -> Result<IncludeObject, Refused> {
    match query.text("includeObject") {
        "" | "Metadata" => Ok(IncludeObject::Metadata),
        "Object" => Ok(IncludeObject::Object),
        "None" => Ok(IncludeObject::None),
        other => Err(Refused::json(Status::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', \
             or empty"
        )))),
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
            ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", Some(Format::Json)),
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
    fn what_has_no_protobuf_form_is_refused_in_protobuf_or_shown_otherwise() {
        let untyped = |accept| negotiate(Some(accept), Subject::Object, &Query::default(), false);
        assert_eq!(untyped(protobuf::MEDIA_TYPE).unwrap_err().format, Format::Protobuf);
        let either = format!("{},application/json", protobuf::MEDIA_TYPE);
        assert_eq!(untyped(&either).unwrap().format, Format::Json);
        let metadata = format!("{};as=PartialObjectMetadata;v=v1;g=meta.k8s.io", protobuf::MEDIA_TYPE);
        assert_eq!(untyped(&metadata).unwrap().format, Format::Protobuf);
    }

    #[test]
    fn views_fit_their_subject() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        assert_eq!(ask(table, Subject::List, "").unwrap().view, View::Table(IncludeObject::Metadata));
        assert_eq!(
            ask(table, Subject::Watch, "includeObject=None").unwrap().view,
            View::Table(IncludeObject::None)
        );
        assert!(ask(table, Subject::Object, "includeObject=Some").is_err());
        let one = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
        let many = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
        assert_eq!(ask(one, Subject::Watch, "").unwrap().view, View::Metadata);
        assert_eq!(ask(many, Subject::List, "").unwrap().view, View::Metadata);
        assert!(ask(one, Subject::List, "").is_err() && ask(many, Subject::Object, "").is_err());
    }
}
