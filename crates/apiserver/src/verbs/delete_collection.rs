//! DELETE of a collection: list, then delete one by one.

use super::delete::{DeleteOptions, remove};
use super::list::read;
use super::options::ListOptions;
use super::{Request, Response, WriteContext};
use crate::caches::Caches;
use crate::status::Status;

/// Not atomic: after a failure the remaining objects stay. The response is the list as it was read.
pub(crate) async fn delete_collection(
    context: &WriteContext,
    caches: &Caches,
    request: &Request,
    list: &ListOptions,
) -> Result<Response, Status> {
    let options = DeleteOptions::read(request)?;
    let answer = read(caches, request, list).await?;
    let resource = &request.resource;
    for item in &answer.items {
        let namespace = resource.namespaced.then(|| item.parent());
        match remove(context, resource, namespace, item.name(), &options).await {
            Err(status) if status.code() == http::StatusCode::NOT_FOUND => {}
            Err(status) => return Err(status),
            Ok(_) => {}
        }
    }
    Ok(Response::list(answer))
}
