//! DELETE of a collection: list, then delete one by one.

use super::delete::{DeleteOptions, Outcome, remove};
use super::list::read;
use super::options::ListOptions;
use super::{Answer, Request};
use crate::engine::Engine;
use crate::status::Status;

/// Not atomic: what fails in the middle leaves the rest standing. The answer is the list as it was read.
pub(crate) async fn delete_collection(
    engine: &Engine,
    request: &Request,
    list: &ListOptions,
) -> Result<Answer, Status> {
    let options = DeleteOptions::read(request)?;
    let answer = read(engine, request, list).await?;
    let resource = &request.resource;
    let mut emptied = Vec::new();
    for item in &answer.items {
        let namespace = if resource.namespaced { item.parent() } else { "" };
        match remove(engine, resource, namespace, item.name(), &options).await {
            Ok(Outcome::Removed(_)) if !emptied.iter().any(|n| n == namespace) => {
                emptied.push(namespace.to_owned())
            }
            Ok(outcome) => engine.after_marking(resource, item.name(), &outcome).await,
            Err(status) if status.code() == http::StatusCode::NOT_FOUND => {}
            Err(status) => return Err(status),
        }
    }
    if !options.is_dry_run() {
        for namespace in &emptied {
            engine.after_removal(resource, namespace).await;
        }
    }
    Ok(Answer::List(answer))
}
