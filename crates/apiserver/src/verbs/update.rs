//! PUT, and what PUT and PATCH share: the step from the stored object to the new one.

use std::sync::Arc;

use super::create::{Ownership, insert, match_namespace};
use super::decode::{Decoded, decode_object};
use super::options::WriteOptions;
use super::{Request, Response, WriteContext, storage_status};
use crate::budget::TooLarge;
use crate::managed::Managers;
use crate::registry::{Generation, Lifecycle, Object, Resource, StatusMetadata, Subresource};
use crate::status::Status;
use crate::storage::{StorageError, Stored, Update, UpdateError, Updated, guaranteed_update};

pub(crate) async fn update(context: &WriteContext, request: &Request) -> Result<Response, Status> {
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
    let answer = match written {
        Err(WriteError::NotFound) if part == Part::Main && resource.rules.put_creates => {
            let owner = Ownership::Writer(request.writer(&context.clock));
            insert(context, resource, object, owner, options.dry_run, &request.work).await?
        }
        other => other.map_err(|e| e.status(resource, name))?,
    };
    Ok(answer.with_warnings(warnings))
}

/// The object must agree with the URL on its name.
pub(crate) fn match_name(object: &Object, name: &str) -> Result<(), Status> {
    if object.name().is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if object.name() != name {
        let why =
            format!("the name of the object ({}) does not match the name on the URL ({name})", object.name());
        return Err(Status::bad_request(why));
    }
    Ok(())
}

/// Which part of an object a write is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status.
    Main,
    /// The status, and metadata.
    Status,
    /// `spec.finalizers` of a namespace.
    Finalize,
}

impl Part {
    pub(crate) fn of(subresource: Option<Subresource>) -> Self {
        match subresource {
            Some(Subresource::Status) => Self::Status,
            Some(Subresource::Finalize) => Self::Finalize,
            _ => Self::Main,
        }
    }
}

/// What a write makes of an object.
pub(crate) enum Change {
    /// The object as the client sees it: what it changes is the client's from now on.
    Sent(Object),
    /// An applied configuration, merged, with its owners settled.
    Applied(Object, Managers),
}

/// Why a write did not happen. A missing object is told apart because some resources then create it.
pub(crate) enum WriteError {
    NotFound,
    Status(Status),
}

impl From<Status> for WriteError {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl WriteError {
    pub(crate) fn status(self, resource: &Resource, name: &str) -> Status {
        match self {
            Self::NotFound => Status::not_found(resource, name),
            Self::Status(status) => status,
        }
    }
}

/// Replaces the stored object by what `change` makes of it, retried while others are faster.
///
/// 1. A version in the new object must be the stored one. Without one the last writer wins, unless the kind demands it.
/// 2. A result equal to what is stored takes no revision and tells nobody.
/// 3. An object that is being deleted and has lost its last finalizer is removed instead of stored; the writer sees what they
///    wrote at the old version.
pub(crate) async fn write(
    context: &WriteContext,
    request: &Request,
    part: Part,
    dry_run: bool,
    mut change: impl FnMut(&Object) -> Result<Change, Status>,
) -> Result<Response, WriteError> {
    let resource = &request.resource;
    let (name, key) = (request.name()?, request.key()?);
    let writer = request.writer(&context.clock);
    let mut result: Option<Object> = None;
    let mut warnings = Vec::new();
    let mut step = |stored: &Arc<Stored>| -> Result<Update, Status> {
        let old = resource.decode(stored)?;
        let (mut new, settled) = match change(&old)? {
            Change::Sent(new) => (new, None),
            Change::Applied(new, managers) => (new, Some(managers)),
        };
        check_version(resource, &new, &old)?;
        let known = known_managers(&new, &old);
        carry_over(context, resource, part, &mut new, &old)?;
        match (settled, known) {
            (Some(managers), _) => managers.write(&mut new),
            // An object whose writers were forgotten, or never known, has none from then on.
            (None, Some(known)) if !known.is_empty() => {
                known.updated(resource, &writer, Some(&old), &new, &request.work)?.write(&mut new);
            }
            (None, _) => Managers::default().write(&mut new),
        }
        request.work.check()?;
        let mut errors = resource.validate_update(&new, &old);
        if part == Part::Main {
            errors.extend((resource.rules.validate_update)(&new, &old));
        }
        if !errors.is_empty() {
            return Err(Status::invalid(resource, new.name(), &errors));
        }
        request.work.check()?;
        let update = if is_finished(resource, &new) {
            Update::Delete
        } else {
            Update::Write(resource.encode_within(&new, context.object_bytes)?)
        };
        warnings = (resource.rules.warn)(&new);
        result = Some(new);
        Ok(update)
    };
    if dry_run {
        let stored = context
            .storage
            .get(&key)
            .await
            .map_err(|e| WriteError::Status(storage_status(resource, name, e)))?;
        step(&stored.ok_or(WriteError::NotFound)?).map_err(WriteError::Status)?;
        let object = result.ok_or(WriteError::NotFound)?;
        return Ok(Response::made(200, object).with_warnings(warnings));
    }
    let updated = guaranteed_update(&*context.storage, &key, None, step).await;
    match updated {
        Ok(Updated::Deleted(_)) => {
            let object = result.ok_or(WriteError::NotFound)?;
            Ok(Response::made(200, object).with_warnings(warnings))
        }
        Ok(updated) => Ok(Response::stored(200, Arc::clone(updated.stored())).with_warnings(warnings)),
        Err(UpdateError::Storage(StorageError::NotFound)) => Err(WriteError::NotFound),
        Err(UpdateError::Refused(status)) => Err(WriteError::Status(status)),
        Err(UpdateError::Storage(error)) => Err(WriteError::Status(storage_status(resource, name, error))),
    }
}

/// The managers to go on from: those the client sent, else the stored ones; `None` if it asks to forget them.
fn known_managers(new: &Object, old: &Object) -> Option<Managers> {
    match new.metadata().contains_key("managedFields") {
        true if Managers::is_reset(new) => None,
        true => Some(Managers::read(new)),
        false => Some(Managers::read(old)),
    }
}

fn check_version(resource: &Resource, new: &Object, old: &Object) -> Result<(), Status> {
    match new.resource_version() {
        "" | "0" if resource.rules.unconditional_update => {}
        "" | "0" => return Err(Status::version_required(resource, new.name())),
        version if version == old.resource_version() => {}
        version if version.parse::<u64>().is_err() => {
            return Err(Status::unmapped(format!("strconv.ParseUint: parsing {version:?}: invalid syntax")));
        }
        _ => return Err(Status::modified(resource, new.name())),
    }
    Ok(())
}

/// A PUT that names a uid is meant for that object and no other of its name.
fn check_uid(request: &Request, new: &Object, old: &Object) -> Result<(), Status> {
    if new.uid().is_empty() || new.uid() == old.uid() {
        return Ok(());
    }
    let (resource, name) = (&request.resource, request.name()?);
    let key = match request.namespace() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{}/{key}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {}, UID in object meta: {}",
        resource.plural,
        new.uid(),
        old.uid()
    );
    Err(Status::conflict(resource, name, &why))
}

/// Makes of what the client sent what the server takes: the parts this write is not about come from the stored object.
fn carry_over(
    context: &WriteContext,
    resource: &Resource,
    part: Part,
    new: &mut Object,
    old: &Object,
) -> Result<(), TooLarge> {
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
    }
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if !new.metadata().contains_key(field) {
            new.copy_meta(field, old);
        }
    }
    new.copy_meta("creationTimestamp", old);
    new.copy_meta("generation", old);
    new.metadata_mut().remove("selfLink");
    new.copy_meta("resourceVersion", old);
    resource.default(new, context.object_bytes)?;
    if part == Part::Main {
        (rules.prepare_update)(new, old);
        if spec_changed(rules.generation, new, old) {
            new.metadata_mut().insert("generation".to_owned(), (old.generation() + 1).into());
        }
    }
    Ok(())
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
