//! `/snapshots`: all objects at one moment, to return to, for test suites that are not written in Rust.
//!
//! | request | effect |
//! |---|---|
//! | `GET /snapshots` | the names of the snapshots; `start` is the state at the start of the server |
//! | `POST /snapshots/NAME` | takes a snapshot, in place of an older one with this name |
//! | `POST /snapshots/NAME/restore` | makes the objects those of the snapshot |
//! | `DELETE /snapshots/NAME` | forgets the snapshot |

use http::{Method, Response, StatusCode};
use serde_json::json;

use super::body::ResponseBody;
use super::error::{HttpError, SnapshotError};
use super::negotiate::Format;
use super::respond::{respond_error, respond_text};
use crate::api::Api;
use crate::snapshots::{restore, take};
use crate::verbs::error::{RequestError, VerbError};

/// The action of a path under `/snapshots/NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SnapshotAction {
    Manage,
    Restore,
}

/// Serves `/snapshots`.
pub(crate) async fn serve(
    api: &Api,
    method: &Method,
    snapshot: Option<(&str, SnapshotAction)>,
) -> Response<ResponseBody> {
    match execute(api, method, snapshot).await {
        Ok(()) => {
            let names = json!({"snapshots": api.snapshots.names()});
            respond_text(StatusCode::OK, "application/json", format!("{names}\n"))
        }
        Err(error) => respond_error(&error, Format::Json),
    }
}

async fn execute(
    api: &Api,
    method: &Method,
    snapshot: Option<(&str, SnapshotAction)>,
) -> Result<(), HttpError> {
    let unknown = |name: &str| SnapshotError::Unknown(name.to_owned());
    match (method, snapshot) {
        (&Method::GET, None) => Ok(()),
        (&Method::POST, Some((name, SnapshotAction::Manage))) => {
            let taken = take(&*api.storage).await.map_err(VerbError::from)?;
            Ok(api.snapshots.set(name, taken).map_err(SnapshotError::from)?)
        }
        (&Method::POST, Some((name, SnapshotAction::Restore))) => {
            let snapshot = api.snapshots.get(name).ok_or_else(|| unknown(name))?;
            Ok(restore(api, &snapshot).await.map_err(VerbError::from)?)
        }
        (&Method::DELETE, Some((name, SnapshotAction::Manage))) => match api.snapshots.remove(name) {
            true => Ok(()),
            false => Err(unknown(name).into()),
        },
        _ => Err(RequestError::MethodNotAllowed.into()),
    }
}
