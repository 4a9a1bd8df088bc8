//! GET of one object.

use super::error::{RequestError, VerbError, VersionError};
use super::list::scope;
use super::{Request, Response};
use crate::caches::Caches;
use crate::watch_cache::RevisionOption;

pub(crate) async fn get(caches: &Caches, request: &Request) -> Result<Response, VerbError> {
    if request.query.flag("export") {
        return Err(RequestError::ExportNotSupported.into());
    }
    let revision = parse_version(request.query.text("resourceVersion")).map_err(RequestError::from)?;
    let cache = caches.of(&request.resource).await?;
    match cache.get(&scope(request), revision).await? {
        Some(stored) => Ok(Response::stored(200, stored)),
        None => Err(VerbError::not_found(&request.resource, request.name()?)),
    }
}

/// A resource version parameter.
pub(crate) fn parse_version(text: &str) -> Result<RevisionOption, VersionError> {
    match text {
        "" => Ok(RevisionOption::Unset),
        text => match text.parse::<u64>() {
            Ok(0) => Ok(RevisionOption::Any),
            Ok(version) => Ok(RevisionOption::At(version)),
            Err(_) => Err(VersionError(text.to_owned())),
        },
    }
}
