//! Every error the server answers, in one place: the `Status` object and its catalogue.
//!
//! Inside the server errors are closed enums; here, at the edge, each becomes one of these. The texts are what clients and their tests
//! match on, so they are the original's to the letter.

mod field_error;
mod field_errors;

use std::collections::HashSet;

use http::StatusCode;
use serde::Serialize;

pub(crate) use field_error::FieldError;
pub(crate) use field_errors::FieldErrors;

use crate::budget::TooLarge;
use crate::managed::Conflicts;
use crate::registry::{CodecError, Resource};
use crate::work::Abandoned;

/// A Kubernetes `Status`, success or failure. One pointer wide, because it is the error of nearly everything.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Status(Box<Content>);

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    kind: &'static str,
    api_version: &'static str,
    metadata: ListMeta,
    status: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
}

#[derive(Debug, Clone, Default, Serialize)]
struct ListMeta {
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    continue_token: Option<String>,
}

/// What the status is about.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Details {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) causes: Vec<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after_seconds: Option<u32>,
}

/// One reason among several.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Cause {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) field: String,
}

impl Status {
    fn failure(
        code: u16,
        reason: Option<&'static str>,
        message: impl Into<String>,
        details: Option<Details>,
    ) -> Self {
        Self(Box::new(Content {
            kind: "Status",
            api_version: "v1",
            metadata: ListMeta::default(),
            status: "Failure",
            message: message.into(),
            reason,
            details,
            code: Some(code),
        }))
    }

    /// The answer to a delete that left nothing to show.
    pub(crate) fn deleted(resource: &Resource, name: &str, uid: &str) -> Self {
        let details = Details { uid: uid.to_owned(), ..about(resource, name) };
        let mut status = Self::failure(200, None, "", Some(details));
        (status.0.status, status.0.code) = ("Success", None);
        status
    }

    /// The answer to a successful `binding` and similar posts.
    pub(crate) fn created() -> Self {
        let mut status = Self::failure(201, None, "", None);
        status.0.status = "Success";
        status
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(400, Some("BadRequest"), message, None)
    }

    /// Nobody the server knows.
    pub(crate) fn unauthorized() -> Self {
        Self::failure(401, Some("Unauthorized"), "Unauthorized", None)
    }

    /// A request that is refused before anybody looks at what it wants.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::failure(403, Some("Forbidden"), message, Some(Details::default()))
    }

    /// What authorization would say. The user is the one a server without authentication knows.
    pub(crate) fn not_permitted(resource: &Resource, verb: &str, namespace: &str, name: &str) -> Self {
        let scope = match namespace {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        let (qualified, plural, group) = (resource.qualified(), &resource.plural, &resource.group);
        let object = if name.is_empty() { String::new() } else { format!(" {name:?}") };
        let message = format!(
            "{qualified}{object} is forbidden: User \"system:anonymous\" cannot {verb} resource {plural:?} in API group {group:?} \
             {scope}"
        );
        Self::failure(403, Some("Forbidden"), message, Some(about(resource, name)))
    }

    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} not found", resource.qualified());
        Self::failure(404, Some("NotFound"), message, Some(about(resource, name)))
    }

    /// A version or resource that a known group does not have.
    pub(crate) fn no_such_resource() -> Self {
        Self::failure(
            404,
            Some("NotFound"),
            "the server could not find the requested resource",
            Some(Details::default()),
        )
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::failure(405, Some("MethodNotAllowed"), message, Some(Details::default()))
    }

    /// The definition of the kind is being deleted.
    pub(crate) fn kind_terminating(verb: &str) -> Self {
        let message = format!("{verb} not allowed while custom resource definition is terminating");
        Self::failure(405, Some("MethodNotAllowed"), message, Some(Details::default()))
    }

    pub(crate) fn not_acceptable(message: impl Into<String>) -> Self {
        Self::failure(406, Some("NotAcceptable"), message, None)
    }

    /// No clause of an `Accept` header names anything that could be written.
    pub(crate) fn no_representation(available: &[&str]) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {}", available.join(", "));
        Self::failure(406, Some("NotAcceptable"), message, Some(Details::default()))
    }

    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::failure(415, Some("UnsupportedMediaType"), message, None)
    }

    pub(crate) fn unsupported_patch_type() -> Self {
        Self::failure(
            415,
            Some("UnsupportedMediaType"),
            "415: Unsupported Media Type",
            Some(Details::default()),
        )
    }

    pub(crate) fn already_exists(resource: &Resource, name: &str, being_deleted: bool) -> Self {
        let prefix = if being_deleted { "object is being deleted: " } else { "" };
        let message = format!("{prefix}{} {name:?} already exists", resource.qualified());
        Self::failure(409, Some("AlreadyExists"), message, Some(about(resource, name)))
    }

    pub(crate) fn no_unique_name(resource: &Resource, name: &str) -> Self {
        let message = format!(
            "{} {name:?} already exists, the server was not able to generate a unique name for the object",
            resource.qualified()
        );
        let details = Details { retry_after_seconds: Some(1), ..about(resource, name) };
        Self::failure(409, Some("AlreadyExists"), message, Some(details))
    }

    pub(crate) fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified());
        Self::failure(409, Some("Conflict"), message, Some(about(resource, name)))
    }

    /// The object moved on since the writer read it.
    pub(crate) fn modified(resource: &Resource, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// A delete's precondition failed. Unlike all other conflicts it names the kind, not the plural.
    pub(crate) fn precondition(resource: &Resource, name: &str, why: &str) -> Self {
        let kind = resource.kind_with_group();
        let message = format!("Operation cannot be fulfilled on {kind} {name:?}: {why}");
        let details = Details { kind: resource.kind.to_string(), ..about(resource, name) };
        Self::failure(409, Some("Conflict"), message, Some(details))
    }

    pub(crate) fn forbidden(resource: &Resource, name: &str, why: &str, causes: Vec<Cause>) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", resource.qualified());
        Self::failure(403, Some("Forbidden"), message, Some(Details { causes, ..about(resource, name) }))
    }

    pub(crate) fn namespace_terminating(resource: &Resource, name: &str, namespace: &str) -> Self {
        let cause = Cause {
            reason: "NamespaceTerminating",
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        };
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        Self::forbidden(resource, name, &why, vec![cause])
    }

    /// An object did not pass validation.
    pub(crate) fn invalid(resource: &Resource, name: &str, errors: &FieldErrors) -> Self {
        Self::invalid_of(&resource.kind, &resource.group, name, errors)
    }

    /// A custom object that says it is of another kind; the error names that one.
    pub(crate) fn invalid_kind(kind: &str, resource: &Resource, name: &str, error: &FieldError) -> Self {
        Self::invalid_of(kind, &resource.group, name, &[error.clone()].into())
    }

    /// A PUT without the version that this kind demands; the one validation error that names the plural.
    pub(crate) fn version_required(resource: &Resource, name: &str) -> Self {
        let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
        Self::invalid_of(&resource.plural, &resource.group, name, &[error].into())
    }

    /// Query options (`ListOptions`, `CreateOptions`, …) did not pass validation.
    pub(crate) fn invalid_options(kind: &str, errors: &FieldErrors) -> Self {
        Self::invalid_of(kind, "meta.k8s.io", "", errors)
    }

    fn invalid_of(kind: &str, group: &str, name: &str, errors: &FieldErrors) -> Self {
        let mut seen = HashSet::new();
        let texts = errors.listed().iter().map(FieldError::text).filter(|text| seen.insert(text.clone()));
        let texts: Vec<String> = texts.chain(errors.note()).collect();
        let texts =
            if let [one] = texts.as_slice() { one.clone() } else { format!("[{}]", texts.join(", ")) };
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let causes = errors.listed().iter().map(FieldError::cause).collect();
        let details = Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            causes,
            ..Details::default()
        };
        Self::failure(
            422,
            Some("Invalid"),
            format!("{qualified} {name:?} is invalid: {texts}"),
            Some(details),
        )
    }

    /// A patch that cannot be applied to the object as it is.
    pub(crate) fn patch_rejected() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::failure(422, Some("Invalid"), message, Some(Details::default()))
    }

    /// A patch whose result is not an object of the kind. The original names neither kind nor object.
    pub(crate) fn invalid_patch(error: &FieldError) -> Self {
        Self::invalid_of("", "", "", &[error.clone()].into())
    }

    /// An apply that would change fields of others: pairs of manager and field.
    pub(crate) fn apply_conflict(conflicts: &Conflicts) -> Self {
        let Conflicts { listed, total } = conflicts;
        let message = match (listed.as_slice(), total) {
            ([(manager, field)], 1) => {
                format!("Apply failed with 1 conflict: conflict with {manager}: {field}")
            }
            (many, total) => {
                let mut lines: Vec<String> = Vec::new();
                for (i, (manager, field)) in many.iter().enumerate() {
                    if i == 0 || many[i - 1].0 != *manager {
                        lines.push(format!("conflicts with {manager}:"));
                    }
                    lines.push(format!("- {field}"));
                }
                if many.len() < *total {
                    lines.push(format!("and {} more", total - many.len()));
                }
                format!("Apply failed with {total} conflicts: {}", lines.join("\n"))
            }
        };
        let cause = |(manager, field): &(String, String)| Cause {
            reason: "FieldManagerConflict",
            message: format!("conflict with {manager}"),
            field: field.clone(),
        };
        let details = Details { causes: listed.iter().map(cause).collect(), ..Details::default() };
        Self::failure(409, Some("Conflict"), message, Some(details))
    }

    /// A Scale did not pass validation.
    pub(crate) fn invalid_scale(name: &str, error: &FieldError) -> Self {
        Self::invalid_of("Scale", "autoscaling", name, &[error.clone()].into())
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        Self::failure(
            413,
            Some("RequestEntityTooLarge"),
            format!("Request entity too large: limit is {limit}"),
            None,
        )
    }

    /// A JSON patch with more operations than anyone needs.
    pub(crate) fn too_many_operations(limit: usize, found: usize) -> Self {
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {limit}, got {found}"
        );
        Self::failure(413, Some("RequestEntityTooLarge"), message, None)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::failure(410, Some("Expired"), message, None)
    }

    /// A continue token whose version is gone, with one to go on with at the latest.
    pub(crate) fn continue_expired(replacement: String) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start a new list \
                       without the continue parameter, or use the continue token in this response to retrieve the remainder of \
                       the results. Continuing with the provided token results in an inconsistent list - objects that were \
                       created, modified, or deleted between the time the first chunk was returned and now may show up in the \
                       list.";
        let mut status = Self::expired(message);
        status.0.metadata.continue_token = Some(replacement);
        status
    }

    /// A version the server has not reached. `retry` asks the client to come back in a second.
    pub(crate) fn version_too_large(wanted: u64, current: u64, retry: bool) -> Self {
        let cause = Cause {
            reason: "ResourceVersionTooLarge",
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        let details =
            Details { causes: vec![cause], retry_after_seconds: retry.then_some(1), ..Details::default() };
        let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
        Self::failure(504, Some("Timeout"), message, Some(details))
    }

    /// The request took longer than it may.
    pub(crate) fn deadline_exceeded() -> Self {
        let message = "Timeout: request did not complete within the allotted timeout";
        Self::failure(504, Some("Timeout"), message, Some(Details::default()))
    }

    pub(crate) fn too_many_requests(message: impl Into<String>, retry_after: u32) -> Self {
        let details = Details { retry_after_seconds: Some(retry_after), ..Details::default() };
        Self::failure(429, Some("TooManyRequests"), message, Some(details))
    }

    /// Errors that the original does not map: 500 and no reason.
    pub(crate) fn unmapped(message: impl Into<String>) -> Self {
        Self::failure(500, None, message, None)
    }

    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        let cause = Cause { reason: "", message: message.to_string(), field: String::new() };
        let details = Details { causes: vec![cause], ..Details::default() };
        let message = format!("Internal error occurred: {message}");
        Self::failure(500, Some("InternalError"), message, Some(details))
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::failure(503, Some("ServiceUnavailable"), message, None)
    }

    pub(crate) fn code(&self) -> StatusCode {
        self.0.code.and_then(|c| StatusCode::from_u16(c).ok()).unwrap_or(StatusCode::OK)
    }

    /// For the `Retry-After` header.
    pub(crate) fn retry_after(&self) -> Option<u32> {
        self.0.details.as_ref().and_then(|d| d.retry_after_seconds)
    }

    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

fn about(resource: &Resource, name: &str) -> Details {
    Details {
        name: name.to_owned(),
        group: resource.group.to_string(),
        kind: resource.plural.to_string(),
        ..Details::default()
    }
}

impl From<CodecError> for Status {
    fn from(error: CodecError) -> Self {
        match error {
            CodecError::TooLarge(error) => error.into(),
            other => Self::internal(other),
        }
    }
}

/// The message of etcd, as kube-apiserver passes it on.
impl From<TooLarge> for Status {
    fn from(_: TooLarge) -> Self {
        Self::unmapped("etcdserver: request is too large")
    }
}

/// Sent only if the client still waits, which it does when its deadline passed.
impl From<Abandoned> for Status {
    fn from(_: Abandoned) -> Self {
        Self::deadline_exceeded()
    }
}
