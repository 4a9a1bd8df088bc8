//! DELETE of a collection: list, then delete one by one.

use tokio::task::consume_budget;

use super::delete::{DeleteOptions, remove};
use super::error::VerbError;
use super::list::read;
use super::options::ListOptions;
use super::{Request, Response, WriteContext};
use crate::caches::Caches;

/// Not atomic: after a failure the remaining objects stay. The response is the list as it was read.
pub(crate) async fn delete_collection(
    context: &WriteContext,
    caches: &Caches,
    request: &Request,
    list: &ListOptions,
) -> Result<Response, VerbError> {
    let options = DeleteOptions::read(request)?;
    let list = read(caches, request, list).await?;
    let resource = &request.resource;
    for item in &list.items {
        // The store in memory never waits: without this, a long collection would keep a thread busy.
        consume_budget().await;
        let namespace = resource.namespaced.then(|| item.parent());
        match remove(context, resource, namespace, item.name(), &options).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(Response::list(list))
}
