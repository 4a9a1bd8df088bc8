//! POST on a collection, and the creating half of PUT.

use super::decode::{Decoded, decode_object};
use super::namespaces::admit;
use super::options::WriteOptions;
use super::{Request, Response, WriteContext, storage_status};
use crate::managed::{Managers, Writer};
use crate::registry::{Generation, Object, Resource};
use crate::status::Status;
use crate::storage::{StorageError, Stored};
use crate::work::Work;

/// How often a generated name is drawn before the client is asked to try again.
const NAME_ATTEMPTS: usize = 8;

pub(crate) async fn create(context: &WriteContext, request: &Request) -> Result<Response, Status> {
    let options = WriteOptions::parse(&request.query, "CreateOptions")?;
    let Decoded { mut object, warnings } =
        decode_object(&context.resources.snapshot().registry, request, options.field_validation)?;
    match_namespace(&mut object, request.namespace())?;
    let owner = Ownership::Writer(request.writer(&context.clock));
    let answer = insert(context, &request.resource, object, owner, options.dry_run, &request.work).await?;
    Ok(answer.with_warnings(warnings))
}

/// The object must agree with the URL on its namespace; cluster-scoped kinds have none.
pub(crate) fn match_namespace(object: &mut Object, namespace: Option<&str>) -> Result<(), Status> {
    if let (Some(sent), Some(namespace)) = (object.namespace(), namespace)
        && sent != namespace
    {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(why));
    }
    object.set_meta("namespace", namespace.unwrap_or_default());
    Ok(())
}

/// Who owns the fields of a new object.
#[derive(Debug)]
pub(crate) enum Ownership {
    /// Whoever sent it, all of them.
    Writer(Writer),
    /// As it was worked out by an apply.
    Settled(Managers),
}

/// Gives the object its identity, checks it and stores it.
pub(crate) async fn insert(
    context: &WriteContext,
    resource: &Resource,
    mut object: Object,
    owner: Ownership,
    dry_run: bool,
    work: &Work,
) -> Result<Response, Status> {
    let sent_version = object.resource_version().to_owned();
    identify(context, &mut object);
    let generated = object.name().is_empty() && !object.meta_str("generateName").is_empty();
    admit(context, resource, &object).await?;
    let sent_version = sent_version.parse::<u64>().is_ok_and(|version| version > 0);
    let attempt =
        async |object| attempt(context, resource, object, &owner, sent_version, dry_run, work).await;
    if !generated {
        return attempt(object).await.map_err(|refused| match refused {
            Refused::Exists(name, deleting) => Status::already_exists(resource, &name, deleting),
            Refused::Other(status) => status,
        });
    }
    let mut taken = String::new();
    for _ in 0..NAME_ATTEMPTS {
        let mut candidate = object.clone();
        let name = context.ids.name(candidate.meta_str("generateName"));
        candidate.set_meta("name", &name);
        match attempt(candidate).await {
            Ok(answer) => return Ok(answer),
            Err(Refused::Exists(name, _)) => taken = name,
            Err(Refused::Other(status)) => return Err(status),
        }
    }
    Err(Status::no_unique_name(resource, &taken))
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
) -> Result<Response, Refused> {
    prepare(context, resource, &mut object, owner, work)?;
    let errors = resource.validate(&object);
    if !errors.is_empty() {
        return Err(Refused::Other(Status::invalid(resource, object.name(), &errors)));
    }
    if sent_version {
        let why = "resourceVersion should not be set on objects to be created";
        return Err(Refused::Other(Status::unmapped(why)));
    }
    work.check()?;
    store(context, resource, object, dry_run).await
}

enum Refused {
    /// The name is taken; whether by an object that is being deleted.
    Exists(String, bool),
    Other(Status),
}

impl<E: Into<Status>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

async fn store(
    context: &WriteContext,
    resource: &Resource,
    object: Object,
    dry_run: bool,
) -> Result<Response, Refused> {
    let key = resource.storage_key(object.namespace(), object.name());
    let exists = |stored| {
        let deleting = resource.decode(stored).is_ok_and(|o| o.is_deleting());
        Refused::Exists(object.name().to_owned(), deleting)
    };
    if dry_run {
        let taken = context
            .storage
            .get(&key)
            .await
            .map_err(|e| Refused::Other(storage_status(resource, object.name(), e)))?;
        return match taken {
            Some(stored) => Err(exists(&stored)),
            None => {
                let warnings = (resource.rules.warn)(&object);
                Ok(Response::made(201, object).with_warnings(warnings))
            }
        };
    }
    let document = resource.encode_within(&object, context.object_bytes)?;
    match context.storage.create(&key, document).await {
        Ok(stored) => {
            check_still_served(context, resource, &stored).await.map_err(Refused::Other)?;
            Ok(Response::stored(201, stored).with_warnings((resource.rules.warn)(&object)))
        }
        Err(StorageError::Exists(stored)) => Err(exists(&stored)),
        Err(error) => Err(Refused::Other(storage_status(resource, object.name(), error))),
    }
}

/// Removes an object whose custom resource definition was deleted while it was created.
///
/// The deletion of a definition first marks it and then looks for objects: either it finds the object, or the mark is seen here.
async fn check_still_served(
    context: &WriteContext,
    resource: &Resource,
    stored: &Stored,
) -> Result<(), Status> {
    if context.resources.is_current(resource) {
        return Ok(());
    }
    let _ = context.storage.delete(&stored.key, stored.revision).await;
    Err(Status::kind_terminating("create"))
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

fn prepare(
    context: &WriteContext,
    resource: &Resource,
    object: &mut Object,
    owner: &Ownership,
    work: &Work,
) -> Result<(), Status> {
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
    match owner {
        Ownership::Writer(writer) => {
            Managers::default().updated(resource, writer, None, object, work)?.write(object)
        }
        Ownership::Settled(managers) => managers.clone().write(object),
    }
    (rules.prepare)(object);
    Ok(work.check()?)
}
