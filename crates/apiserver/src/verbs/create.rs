//! POST on a collection, and the creating half of PUT.

use std::sync::Arc;

use super::decode::{Decoded, decode_object};
use super::error::{DecodeError, Rejection, RequestError, VerbError};
use super::namespaces::admit;
use super::options::WriteOptions;
use super::{Request, Response, WriteContext};
use crate::managed::{Managers, Writer};
use crate::registry::{Generation, Object, Resource};
use crate::status::FieldErrors;
use crate::storage::{StorageError, Stored};
use crate::verb::Verb;
use crate::work::Work;

/// Attempts to generate a free name.
const NAME_ATTEMPTS: usize = 8;

pub(crate) async fn create(context: &WriteContext, request: &Request) -> Result<Response, VerbError> {
    let options = WriteOptions::parse(&request.query, "CreateOptions")?;
    let Decoded { mut object, warnings } =
        decode_object(&context.resources.snapshot().registry, request, options.field_validation)?;
    match_namespace(&mut object, request.namespace())?;
    (request.resource.rules.record_creator)(&mut object, &request.user);
    let owner = Ownership::Writer(request.writer(&context.clock));
    let response = insert(context, &request.resource, object, owner, options.dry_run, &request.work).await?;
    Ok(response.with_warnings(warnings))
}

/// Checks that the namespace of the object is that of the URL. Cluster-scoped objects have none.
pub(crate) fn match_namespace(object: &mut Object, namespace: Option<&str>) -> Result<(), DecodeError> {
    if let (Some(sent), Some(namespace)) = (object.namespace(), namespace)
        && sent != namespace
    {
        return Err(DecodeError::OtherNamespace);
    }
    object.set_meta("namespace", namespace);
    Ok(())
}

/// The owners of the fields of a new object.
#[derive(Debug)]
pub(crate) enum Ownership {
    /// The writer owns all of them.
    Writer(Writer),
    /// As computed by an apply.
    Settled(Managers),
}

/// Assigns name and uid, validates the object and stores it.
pub(crate) async fn insert(
    context: &WriteContext,
    resource: &Resource,
    mut object: Object,
    owner: Ownership,
    dry_run: bool,
    work: &Work,
) -> Result<Response, VerbError> {
    let sent_version = object.resource_version().to_owned();
    identify(context, &mut object);
    if dry_run && !sent_version.is_empty() {
        // Only the store, which a dry run does not reach, would reject it.
        object.set_meta("resourceVersion", Some(&sent_version));
    }
    let prefix = if object.name().is_none() { object.generate_name().map(str::to_owned) } else { None };
    admit(context, resource, &object).await?;
    let sent_version = sent_version.parse::<u64>().is_ok_and(|version| version > 0);
    let attempt =
        async |object| attempt(context, resource, object, &owner, sent_version, dry_run, work).await;
    let Some(prefix) = prefix else {
        return attempt(object).await.map_err(|failed| match failed {
            Failed::Exists { name, being_deleted } => {
                VerbError::rejected(resource, Some(&name), Rejection::AlreadyExists { being_deleted })
            }
            Failed::Other(error) => error,
        });
    };
    let mut taken = String::new();
    for _ in 0..NAME_ATTEMPTS {
        let mut candidate = object.clone();
        candidate.set_meta("name", Some(&context.ids.name(&prefix)));
        match attempt(candidate).await {
            Ok(response) => return Ok(response),
            Err(Failed::Exists { name, .. }) => taken = name,
            Err(Failed::Other(error)) => return Err(error),
        }
    }
    Err(VerbError::rejected(resource, Some(&taken), Rejection::NoUniqueName))
}

/// Stores an object of the server itself, which has a name and is not validated. `None` if it exists.
pub(crate) async fn insert_unvalidated(
    context: &WriteContext,
    resource: &Resource,
    mut object: Object,
    writer: Writer,
) -> Result<Option<Arc<Stored>>, VerbError> {
    identify(context, &mut object);
    let owner = Ownership::Writer(writer);
    prepare(context, resource, &mut object, &owner, &Work::default()).await?.write(&mut object);
    let name = object.name().unwrap_or_default();
    let key = resource.storage_key(object.namespace(), name);
    match context.storage.create(&key, resource.encode(&object)?).await {
        Ok(stored) => Ok(Some(stored)),
        Err(StorageError::Exists(_)) => Ok(None),
        Err(error) => Err(VerbError::storage(resource, name, error)),
    }
}

/// Completes, checks and stores an object that has its name.
async fn attempt(
    context: &WriteContext,
    resource: &Resource,
    mut object: Object,
    owner: &Ownership,
    sent_version: bool,
    dry_run: bool,
    work: &Work,
) -> Result<Response, Failed> {
    let rejected = |object: &Object, why| VerbError::rejected(resource, object.name(), why);
    // Held until the object is stored.
    let _turn = context.service_addresses.turn(resource).await;
    let managers = prepare(context, resource, &mut object, owner, work).await?;
    let mut errors = resource.validate(&object, work)?;
    errors.extend(context.service_addresses.check(resource, &object, None));
    if !errors.is_empty() {
        return Err(rejected(&object, Rejection::Invalid(errors)).into());
    }
    if sent_version && !dry_run {
        return Err(rejected(&object, Rejection::VersionOnCreate).into());
    }
    context.admission.check(resource, &object, None)?;
    work.check()?;
    // Held until the object is stored.
    let _charged = match dry_run {
        true => None,
        false => context.admission.charge(&*context.storage, resource, &object).await?,
    };
    store(context, resource, object, managers, dry_run).await
}

/// The error of an attempt. A name that is taken is separate, because a generated one is then replaced.
enum Failed {
    Exists { name: String, being_deleted: bool },
    Other(VerbError),
}

impl<E: Into<VerbError>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

async fn store(
    context: &WriteContext,
    resource: &Resource,
    mut object: Object,
    managers: Managers,
    dry_run: bool,
) -> Result<Response, Failed> {
    let name = object.name().ok_or_else(|| {
        // Validation rejects objects without a name before this.
        VerbError::rejected(resource, None, Rejection::Invalid(FieldErrors::new()))
    })?;
    let key = resource.storage_key(object.namespace(), name);
    let exists = |stored| {
        let being_deleted = resource.decode(stored).is_ok_and(|o| o.is_deleting());
        Failed::Exists { name: name.to_owned(), being_deleted }
    };
    if dry_run {
        return match context.storage.get(&key).await? {
            Some(stored) => Err(exists(&stored)),
            None => {
                let warnings = resource.warnings(&object, None);
                managers.write(&mut object);
                Ok(Response::made(201, resource.as_read(object)).with_warnings(warnings))
            }
        };
    }
    let document = resource.encode_new(&object, &managers, context.object_bytes)?;
    match context.storage.create(&key, document).await {
        Ok(stored) => {
            check_still_served(context, resource, &stored).await?;
            Ok(Response::stored(201, stored).with_warnings(resource.warnings(&object, None)))
        }
        Err(StorageError::Exists(stored)) => Err(exists(&stored)),
        Err(error) => Err(VerbError::storage(resource, name, error).into()),
    }
}

/// Removes an object whose custom resource definition was deleted while it was created.
///
/// The deletion of a CRD first marks it and then looks for objects: either it finds the object, or the mark is seen here.
async fn check_still_served(
    context: &WriteContext,
    resource: &Resource,
    stored: &Stored,
) -> Result<(), RequestError> {
    if context.resources.is_current(resource) {
        return Ok(());
    }
    let _ = context.storage.delete(&stored.key, stored.revision).await;
    Err(RequestError::KindTerminating(Verb::Create))
}

/// Sets the fields that only the server sets: creation time and uid.
fn identify(context: &WriteContext, object: &mut Object) {
    let metadata = object.metadata_mut();
    for field in
        ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion", "managedFields"]
    {
        metadata.remove(field);
    }
    metadata.insert("creationTimestamp".to_owned(), context.clock.timestamp().into());
    metadata.insert("uid".to_owned(), context.ids.uid().into());
}

/// Completes an object. Returns its managers, which are encoded with it.
async fn prepare(
    context: &WriteContext,
    resource: &Resource,
    object: &mut Object,
    owner: &Ownership,
    work: &Work,
) -> Result<Managers, VerbError> {
    let rules = resource.rules;
    if !rules.create_with_status {
        for field in rules.status_fields {
            object.root_mut().remove(*field);
        }
    }
    if rules.generation != Generation::None {
        object.metadata_mut().insert("generation".to_owned(), 1.into());
    }
    resource.default(object, context.object_bytes)?;
    let managers = match owner {
        Ownership::Writer(writer) => Managers::default().updated(resource, writer, None, object, work)?,
        Ownership::Settled(managers) => managers.clone(),
    };
    context.admission.complete(&*context.storage, &context.ids, resource, object).await?;
    (rules.prepare)(object);
    context.service_addresses.assign(resource, object);
    work.check()?;
    Ok(managers.sorted())
}
