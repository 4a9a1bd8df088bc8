//! PUT, and the part that PUT and PATCH share: the step from the stored object to the new one.

use std::sync::Arc;

use serde_json::json;

use super::create::{Ownership, insert, match_namespace};
use super::decode::{Decoded, decode_object};
use super::error::{Conflict, DecodeError, Rejection, VerbError};
use super::options::WriteOptions;
use super::pod_parts::{
    ephemeral_container_errors, resize_errors, with_ephemeral_containers, with_resources,
};
use super::{Request, Response, WriteContext};
use crate::managed::{Managers, Writer};
use crate::registry::{Generation, Lifecycle, Object, Resource, StatusMetadata, Subresource};
use crate::storage::{Stored, Update, Updated, guaranteed_update};

pub(crate) async fn update(context: &WriteContext, request: &Request) -> Result<Response, VerbError> {
    let resource = &request.resource;
    let options = WriteOptions::parse(&request.query, "UpdateOptions")?;
    let Decoded { mut object, warnings } =
        decode_object(&context.resources.snapshot().registry, request, options.field_validation)?;
    let name = request.name()?;
    match_namespace(&mut object, request.namespace())?;
    match_name(&object, name)?;
    let part = Part::of(request.subresource);
    let written = write(context, request, part, options.dry_run, |old| {
        check_uid(request, &object, old)?;
        Ok(Change::Sent(object.clone()))
    })
    .await;
    let response = match written {
        Err(error) if error.is_not_found() && part == Part::Main && resource.rules.put_creates => {
            let owner = Ownership::Writer(request.writer(&context.clock));
            insert(context, resource, object, owner, options.dry_run, &request.work).await?
        }
        other => other?,
    };
    Ok(response.with_warnings(warnings))
}

/// Checks that the name of the object is that of the URL.
pub(crate) fn match_name(object: &Object, name: &str) -> Result<(), DecodeError> {
    match object.name() {
        None => Err(DecodeError::NoName { name: name.to_owned() }),
        Some(sent) if sent != name => {
            Err(DecodeError::OtherName { sent: sent.to_owned(), name: name.to_owned() })
        }
        Some(_) => Ok(()),
    }
}

/// The part of an object that a write changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status.
    Main,
    /// The status, and metadata.
    Status,
    /// `spec.finalizers` of a namespace.
    Finalize,
    /// The conditions of a certificate signing request, and metadata.
    Approval,
    /// The ephemeral containers of a pod.
    EphemeralContainers,
    /// The resources of the containers of a pod.
    Resize,
}

impl Part {
    pub(crate) fn of(subresource: Option<Subresource>) -> Self {
        match subresource {
            Some(Subresource::Status) => Self::Status,
            Some(Subresource::Finalize) => Self::Finalize,
            Some(Subresource::Approval) => Self::Approval,
            Some(Subresource::EphemeralContainers) => Self::EphemeralContainers,
            Some(Subresource::Resize) => Self::Resize,
            _ => Self::Main,
        }
    }
}

/// The result of a change.
pub(crate) enum Change {
    /// The object as sent: the writer becomes the owner of the fields it changes.
    Sent(Object),
    /// A merged configuration with its managers.
    Applied(Object, Managers),
}

/// Replaces the stored object with the result of `change`, with retries after conflicts.
///
/// 1. A version in the new object must be the stored one. Without one the last writer wins, unless the resource requires a version.
/// 2. A result equal to the stored object takes no revision and causes no event.
/// 3. An object that is being deleted and has lost its last finalizer is removed instead of stored; the response is the new object at
///    the old version.
pub(crate) async fn write(
    context: &WriteContext,
    request: &Request,
    part: Part,
    dry_run: bool,
    mut change: impl FnMut(&Object) -> Result<Change, VerbError>,
) -> Result<Response, VerbError> {
    let resource = &request.resource;
    let (name, key) = (request.name()?, request.key()?);
    let writer = request.writer(&context.clock);
    let not_found = || VerbError::not_found(resource, name);
    // Held until the object is stored. Other parts of a service have no address.
    let _turn = match part {
        Part::Main if !dry_run => context.service_addresses.turn(resource).await,
        _ => None,
    };
    let mut result: Option<Object> = None;
    let mut warnings = Vec::new();
    let mut step = |stored: &Arc<Stored>| -> Result<Update, VerbError> {
        let old = resource.decode(stored)?;
        let (new, found) = next_version(context, request, part, &writer, change(&old)?, &old)?;
        let update = if is_finished(resource, &new) {
            Update::Delete
        } else {
            Update::Write(resource.encode_within(&new, context.object_bytes)?)
        };
        warnings = resource.warnings(&new, Some(&old));
        warnings.extend(found);
        result = Some(new);
        Ok(update)
    };
    if dry_run {
        let stored = context.storage.get(&key).await?;
        step(&stored.ok_or_else(not_found)?)?;
        let object = resource.as_read(result.ok_or_else(not_found)?);
        return Ok(Response::made(200, object).with_warnings(warnings));
    }
    let updated = guaranteed_update(&*context.storage, &key, None, step).await;
    match updated {
        Ok(Updated::Deleted(_)) => {
            let object = result.ok_or_else(not_found)?;
            Ok(Response::made(200, object).with_warnings(warnings))
        }
        Ok(updated) => Ok(Response::stored(200, Arc::clone(updated.stored())).with_warnings(warnings)),
        Err(error) => Err(VerbError::update(resource, name, error)),
    }
}

/// Completes and validates a changed object. Returns it with the warnings about it.
fn next_version(
    context: &WriteContext,
    request: &Request,
    part: Part,
    writer: &Writer,
    change: Change,
    old: &Object,
) -> Result<(Object, Vec<String>), VerbError> {
    let resource = &request.resource;
    let (mut new, settled) = match change {
        Change::Sent(new) => (new, None),
        Change::Applied(new, managers) => (new, Some(managers)),
    };
    check_version(resource, &new, old)?;
    let known = known_managers(&new, old);
    carry_over(context, resource, part, &mut new, old)?;
    match (settled, known) {
        (Some(managers), _) => managers.write(&mut new),
        // An object without known managers gets none.
        (None, Some(known)) if !known.is_empty() => {
            known.updated(resource, writer, Some(old), &new, &request.work)?.write(&mut new);
        }
        (None, _) => Managers::default().write(&mut new),
    }
    request.work.check()?;
    let (mut errors, warnings) = resource.validate_update(&new, old, &request.work)?;
    match part {
        Part::Main => {
            errors.extend((resource.rules.validate_update)(&new, old));
            errors.extend(context.service_addresses.check(resource, &new, Some(old)));
        }
        Part::EphemeralContainers => errors.extend(ephemeral_container_errors(&new, old)),
        Part::Resize => errors.extend(resize_errors(&new, old)),
        Part::Status | Part::Finalize | Part::Approval => {}
    }
    if !errors.is_empty() {
        return Err(VerbError::rejected(resource, new.name(), Rejection::Invalid(errors)));
    }
    if part == Part::Main {
        context.admission.check(resource, &new, Some(old))?;
    }
    request.work.check()?;
    Ok((new, warnings))
}

/// The managers before the write: those that the client sent, otherwise the stored ones; `None` if the client resets them.
fn known_managers(new: &Object, old: &Object) -> Option<Managers> {
    match new.metadata().contains_key("managedFields") {
        true if Managers::is_reset(new) => None,
        true => Some(Managers::read(new)),
        false => Some(Managers::read(old)),
    }
}

fn check_version(resource: &Resource, new: &Object, old: &Object) -> Result<(), VerbError> {
    let rejected = |why| Err(VerbError::rejected(resource, new.name(), why));
    match new.resource_version() {
        "" | "0" if resource.rules.unconditional_update => {}
        "" | "0" => return rejected(Rejection::VersionRequired),
        version if version == old.resource_version() => {}
        version if version.parse::<u64>().is_err() => {
            return rejected(Rejection::VersionMalformed(version.to_owned()));
        }
        _ => return rejected(Rejection::Modified),
    }
    Ok(())
}

/// A PUT with a uid must not replace another object of the same name.
fn check_uid(request: &Request, new: &Object, old: &Object) -> Result<(), VerbError> {
    let Some(wanted) = new.uid().filter(|uid| Some(*uid) != old.uid()) else { return Ok(()) };
    let (resource, name) = (&request.resource, request.name()?);
    let path = match request.namespace() {
        Some(namespace) => format!("{}/{namespace}/{name}", resource.plural),
        None => format!("{}/{name}", resource.plural),
    };
    let found = old.uid().unwrap_or_default().to_owned();
    let conflict = Conflict::OtherUid { path, wanted: wanted.to_owned(), found };
    Err(VerbError::rejected(resource, Some(name), conflict.into()))
}

/// Completes a sent object: the parts that this write does not change come from the stored object.
fn carry_over(
    context: &WriteContext,
    resource: &Resource,
    part: Part,
    new: &mut Object,
    old: &Object,
) -> Result<(), VerbError> {
    let rules = resource.rules;
    match part {
        Part::Main => {
            for field in rules.status_fields {
                new.copy_field(field, old);
            }
        }
        Part::Status => {
            let sent = std::mem::replace(new, old.clone());
            for field in rules.status_fields {
                new.copy_field(field, &sent);
            }
            if let StatusMetadata::ChangedExcept(kept) = rules.status_metadata {
                new.copy_field("metadata", &sent);
                kept.iter().for_each(|field| new.copy_meta(field, old));
            }
        }
        Part::Finalize => {
            let sent = std::mem::replace(new, old.clone());
            new.copy_field("spec", &sent);
        }
        Part::Approval => {
            let conditions = new.at("/status/conditions").cloned().unwrap_or_else(|| json!([]));
            new.copy_field("spec", old);
            new.copy_field("status", old);
            new.section_mut("status").insert("conditions".to_owned(), conditions);
        }
        Part::EphemeralContainers => *new = with_ephemeral_containers(new, old),
        Part::Resize => *new = with_resources(new.clone(), old),
    }
    if matches!(part, Part::Status | Part::Approval) {
        (rules.prepare_status)(new, old, &context.clock.timestamp());
    }
    carry_over_metadata(new, old);
    resource.default(new, context.object_bytes)?;
    if part == Part::Main {
        context.admission.complete_update(resource, new, old);
        (rules.prepare_update)(new, old);
        context.service_addresses.assign(resource, new);
    }
    let writes_spec = matches!(part, Part::Main | Part::EphemeralContainers | Part::Resize);
    if writes_spec && spec_changed(rules.generation, new, old) {
        new.metadata_mut().insert("generation".to_owned(), (old.generation() + 1).into());
    }
    Ok(())
}

/// Completes the metadata of a sent object with the fields that belong to the server.
fn carry_over_metadata(new: &mut Object, old: &Object) {
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if !new.metadata().contains_key(field) {
            new.copy_meta(field, old);
        }
    }
    for field in ["creationTimestamp", "generation", "resourceVersion"] {
        new.copy_meta(field, old);
    }
    new.metadata_mut().remove("selfLink");
}

fn spec_changed(rule: Generation, new: &Object, old: &Object) -> bool {
    let spec = || new.at("/spec") != old.at("/spec");
    match rule {
        Generation::None => false,
        Generation::Spec => spec(),
        Generation::SpecAndAnnotations => {
            spec() || new.metadata().get("annotations") != old.metadata().get("annotations")
        }
        Generation::Content => {
            let content = |o: &Object| {
                o.root()
                    .iter()
                    .filter(|(k, _)| *k != "metadata")
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect::<Vec<_>>()
            };
            content(new) != content(old)
        }
    }
}

/// Whether the object is being deleted and neither finalizers nor a grace period hold it.
pub(crate) fn is_finished(resource: &Resource, object: &Object) -> bool {
    let spec_finalizers = object.at("/spec/finalizers").and_then(|f| f.as_array());
    let held_by_spec =
        resource.lifecycle == Lifecycle::Namespace && spec_finalizers.is_some_and(|f| !f.is_empty());
    object.is_deleting()
        && object.finalizers().is_empty()
        && object.grace_seconds().unwrap_or_default() == 0
        && !held_by_spec
}
