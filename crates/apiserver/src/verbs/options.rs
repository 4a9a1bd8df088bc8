//! Query parameters: reading them, and rejecting invalid combinations with the messages of kube-apiserver.
//!
//! The watch cache decides what the options mean for a list or watch.

use std::num::{IntErrorKind, ParseIntError};

use super::error::RequestError;
use crate::status::{FieldError, FieldErrors};
use crate::watch_cache::RevisionMatch;

/// Decoded query parameters in the order given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.map(|(k, v)| (k.into_owned(), v.into_owned())).collect())
    }

    /// The first value of a parameter; absent is empty.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str())
    }

    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        self.0.iter().filter(|(k, _)| k == name).map(|(_, v)| v.clone()).collect()
    }

    /// Absent, `0` and `false` are false; everything else, the empty value included, is true.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(truthy)
    }

    /// A number, if given.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, RequestError> {
        match self.get(name) {
            None | Some("") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|e: ParseIntError| {
                let out_of_range = matches!(e.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow);
                RequestError::InvalidNumber { text: text.to_owned(), out_of_range }
            }),
        }
    }
}

fn truthy(value: &str) -> bool {
    !matches!(value, "0") && !value.eq_ignore_ascii_case("false")
}

/// Options of list, watch and deletecollection, as given.
#[derive(Debug, Default, Clone)]
pub(crate) struct ListOptions {
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    pub(crate) shard_selector: String,
    pub(crate) watch: bool,
    pub(crate) allow_bookmarks: bool,
    pub(crate) resource_version: String,
    pub(crate) version_match: Option<VersionMatch>,
    pub(crate) timeout_seconds: Option<i64>,
    /// Zero and below mean none.
    pub(crate) limit: i64,
    pub(crate) continue_token: String,
    pub(crate) send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Reads and validates. The deprecated `/watch/` prefix forces a watch without setting the option, so the defaults of a
    /// watch do not apply.
    pub(crate) fn parse(query: &Query) -> Result<Self, RequestError> {
        let mut options = Self {
            label_selector: query.text("labelSelector").to_owned(),
            field_selector: query.text("fieldSelector").to_owned(),
            shard_selector: query.text("shardSelector").to_owned(),
            watch: query.flag("watch"),
            allow_bookmarks: query.flag("allowWatchBookmarks"),
            resource_version: query.text("resourceVersion").to_owned(),
            version_match: VersionMatch::parse(query.text("resourceVersionMatch")),
            timeout_seconds: query.number("timeoutSeconds")?,
            limit: query.number("limit")?.unwrap_or_default().max(0),
            continue_token: query.text("continue").to_owned(),
            send_initial_events: query.get("sendInitialEvents").map(truthy),
        };
        options.apply_watch_defaults();
        let errors = options.faults();
        if errors.is_empty() {
            Ok(options)
        } else {
            Err(RequestError::InvalidOptions { kind: "ListOptions", errors })
        }
    }

    /// A watch without a resource version starts with the initial state, like a streaming list.
    fn apply_watch_defaults(&mut self) {
        let from_nowhere = matches!(self.resource_version.as_str(), "" | "0");
        if self.watch && from_nowhere && self.send_initial_events.is_none() && self.version_match.is_none() {
            self.send_initial_events = Some(true);
            self.version_match = Some(VersionMatch::Known(RevisionMatch::NotOlderThan));
        }
    }

    fn faults(&self) -> FieldErrors {
        if self.watch { self.watch_faults() } else { self.list_faults() }
    }

    fn list_faults(&self) -> FieldErrors {
        const FIELD: &str = "resourceVersionMatch";
        let mut faults = FieldErrors::new();
        if let Some(version_match) = &self.version_match {
            if self.resource_version.is_empty() {
                let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                faults.push(FieldError::forbidden(FIELD, why));
            }
            if !self.continue_token.is_empty() {
                faults.push(FieldError::forbidden(
                    FIELD,
                    "resourceVersionMatch is forbidden when continue is provided",
                ));
            }
            if let VersionMatch::Unknown(text) = version_match {
                faults.push(FieldError::not_supported(FIELD, text, &["Exact", "NotOlderThan", ""]));
            }
            if *version_match == VersionMatch::Known(RevisionMatch::Exact) && self.resource_version == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                faults.push(FieldError::forbidden(FIELD, why));
            }
        }
        if self.send_initial_events.is_some() {
            faults
                .push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        faults
    }

    fn watch_faults(&self) -> FieldErrors {
        const FIELD: &str = "resourceVersionMatch";
        let mut faults = FieldErrors::new();
        if self.send_initial_events.is_some() {
            if self.version_match != Some(VersionMatch::Known(RevisionMatch::NotOlderThan)) {
                let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                faults.push(FieldError::forbidden(FIELD, why));
            }
        } else if self.version_match.is_some() {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            faults.push(FieldError::forbidden(FIELD, why));
        }
        if let Some(version_match) = &self.version_match {
            if *version_match != VersionMatch::Known(RevisionMatch::NotOlderThan) {
                faults.push(FieldError::not_supported(FIELD, version_match.as_str(), &["NotOlderThan"]));
            }
            if !self.continue_token.is_empty() {
                faults.push(FieldError::forbidden(
                    FIELD,
                    "resourceVersionMatch is forbidden when continue is provided",
                ));
            }
        }
        faults
    }
}

/// The `resourceVersionMatch` parameter as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    Known(RevisionMatch),
    Unknown(String),
}

impl VersionMatch {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "" => None,
            "Exact" => Some(Self::Known(RevisionMatch::Exact)),
            "NotOlderThan" => Some(Self::Known(RevisionMatch::NotOlderThan)),
            other => Some(Self::Unknown(other.to_owned())),
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Known(RevisionMatch::Exact) => "Exact",
            Self::Known(RevisionMatch::NotOlderThan) => "NotOlderThan",
            Self::Unknown(text) => text,
        }
    }
}

/// The treatment of unknown and duplicate fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// Options of create, update and patch.
#[derive(Debug, Clone)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) field_validation: FieldValidation,
    /// Whether an apply takes fields from other managers.
    pub(crate) force: bool,
}

/// The longest name of a field manager.
const MAX_MANAGER: usize = 128;

impl WriteOptions {
    /// Reads and validates; `kind` is the name of the options in error messages. `force` belongs to apply patches alone.
    pub(crate) fn parse(query: &Query, kind: &'static str) -> Result<Self, RequestError> {
        let forced = kind == "PatchOptions" && query.get("force").is_some();
        let fault =
            forced.then(|| FieldError::forbidden("force", "may not be specified for non-apply patch"));
        Self::read(query, kind, fault)
    }

    /// The options of an apply patch, which must name a field manager.
    pub(crate) fn parse_apply(query: &Query) -> Result<Self, RequestError> {
        let nameless = query.text("fieldManager").is_empty();
        let fault = nameless.then(|| FieldError::required("fieldManager", "is required for apply patch"));
        Self::read(query, "PatchOptions", fault)
    }

    fn read(query: &Query, kind: &'static str, fault: Option<FieldError>) -> Result<Self, RequestError> {
        let mut faults = FieldErrors::from_iter(fault);
        let manager = query.text("fieldManager");
        if manager.len() > MAX_MANAGER {
            faults.push(FieldError::too_long("fieldManager", MAX_MANAGER));
        }
        if let Some((at, odd)) = manager.chars().enumerate().find(|(_, c)| c.is_control()) {
            let why = format!("invalid character U+{:04X} (at position {at})", u32::from(odd));
            faults.push(FieldError::invalid("fieldManager", manager, why));
        }
        let dry_run = dry_run(&query.all("dryRun"), &mut faults);
        let field_validation = match query.text("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                faults.push(FieldError::not_supported(
                    "fieldValidation",
                    other,
                    &["", "Ignore", "Strict", "Warn"],
                ));
                FieldValidation::Warn
            }
        };
        if !faults.is_empty() {
            return Err(RequestError::InvalidOptions { kind, errors: faults });
        }
        Ok(Self { dry_run, field_validation, force: query.flag("force") })
    }
}

pub(crate) fn dry_run(values: &[String], faults: &mut FieldErrors) -> bool {
    let values: Vec<&str> = values.iter().map(String::as_str).filter(|v| !v.is_empty()).collect();
    if values.iter().any(|value| *value != "All") {
        faults.push(FieldError::not_among("dryRun", &values.as_slice().into(), &["All".into()]));
    }
    !values.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Status;

    fn json(error: &RequestError) -> String {
        String::from_utf8(Status::from(error).to_json()).unwrap()
    }

    fn list(query: &str) -> Result<ListOptions, String> {
        ListOptions::parse(&Query::parse(Some(query))).map_err(|e| json(&e))
    }

    #[test]
    fn flags_read_as_clients_send_them() {
        for (query, watch) in [
            ("", false),
            ("watch", true),
            ("watch=", true),
            ("watch=1", true),
            ("watch=0", false),
            ("watch=FALSE", false),
            ("watch=no", true),
        ] {
            assert_eq!(Query::parse(Some(query)).flag("watch"), watch, "{query}");
        }
    }

    #[test]
    fn a_watch_without_a_version_starts_with_the_state() {
        for (query, initial) in [
            ("watch=1", Some(true)),
            ("watch=1&resourceVersion=0", Some(true)),
            ("watch=1&resourceVersion=5", None),
            ("watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", Some(false)),
        ] {
            assert_eq!(list(query).unwrap().send_initial_events, initial, "{query}");
        }
    }

    #[test]
    fn every_forbidden_combination_is_named() {
        for (query, words) in [
            ("resourceVersionMatch=Exact", "forbidden unless resourceVersion is provided"),
            (
                "resourceVersionMatch=Exact&resourceVersion=1&continue=x",
                "forbidden when continue is provided",
            ),
            ("resourceVersionMatch=Exact&resourceVersion=0", "is forbidden for resourceVersion"),
            ("resourceVersionMatch=X&resourceVersion=1", "Unsupported value"),
            ("sendInitialEvents=false", "sendInitialEvents is forbidden for list"),
            ("watch=1&sendInitialEvents=1", "requires setting resourceVersionMatch"),
            ("watch=1&resourceVersionMatch=NotOlderThan", "forbidden for watch unless"),
            (
                "watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&continue=x",
                "forbidden when continue",
            ),
        ] {
            let error = list(query).unwrap_err();
            assert!(error.contains(words) && error.contains("\"code\":422"), "{query}: {error}");
        }
        assert!(
            list("limit=many")
                .unwrap_err()
                .contains("strconv.ParseInt: parsing \\\"many\\\": invalid syntax")
        );
        assert!(list("limit=99999999999999999999").unwrap_err().contains("value out of range"));
        assert_eq!(list("limit=-5").unwrap().limit, 0);
    }

    #[test]
    fn write_options_are_checked() {
        let parse = |q: &str, kind| WriteOptions::parse(&Query::parse(Some(q)), kind).map_err(|e| json(&e));
        assert!(parse("dryRun=All", "CreateOptions").unwrap().dry_run);
        assert!(parse("dryRun=Some", "CreateOptions").unwrap_err().contains("supported values: \\\"All\\\""));
        assert!(
            parse("fieldValidation=Loud", "UpdateOptions").unwrap_err().contains("UpdateOptions.meta.k8s.io")
        );
        assert!(
            parse("force=false", "PatchOptions")
                .unwrap_err()
                .contains("may not be specified for non-apply patch")
        );
        assert!(
            parse(&format!("fieldManager={}", "m".repeat(129)), "CreateOptions")
                .unwrap_err()
                .contains("Too long")
        );
        assert_eq!(parse("", "CreateOptions").unwrap().field_validation, FieldValidation::Warn);
    }
}
