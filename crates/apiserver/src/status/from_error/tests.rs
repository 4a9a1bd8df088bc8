//! Code, reason and message of every error. Clients match on them.

use serde_json::{Value, json};

use super::*;
use crate::managed::Conflicts;
use crate::registry::Group;
use crate::storage::StorageError;
use crate::verb::Verb;
use crate::verbs::error::{Conflict, Precondition, VersionError};
use crate::work::Abandoned;

fn target() -> Target {
    Target {
        group: Group::new("apps"),
        plural: "deployments".to_owned(),
        kind: "Deployment".to_owned(),
        name: Some("web".to_owned()),
    }
}

fn rejected(rejection: Rejection) -> HttpError {
    VerbError::Rejected(Box::new(target()), Box::new(rejection)).into()
}

fn read(error: ReadError) -> HttpError {
    VerbError::from(error).into()
}

fn decode(error: DecodeError) -> HttpError {
    VerbError::from(error).into()
}

fn patch(error: PatchError) -> HttpError {
    VerbError::from(error).into()
}

fn injected(fault: Fault) -> HttpError {
    HttpError::Injected {
        fault,
        verb: Verb::List,
        target: Box::new(target()),
        namespace: Some("ns".to_owned()),
    }
}

fn json(error: &HttpError) -> Value {
    serde_json::from_slice(&Status::from(error).to_json()).unwrap()
}

/// Checks code, reason and message of each error.
fn check(expected: Vec<(HttpError, u16, &str, &str)>) {
    for (error, code, reason, message) in expected {
        let status = json(&error);
        let reason = if reason.is_empty() { Value::Null } else { reason.into() };
        assert_eq!(
            (&status["code"], status.get("reason").unwrap_or(&Value::Null), &status["message"]),
            (&json!(code), &reason, &json!(message)),
            "{error:?}"
        );
        assert_eq!(status["status"], "Failure");
    }
}

#[test]
fn requests_that_cannot_be_executed() {
    let number =
        |text: &str, out_of_range| RequestError::InvalidNumber { text: text.to_owned(), out_of_range };
    let version = || VersionError("x".to_owned());
    check(vec![
        (
            RequestError::NoSuchResource.into(),
            404,
            "NotFound",
            "the server could not find the requested resource",
        ),
        (
            RequestError::MethodNotAllowed.into(),
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        ),
        (
            RequestError::KindTerminating(Verb::Create).into(),
            405,
            "MethodNotAllowed",
            "create not allowed while custom resource definition is terminating",
        ),
        (
            RequestError::UnsupportedMediaType(&["a/b", "c/d"]).into(),
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: a/b, c/d",
        ),
        (
            RequestError::UnsupportedPatchType.into(),
            415,
            "UnsupportedMediaType",
            "415: Unsupported Media Type",
        ),
        (
            RequestError::BodyTooLarge { limit: 9 }.into(),
            413,
            "RequestEntityTooLarge",
            "Request entity too large: limit is 9",
        ),
        (number("x", false).into(), 400, "BadRequest", "strconv.ParseInt: parsing \"x\": invalid syntax"),
        (number("9", true).into(), 400, "BadRequest", "strconv.ParseInt: parsing \"9\": value out of range"),
        (
            RequestError::Version(version()).into(),
            500,
            "",
            "resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax",
        ),
        (
            RequestError::ListVersion(version()).into(),
            400,
            "BadRequest",
            "invalid resource version: resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax",
        ),
        (
            HttpError::ShuttingDown,
            429,
            "TooManyRequests",
            "The apiserver is shutting down, please try again later.",
        ),
        (
            HttpError::DeadlineExceeded,
            504,
            "Timeout",
            "Timeout: request did not complete within the allotted timeout",
        ),
    ]);
}

#[test]
fn objects_that_are_not_accepted() {
    let uid = Conflict::UidNotFound("u".to_owned());
    let precondition = Precondition::Uid { wanted: "a".to_owned(), found: "b".to_owned() };
    let conflict = "Operation cannot be fulfilled on deployments.apps \"web\": ";
    check(vec![
        (rejected(Rejection::NotFound), 404, "NotFound", "deployments.apps \"web\" not found"),
        (
            rejected(Rejection::AlreadyExists { being_deleted: false }),
            409,
            "AlreadyExists",
            "deployments.apps \"web\" already exists",
        ),
        (
            rejected(Rejection::AlreadyExists { being_deleted: true }),
            409,
            "AlreadyExists",
            "object is being deleted: deployments.apps \"web\" already exists",
        ),
        (
            rejected(Rejection::Modified),
            409,
            "Conflict",
            &format!(
                "{conflict}the object has been modified; please apply your changes to the latest version and try again"
            ),
        ),
        (
            rejected(uid.into()),
            409,
            "Conflict",
            &format!(
                "{conflict}uid mismatch: the provided object specified uid u, and no existing object was found"
            ),
        ),
        (
            rejected(precondition.into()),
            409,
            "Conflict",
            "Operation cannot be fulfilled on Deployment.apps \"web\": the UID in the precondition (a) does not match the UID in record (b). The object might have been deleted and then recreated",
        ),
        (
            rejected(Rejection::NamespaceTerminating { namespace: "ns".to_owned() }),
            403,
            "Forbidden",
            "deployments.apps \"web\" is forbidden: unable to create new content in namespace ns because it is being terminated",
        ),
        (
            rejected(Rejection::NamespaceNotDeletable),
            403,
            "Forbidden",
            "deployments.apps \"web\" is forbidden: this namespace may not be deleted",
        ),
        (
            rejected(Rejection::Invalid([FieldError::required("spec.x", "")].into())),
            422,
            "Invalid",
            "Deployment.apps \"web\" is invalid: spec.x: Required value",
        ),
        (
            rejected(Rejection::VersionRequired),
            422,
            "Invalid",
            "deployments.apps \"web\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update",
        ),
        (
            rejected(Rejection::VersionOnCreate),
            500,
            "",
            "resourceVersion should not be set on objects to be created",
        ),
        (
            rejected(Rejection::VersionMalformed("x".to_owned())),
            500,
            "",
            "strconv.ParseUint: parsing \"x\": invalid syntax",
        ),
    ]);
    let status = json(&rejected(Rejection::NotFound));
    assert_eq!(status["details"], json!({"name": "web", "group": "apps", "kind": "deployments"}));
    let unique = json(&rejected(Rejection::NoUniqueName));
    assert_eq!((&unique["code"], &unique["details"]["retryAfterSeconds"]), (&json!(409), &json!(1)));
}

#[test]
fn bodies_patches_and_reads() {
    let conflicts = Conflicts { listed: vec![("\"m\"".to_owned(), ".spec.x".to_owned())], total: 1 };
    check(vec![
        (decode(DecodeError::ApplyManagedFields), 400, "BadRequest", "metadata.managedFields must be nil"),
        (
            decode(DecodeError::EmptyReplicas(".spec.n".to_owned())),
            400,
            "BadRequest",
            "the spec replicas field \".spec.n\" cannot be empty",
        ),
        (
            decode(DecodeError::ApplyNotTyped { object: "o".to_owned(), why: "w".to_owned() }),
            500,
            "",
            "failed to create typed patch object (o): w",
        ),
        (
            decode(DecodeError::PatchResult { value: json!({}), why: "w".to_owned() }),
            422,
            "Invalid",
            " \"\" is invalid: patch: Invalid value: \"{}\": w",
        ),
        (patch(PatchError::Malformed("w".to_owned())), 400, "BadRequest", "error decoding patch: w"),
        (patch(PatchError::Contradictory("w".to_owned())), 500, "", "w"),
        (
            patch(PatchError::TooManyOperations(10_001)),
            413,
            "RequestEntityTooLarge",
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
        ),
        (
            patch(PatchError::DoesNotApply("w".to_owned())),
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        ),
        (
            VerbError::ApplyConflicts(conflicts).into(),
            409,
            "Conflict",
            "Apply failed with 1 conflict: conflict with \"m\": .spec.x",
        ),
        (
            read(ReadError::WatchExpired { requested: 3, oldest: 7 }),
            410,
            "Expired",
            "too old resource version: 3 (7)",
        ),
        (
            read(ReadError::TooLarge { requested: 9, current: 7, retry_after: Some(1) }),
            504,
            "Timeout",
            "Timeout: Too large resource version: 9, current: 7",
        ),
        (VerbError::TooLarge(crate::budget::TooLarge).into(), 500, "", "etcdserver: request is too large"),
        (
            VerbError::Abandoned(Abandoned).into(),
            504,
            "Timeout",
            "Timeout: request did not complete within the allotted timeout",
        ),
        (PoolError::Full.into(), 429, "TooManyRequests", "too many large requests, please try again later"),
        (
            VerbError::Storage(StorageError::internal("disk")).into(),
            500,
            "InternalError",
            "Internal error occurred: storage failed: disk",
        ),
    ]);
}

#[test]
fn injected_faults() {
    check(vec![
        (
            injected(Fault::TooManyRequests { retry_after: 7 }),
            429,
            "TooManyRequests",
            "Too many requests, please try again later.",
        ),
        (injected(Fault::InternalError), 500, "InternalError", "Internal error occurred: fault injected"),
        (
            injected(Fault::Unavailable),
            503,
            "ServiceUnavailable",
            "fault injected: the server is currently unable to handle the request",
        ),
        (
            injected(Fault::Forbidden),
            403,
            "Forbidden",
            "deployments.apps \"web\" is forbidden: User \"system:anonymous\" cannot list resource \"deployments\" in API group \"apps\" in the namespace \"ns\"",
        ),
    ]);
    assert_eq!(Status::from(&injected(Fault::TooManyRequests { retry_after: 7 })).retry_after(), Some(7));
}
