//! Which representation the client wants.

use crate::status::Status;

/// How answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
}

/// What an answer looks like on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Representation {
    pub(crate) format: Format,
    /// JSON for people: indented.
    pub(crate) pretty: bool,
}

impl Representation {
    pub(crate) const JSON: Self = Self { format: Format::Json, pretty: false };
}

/// One clause of an `Accept` header.
struct Clause<'a> {
    media: &'a str,
    /// Asks for another kind of object than the stored one.
    transformed: bool,
    quality: f32,
}

/// The best representation both sides know. A watch cannot be YAML.
pub(crate) fn negotiate(accept: Option<&str>, streams: bool) -> Result<Representation, Refused> {
    let accept = accept.map(str::trim).filter(|a| !a.is_empty()).unwrap_or("*/*");
    let mut clauses: Vec<Clause<'_>> = accept.split(',').map(parse_clause).collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality)); // stable: equals stay in the client's order
    let mut wanted_yaml = false;
    for clause in clauses.iter().filter(|c| !c.transformed && c.quality > 0.0) {
        match clause.media {
            "application/json" | "application/*" | "*/*" | "*" => return Ok(Representation::JSON),
            "application/yaml" if !streams => {
                return Ok(Representation { format: Format::Yaml, pretty: false });
            }
            "application/yaml" => wanted_yaml = true,
            _ => {}
        }
    }
    let format = if wanted_yaml { Format::Yaml } else { Format::Json };
    let accepted = if streams { "application/json" } else { "application/json, application/yaml" };
    Err(Refused {
        format,
        status: Box::new(Status::not_acceptable(format!(
            "only the following media types are accepted: {accepted}"
        ))),
    })
}

/// Nothing fits. The refusal itself is written in the format that was refused, where it can be.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) format: Format,
    pub(crate) status: Box<Status>,
}

fn parse_clause(clause: &str) -> Clause<'_> {
    let mut parts = clause.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    let (mut transformed, mut quality) = (false, 1.0);
    for parameter in parts {
        match parameter.split_once('=') {
            Some(("as", _)) => transformed = true,
            Some(("q", value)) => quality = value.parse().unwrap_or(0.0),
            _ => {}
        }
    }
    Clause { media, transformed, quality }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_known_clause_of_the_best_quality_wins() {
        for (accept, format) in [
            (None, Some(Format::Json)),
            (Some(""), Some(Format::Json)),
            (Some("*/*"), Some(Format::Json)),
            (Some("application/yaml"), Some(Format::Yaml)),
            (Some("application/json;q=0.5, application/yaml"), Some(Format::Yaml)),
            (Some("application/vnd.kubernetes.protobuf, application/json"), Some(Format::Json)),
            (Some("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"), Some(Format::Json)),
            (Some("text/csv"), None),
            (Some("application/json;as=Chart"), None),
            (Some("application/json;q=0"), None),
            (Some(";;;,,,=;q=x"), None),
        ] {
            assert_eq!(negotiate(accept, false).ok().map(|r| r.format), format, "{accept:?}");
        }
        assert_eq!(negotiate(Some("application/yaml"), true).unwrap_err().format, Format::Yaml);
    }
}
