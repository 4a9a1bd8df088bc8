//! The one place where errors become responses.

use super::{FieldError, Status};
use crate::cpu_pool::PoolError;
use crate::faults::Fault;
use crate::http::{HttpError, NotAcceptable};
use crate::patch::PatchError;
use crate::server::AccessError;
use crate::verbs::error::{Blocked, DecodeError, Rejection, RequestError, Target, VerbError};
use crate::watch_cache::ReadError;

/// Seconds after which a client may retry a request that was refused for lack of capacity.
const RETRY_AFTER: u32 = 1;
/// The same while the server shuts down.
const RETRY_AFTER_SHUTDOWN: u32 = 5;

impl From<&AccessError> for Status {
    fn from(error: &AccessError) -> Self {
        match error {
            AccessError::Unauthorized => Self::unauthorized(),
            AccessError::FromWebPage | AccessError::ForeignHost => Self::refused(error.to_string()),
        }
    }
}

impl From<&HttpError> for Status {
    fn from(error: &HttpError) -> Self {
        match error {
            HttpError::Verb(error) => error.into(),
            HttpError::NotAcceptable(error) => error.into(),
            HttpError::TooManyWatches(_) => Self::too_many_requests(error.to_string(), RETRY_AFTER),
            HttpError::ShuttingDown => Self::too_many_requests(error.to_string(), RETRY_AFTER_SHUTDOWN),
            HttpError::DeadlineExceeded => Self::deadline_exceeded(),
            HttpError::Injected { fault, verb, target, namespace } => {
                injected(*fault, verb.as_str(), target, namespace.as_deref())
            }
            HttpError::Impersonation(_) | HttpError::NoProtobufForm { .. } | HttpError::Metrics(_) => {
                Self::internal(error)
            }
            HttpError::Switch(_) | HttpError::Snapshot(_) => Self::bad_request(error.to_string()),
        }
    }
}

impl From<&NotAcceptable> for Status {
    fn from(error: &NotAcceptable) -> Self {
        match error {
            NotAcceptable::NoRepresentation(_) => Self::no_representation(error.to_string()),
            NotAcceptable::InvalidIncludeObject(_) => Self::bad_request(error.to_string()),
            NotAcceptable::MediaType(_) | NotAcceptable::List | NotAcceptable::NotAList => {
                Self::not_acceptable(error.to_string())
            }
        }
    }
}

impl From<&VerbError> for Status {
    fn from(error: &VerbError) -> Self {
        match error {
            VerbError::Request(error) => error.into(),
            VerbError::Decode(error) => (&**error).into(),
            VerbError::Rejected(target, rejection) => rejected(target, rejection),
            VerbError::Patch(error) => error.into(),
            VerbError::ApplyConflicts(conflicts) => Self::apply_conflict(conflicts),
            VerbError::Read(error) => error.into(),
            // The message of etcd, as kube-apiserver passes it on.
            VerbError::TooLarge(_) => Self::unmapped("etcdserver: request is too large"),
            // Sent only if the client still waits, which it does when its deadline passed.
            VerbError::Abandoned(_) => Self::deadline_exceeded(),
            VerbError::Pool(error) => error.into(),
            VerbError::Storage(_)
            | VerbError::Codec(_)
            | VerbError::NoReplicas(_)
            | VerbError::NoRandomness
            | VerbError::NotAnObject => Self::internal(error),
        }
    }
}

impl From<&RequestError> for Status {
    fn from(error: &RequestError) -> Self {
        let text = || error.to_string();
        match error {
            RequestError::NoSuchResource | RequestError::NeedsKubelet { .. } => {
                Self::no_such_resource(text())
            }
            RequestError::MethodNotAllowed | RequestError::KindTerminating(_) => {
                Self::method_not_allowed(text())
            }
            RequestError::UnsupportedMediaType(_) => Self::unsupported_media_type(text()),
            RequestError::UnsupportedPatchType => Self::unsupported_patch_type(text()),
            RequestError::BodyTooLarge { .. } => Self::too_large(text()),
            RequestError::InvalidOptions { kind, errors } => {
                Self::invalid_of(kind, "meta.k8s.io", None, errors)
            }
            RequestError::Version(_) | RequestError::Shards(_) => Self::unmapped(text()),
            RequestError::BodyNotReceived(_)
            | RequestError::BodyNotDecoded(_)
            | RequestError::InvalidNumber { .. }
            | RequestError::InvalidTimeout(_)
            | RequestError::ExportNotSupported
            | RequestError::Selector(_)
            | RequestError::FieldLabel(_)
            | RequestError::SelectsOtherName
            | RequestError::ListVersion(_) => Self::bad_request(text()),
        }
    }
}

impl From<&DecodeError> for Status {
    fn from(error: &DecodeError) -> Self {
        match error {
            DecodeError::OtherKind { kind, wanted, group, name } => {
                let error = FieldError::invalid("kind", kind, format!("must be {wanted}"));
                Self::invalid_of(kind, group.as_str(), name.as_deref(), &[error].into())
            }
            // kube-apiserver names neither kind nor object.
            DecodeError::PatchResult { value, why } => {
                let error = FieldError::invalid("patch", value.to_string(), why);
                Self::invalid_of("", "", None, &[error].into())
            }
            DecodeError::ApplyNotTyped { .. } => Self::unmapped(error.to_string()),
            _ => Self::bad_request(error.to_string()),
        }
    }
}

impl From<&PatchError> for Status {
    fn from(error: &PatchError) -> Self {
        match error {
            PatchError::Malformed(_) => Self::bad_request(error.to_string()),
            PatchError::Contradictory(_) => Self::unmapped(error.to_string()),
            PatchError::TooManyOperations(_) => Self::too_large(error.to_string()),
            PatchError::DoesNotApply(_) => Self::patch_rejected(),
            PatchError::Abandoned(_) => Self::deadline_exceeded(),
        }
    }
}

/// On a watch that has begun, the status is sent in the stream.
impl From<&ReadError> for Status {
    fn from(error: &ReadError) -> Self {
        match error {
            ReadError::TooLarge { requested, current, retry_after } => {
                Self::version_too_large(*requested, *current, retry_after.is_some())
            }
            ReadError::ListExpired | ReadError::WatchExpired { .. } | ReadError::StorageWatchExpired => {
                Self::expired(error.to_string())
            }
            ReadError::ContinueExpired { replacement } => Self::continue_expired(replacement.clone()),
            ReadError::InvalidContinue(_) | ReadError::ContinueWithVersion => {
                Self::bad_request(error.to_string())
            }
            ReadError::NotReady { retry_after, .. } => {
                Self::too_many_requests(error.to_string(), *retry_after)
            }
            ReadError::Storage(error) => Self::internal(error),
        }
    }
}

impl From<&PoolError> for Status {
    fn from(error: &PoolError) -> Self {
        match error {
            PoolError::Full => Self::too_many_requests(error.to_string(), RETRY_AFTER),
            PoolError::ShuttingDown => Self::unavailable(error.to_string()),
            PoolError::Abandoned(_) => Self::deadline_exceeded(),
        }
    }
}

fn rejected(target: &Target, rejection: &Rejection) -> Status {
    let why = || rejection.to_string();
    match rejection {
        Rejection::NotFound => Status::not_found(target),
        Rejection::AlreadyExists { being_deleted } => Status::already_exists(target, *being_deleted),
        Rejection::NoUniqueName => Status::no_unique_name(target, &why()),
        Rejection::Modified | Rejection::Conflict(_) => Status::conflict(target, &why()),
        Rejection::Precondition(_) => Status::precondition(target, &why()),
        Rejection::NamespaceTerminating { namespace } => {
            Status::namespace_terminating(target, &why(), namespace)
        }
        Rejection::NamespaceNotDeletable | Rejection::Forbidden(_) => Status::forbidden(target, &why()),
        Rejection::EvictionBlocked(Blocked::Budget { cause, retry_after }) => {
            Status::budget_violated(why(), cause.clone(), *retry_after)
        }
        Rejection::EvictionBlocked(Blocked::SeveralBudgets) => Status::unmapped(why()),
        Rejection::Invalid(errors) => Status::invalid(target, errors),
        Rejection::VersionRequired => Status::version_required(target),
        Rejection::VersionMalformed(_) | Rejection::VersionOnCreate => Status::unmapped(why()),
        Rejection::InvalidTokenRequest(errors) => {
            Status::invalid_of("TokenRequest", "authentication.k8s.io", target.name.as_deref(), errors)
        }
        Rejection::InvalidScale(error) => {
            Status::invalid_of("Scale", "autoscaling", target.name.as_deref(), &[error.clone()].into())
        }
    }
}

fn injected(fault: Fault, verb: &str, target: &Target, namespace: Option<&str>) -> Status {
    match fault {
        Fault::TooManyRequests { retry_after } => {
            Status::too_many_requests("Too many requests, please try again later.", retry_after)
        }
        Fault::Unavailable => {
            Status::unavailable("fault injected: the server is currently unable to handle the request")
        }
        Fault::Timeout => Status::deadline_exceeded(),
        Fault::Forbidden => Status::not_permitted(target, verb, namespace),
        Fault::Conflict => Status::conflict(target, &Rejection::Modified.to_string()),
        Fault::InternalError | Fault::Delay(_) | Fault::ResponseLost => Status::internal("fault injected"),
    }
}

#[cfg(test)]
mod tests;
