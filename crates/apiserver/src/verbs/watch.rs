//! Watches: a collection with `watch=true`, or the deprecated `/watch/` path.

use std::time::Duration;

use super::error::{RequestError, VerbError};
use super::get::parse_version;
use super::list::{field_selector, label_selector, scope, shard_selector};
use super::options::ListOptions;
use super::{Request, Response};
use crate::caches::Caches;
use crate::watch_cache::{RevisionOption, WatchRequest};

pub(crate) async fn watch(
    caches: &Caches,
    request: &Request,
    options: &ListOptions,
) -> Result<Response, VerbError> {
    let labels = label_selector(options)?;
    let fields = field_selector(&request.resource, options)?;
    if let (Some(selected), Some(name)) = (fields.required("metadata.name"), request.name.as_deref())
        && selected != name
    {
        return Err(RequestError::SelectsOtherName.into());
    }
    let revision = parse_version(&options.resource_version).map_err(RequestError::from)?;
    let asked = options.send_initial_events == Some(true);
    // The old path never sets the option: from nowhere it starts with the state, but does not mark its end.
    let legacy = !options.watch && !matches!(revision, RevisionOption::At(_));
    let watch = WatchRequest {
        scope: scope(request),
        revision: if legacy { RevisionOption::Any } else { revision },
        labels,
        fields,
        shards: shard_selector(caches, options)?,
        allow_bookmarks: options.allow_bookmarks,
        initial_events: asked || legacy,
        mark_initial_end: asked && options.allow_bookmarks,
        timeout: options
            .timeout_seconds
            .and_then(|s| u64::try_from(s).ok())
            .filter(|s| *s > 0)
            .map(Duration::from_secs),
    };
    let stream = caches.of(&request.resource).await?.watch(&watch).await?;
    Ok(Response::watch(stream))
}
