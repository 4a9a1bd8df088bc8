//! What only pods can do: be bound to a node, be evicted.

use serde_json::{Value, json};

use super::decode::parse_body;
use super::delete::{DeleteOptions, remove};
use super::{Request, Response, WriteContext, storage_status};
use crate::registry::Object;
use crate::status::Status;
use crate::storage::{StorageError, Update, UpdateError, guaranteed_update};

/// POST `/binding`: a scheduler's decision.
pub(crate) async fn bind(context: &WriteContext, request: &Request) -> Result<Response, Status> {
    let (resource, name) = (&request.resource, request.name()?);
    let binding = Object::new(parse_body(request)?.value)
        .ok_or_else(|| Status::bad_request("a binding must be a JSON object"))?;
    let node = binding.str_at("/target/name").to_owned();
    if node.is_empty() {
        return Err(Status::bad_request("a binding must name its node in target.name"));
    }
    let bound = guaranteed_update(&*context.storage, &request.key()?, None, |stored| {
        let mut pod = resource.decode(stored)?;
        let current = pod.str_at("/spec/nodeName").to_owned();
        if pod.is_deleting() {
            let why = format!("pod {} is being deleted, cannot be assigned to a host", pod.name());
            return Err(Status::conflict(resource, pod.name(), &why));
        }
        if !current.is_empty() {
            let why = format!("pod {} is already assigned to node {current:?}", pod.name());
            return Err(Status::conflict(resource, pod.name(), &why));
        }
        pod.section_mut("spec").insert("nodeName".to_owned(), node.clone().into());
        if let Some(annotations) = binding.metadata().get("annotations").and_then(Value::as_object) {
            let own = pod.metadata_mut().entry("annotations").or_insert_with(|| json!({}));
            own.as_object_mut().into_iter().for_each(|own| own.extend(annotations.clone()));
        }
        set_scheduled(&mut pod, &context.clock.timestamp());
        Ok(Update::Write(resource.encode(&pod)?))
    })
    .await;
    match bound {
        Ok(_) => Ok(Response::status(Status::created())),
        Err(UpdateError::Refused(status)) => Err(status),
        Err(UpdateError::Storage(StorageError::NotFound)) => Err(Status::not_found(resource, name)),
        Err(UpdateError::Storage(error)) => Err(storage_status(resource, name, error)),
    }
}

fn set_scheduled(pod: &mut Object, now: &str) {
    let status = pod.section_mut("status");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Some(list) = conditions.as_array_mut() {
        list.retain(|c| c["type"] != "PodScheduled");
        list.push(json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}));
    }
}

/// POST `/eviction`: a delete that would ask disruption budgets, of which none are modelled.
pub(crate) async fn evict(context: &WriteContext, request: &Request) -> Result<Response, Status> {
    let eviction = parse_body(request)?.value;
    let options = eviction.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
    let options: DeleteOptions = serde_json::from_value(options)
        .map_err(|e| Status::bad_request(format!("error decoding deleteOptions: {e}")))?;
    remove(context, &request.resource, request.namespace(), request.name()?, &options).await?;
    Ok(Response::status(Status::created()))
}
