//! Each status that a response can have.

use std::collections::HashSet;

use super::{Cause, Content, Details, FieldError, FieldErrors, ListMeta, Status};
use crate::managed::Conflicts;
use crate::verbs::error::Target;

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

    /// A delete that removed the object, for resources that do not return it.
    pub(crate) fn deleted(target: &Target, uid: Option<&str>) -> Self {
        let details = Details { uid: uid.unwrap_or_default().to_owned(), ..about(target) };
        let mut status = Self::failure(200, None, "", Some(details));
        (status.0.status, status.0.code) = ("Success", None);
        status
    }

    /// A successful `binding` or eviction.
    pub(crate) fn created() -> Self {
        let mut status = Self::failure(201, None, "", None);
        status.0.status = "Success";
        status
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(400, Some("BadRequest"), message, None)
    }

    pub(super) fn unauthorized() -> Self {
        Self::failure(401, Some("Unauthorized"), "Unauthorized", None)
    }

    /// A request that is refused before its path is read.
    pub(super) fn refused(message: impl Into<String>) -> Self {
        Self::failure(403, Some("Forbidden"), message, Some(Details::default()))
    }

    /// The response of an authorizer. The user is that of a server without authentication.
    pub(super) fn not_permitted(target: &Target, verb: &str, namespace: Option<&str>) -> Self {
        let scope = match namespace {
            None => "at the cluster scope".to_owned(),
            Some(namespace) => format!("in the namespace {namespace:?}"),
        };
        let (qualified, plural, group) = (target.qualified(), &target.plural, target.group.as_str());
        let object = target.name.as_ref().map(|name| format!(" {name:?}")).unwrap_or_default();
        let message = format!(
            "{qualified}{object} is forbidden: User \"system:anonymous\" cannot {verb} resource {plural:?} in API group {group:?} \
             {scope}"
        );
        Self::failure(403, Some("Forbidden"), message, Some(about(target)))
    }

    pub(super) fn not_found(target: &Target) -> Self {
        Self::failure(404, Some("NotFound"), format!("{target} not found"), Some(about(target)))
    }

    pub(super) fn no_such_resource(message: impl Into<String>) -> Self {
        Self::failure(404, Some("NotFound"), message, Some(Details::default()))
    }

    pub(super) fn method_not_allowed(message: impl Into<String>) -> Self {
        Self::failure(405, Some("MethodNotAllowed"), message, Some(Details::default()))
    }

    pub(super) fn not_acceptable(message: impl Into<String>) -> Self {
        Self::failure(406, Some("NotAcceptable"), message, None)
    }

    /// No clause of an `Accept` header names a representation of the server.
    pub(super) fn no_representation(message: impl Into<String>) -> Self {
        Self::failure(406, Some("NotAcceptable"), message, Some(Details::default()))
    }

    pub(super) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::failure(415, Some("UnsupportedMediaType"), message, None)
    }

    pub(super) fn unsupported_patch_type(message: impl Into<String>) -> Self {
        Self::failure(415, Some("UnsupportedMediaType"), message, Some(Details::default()))
    }

    pub(super) fn already_exists(target: &Target, being_deleted: bool) -> Self {
        let prefix = if being_deleted { "object is being deleted: " } else { "" };
        let message = format!("{prefix}{target} already exists");
        Self::failure(409, Some("AlreadyExists"), message, Some(about(target)))
    }

    pub(super) fn no_unique_name(target: &Target, why: &str) -> Self {
        let details = Details { retry_after_seconds: Some(1), ..about(target) };
        Self::failure(409, Some("AlreadyExists"), format!("{target} {why}"), Some(details))
    }

    pub(super) fn conflict(target: &Target, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {target}: {why}");
        Self::failure(409, Some("Conflict"), message, Some(about(target)))
    }

    /// A precondition of a delete. Unlike all other conflicts it names the kind, not the plural.
    pub(super) fn precondition(target: &Target, why: &str) -> Self {
        let name = target.name.as_deref().unwrap_or_default();
        let message =
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", target.kind_with_group());
        let details = Details { kind: target.kind.clone(), ..about(target) };
        Self::failure(409, Some("Conflict"), message, Some(details))
    }

    pub(super) fn forbidden(target: &Target, why: &str) -> Self {
        let message = format!("{target} is forbidden: {why}");
        Self::failure(403, Some("Forbidden"), message, Some(about(target)))
    }

    pub(super) fn namespace_terminating(target: &Target, why: &str, namespace: &str) -> Self {
        let cause = Cause {
            reason: "NamespaceTerminating",
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        };
        let mut status = Self::forbidden(target, why);
        status.0.details = Some(Details { causes: vec![cause], ..about(target) });
        status
    }

    /// An object did not pass validation.
    pub(super) fn invalid(target: &Target, errors: &FieldErrors) -> Self {
        Self::invalid_of(&target.kind, target.group.as_str(), target.name.as_deref(), errors)
    }

    /// A PUT without the version that this resource requires; the only validation error that names the plural.
    pub(super) fn version_required(target: &Target) -> Self {
        let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
        Self::invalid_of(&target.plural, target.group.as_str(), target.name.as_deref(), &[error].into())
    }

    pub(super) fn invalid_of(kind: &str, group: &str, name: Option<&str>, errors: &FieldErrors) -> Self {
        let name = name.unwrap_or_default();
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
    pub(super) fn patch_rejected() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::failure(422, Some("Invalid"), message, Some(Details::default()))
    }

    /// An apply that would change fields of other managers.
    pub(super) fn apply_conflict(conflicts: &Conflicts) -> Self {
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

    pub(super) fn too_large(message: impl Into<String>) -> Self {
        Self::failure(413, Some("RequestEntityTooLarge"), message, None)
    }

    pub(super) fn expired(message: impl Into<String>) -> Self {
        Self::failure(410, Some("Expired"), message, None)
    }

    /// The version of a continue token was compacted. The replacement continues at the latest version.
    pub(super) fn continue_expired(replacement: String) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start a new list \
                       without the continue parameter, or use the continue token in this response to retrieve the remainder of \
                       the results. Continuing with the provided token results in an inconsistent list - objects that were \
                       created, modified, or deleted between the time the first chunk was returned and now may show up in the \
                       list.";
        let mut status = Self::expired(message);
        status.0.metadata.continue_token = Some(replacement);
        status
    }

    /// A version that the server has not reached. With `retry` the client should retry after a second.
    pub(super) fn version_too_large(wanted: u64, current: u64, retry: bool) -> Self {
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

    pub(super) fn deadline_exceeded() -> Self {
        let message = "Timeout: request did not complete within the allotted timeout";
        Self::failure(504, Some("Timeout"), message, Some(Details::default()))
    }

    pub(super) fn too_many_requests(message: impl Into<String>, retry_after: u32) -> Self {
        let details = Details { retry_after_seconds: Some(retry_after), ..Details::default() };
        Self::failure(429, Some("TooManyRequests"), message, Some(details))
    }

    pub(super) fn budget_violated(message: String, cause: String, retry_after: Option<u32>) -> Self {
        let cause = Cause { reason: "DisruptionBudget", message: cause, field: String::new() };
        let details = Details { causes: vec![cause], retry_after_seconds: retry_after, ..Details::default() };
        Self::failure(429, Some("TooManyRequests"), message, Some(details))
    }

    /// An error that kube-apiserver does not map: 500 without a reason.
    pub(super) fn unmapped(message: impl Into<String>) -> Self {
        Self::failure(500, None, message, None)
    }

    pub(super) fn internal(message: impl std::fmt::Display) -> Self {
        let cause = Cause { reason: "", message: message.to_string(), field: String::new() };
        let details = Details { causes: vec![cause], ..Details::default() };
        let message = format!("Internal error occurred: {message}");
        Self::failure(500, Some("InternalError"), message, Some(details))
    }

    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::failure(503, Some("ServiceUnavailable"), message, None)
    }
}

fn about(target: &Target) -> Details {
    Details {
        name: target.name.clone().unwrap_or_default(),
        group: target.group.to_string(),
        kind: target.plural.clone(),
        ..Details::default()
    }
}
