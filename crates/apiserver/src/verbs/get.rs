//! GET of one object.

use super::list::scope;
use super::watch::read_status;
use super::{Request, Response};
use crate::caches::Caches;
use crate::status::Status;
use crate::watch_cache::RevisionOption;

pub(crate) async fn get(caches: &Caches, request: &Request) -> Result<Response, Status> {
    if request.query.flag("export") {
        return Err(Status::bad_request(
            "the export parameter, deprecated since v1.14, is no longer supported",
        ));
    }
    let revision = parse_version(request.query.text("resourceVersion")).map_err(Status::unmapped)?;
    let cache = caches.of(&request.resource).await?;
    let found = cache.get(&scope(request), revision).await;
    match found.map_err(|e| read_status(&e))? {
        Some(stored) => Ok(Response::stored(200, stored)),
        None => Err(Status::not_found(&request.resource, request.name()?)),
    }
}

/// A resource version parameter. The error is the text that a watch or GET answers; a list adds to it.
pub(crate) fn parse_version(text: &str) -> Result<RevisionOption, String> {
    match text {
        "" => Ok(RevisionOption::Unset),
        text => match text.parse::<u64>() {
            Ok(0) => Ok(RevisionOption::Any),
            Ok(version) => Ok(RevisionOption::At(version)),
            Err(_) => Err(format!(
                "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
            )),
        },
    }
}
