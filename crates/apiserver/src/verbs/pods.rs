//! Binding of pods.

use serde_json::{Value, json};

use super::decode::{BodyType, parse_body};
use super::error::{Conflict, DecodeError, RequestError, Target, VerbError};
use super::options::WriteOptions;
use super::{Request, Response, WriteContext};
use crate::registry::{Lifecycle, Object, Resource};
use crate::storage::{Update, guaranteed_update};

/// POST `/binding` of a pod, or on `/bindings`: assigns a pod to a node.
pub(crate) async fn bind(context: &WriteContext, request: &Request) -> Result<Response, VerbError> {
    let snapshot = context.resources.snapshot();
    let resource = snapshot.registry.with_lifecycle(Lifecycle::Pod).ok_or(RequestError::NoSuchResource)?;
    let options = WriteOptions::parse(&request.query, "CreateOptions")?;
    let (binding, warnings) = BodyType::BINDING.decode(parse_body(request)?, options.field_validation)?;
    let binding = Object::new(binding).ok_or(DecodeError::NotAnObject("Binding"))?;
    let name = match &request.name {
        Some(name) => name.as_str(),
        None => binding.name().ok_or(DecodeError::BindingWithoutPod)?,
    };
    let key = resource.storage_key(request.namespace(), name);
    let node = binding.str_at("/target/name");
    if node.is_empty() {
        return Err(DecodeError::BindingWithoutNode.into());
    }
    let now = context.clock.timestamp();
    guaranteed_update(&*context.storage, &key, None, |stored| {
        let mut pod = resource.decode(stored)?;
        check_assignable(resource, &pod)?;
        assign(&mut pod, node, &binding, &now);
        let document = resource.encode_within(&pod, context.object_bytes)?;
        Ok(if options.dry_run { Update::Unchanged } else { Update::Write(document) })
    })
    .await
    .map_err(|error| VerbError::update(resource, name, error))?;
    Ok(Response::created().with_warnings(warnings))
}

fn check_assignable(resource: &Resource, pod: &Object) -> Result<(), VerbError> {
    let name = pod.name().unwrap_or_default();
    let current = pod.str_at("/spec/nodeName");
    let conflict = if pod.is_deleting() {
        Conflict::PodDeleting(name.to_owned())
    } else if !current.is_empty() {
        Conflict::PodAssigned { pod: name.to_owned(), node: current.to_owned() }
    } else {
        return Ok(());
    };
    let mut target = Target::new(resource, pod.name());
    target.plural.push_str("/binding");
    Err(VerbError::Rejected(Box::new(target), Box::new(conflict.into())))
}

fn assign(pod: &mut Object, node: &str, binding: &Object, now: &str) {
    pod.section_mut("spec").insert("nodeName".to_owned(), node.into());
    if let Some(annotations) = binding.metadata().get("annotations").and_then(Value::as_object) {
        let own = pod.metadata_mut().entry("annotations").or_insert_with(|| json!({}));
        own.as_object_mut().into_iter().for_each(|own| own.extend(annotations.clone()));
    }
    let status = pod.section_mut("status");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Some(list) = conditions.as_array_mut() {
        list.retain(|c| c["type"] != "PodScheduled");
        list.push(json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}));
    }
}
