//! POST on a collection, and the creating half of PUT.

use super::decode::{Decoded, decode_object};
use super::options::WriteOptions;
use super::{Answer, Request};
use crate::engine::Engine;
use crate::managed::{Managers, Writer};
use crate::registry::{Generation, Object, Resource, generate_name};
use crate::status::Status;
use crate::storage::StorageError;

/// How often a generated name is drawn before the client is asked to try again.
const NAME_ATTEMPTS: usize = 8;

pub(crate) async fn create(engine: &Engine, request: &Request) -> Result<Answer, Status> {
    let options = WriteOptions::parse(&request.query, "CreateOptions")?;
    let Decoded { mut object, warnings } = decode_object(engine, request, options.field_validation)?;
    match_namespace(&mut object, &request.namespace)?;
    let owner = Ownership::Writer(request.writer(engine));
    let answer = insert(engine, &request.resource, object, owner, options.dry_run).await?;
    Ok(answer.with_warnings(warnings))
}

/// The object must agree with the URL on its namespace; cluster-scoped kinds have none.
pub(crate) fn match_namespace(object: &mut Object, namespace: &str) -> Result<(), Status> {
    if !object.namespace().is_empty() && !namespace.is_empty() && object.namespace() != namespace {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(why));
    }
    object.set_meta("namespace", namespace);
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
    engine: &Engine,
    resource: &Resource,
    mut object: Object,
    owner: Ownership,
    dry_run: bool,
) -> Result<Answer, Status> {
    let sent_version = object.resource_version().to_owned();
    identify(engine, &mut object);
    let generated = object.name().is_empty() && !object.meta_str("generateName").is_empty();
    admit(engine, resource, &object).await?;
    let sent_version = sent_version.parse::<u64>().is_ok_and(|version| version > 0);
    let attempt = async |object| attempt(engine, resource, object, &owner, sent_version, dry_run).await;
    if !generated {
        return attempt(object).await.map_err(|refused| match refused {
            Refused::Exists(name, deleting) => Status::already_exists(resource, &name, deleting),
            Refused::Other(status) => status,
        });
    }
    let mut taken = String::new();
    for _ in 0..NAME_ATTEMPTS {
        let mut candidate = object.clone();
        let name = generate_name(candidate.meta_str("generateName"), &mut engine.rng());
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
    engine: &Engine,
    resource: &Resource,
    mut object: Object,
    owner: &Ownership,
    sent_version: bool,
    dry_run: bool,
) -> Result<Answer, Refused> {
    prepare(resource, &mut object, owner);
    let errors = resource.validate(&object);
    if !errors.is_empty() {
        return Err(Refused::Other(Status::invalid(resource, object.name(), &errors)));
    }
    if sent_version {
        let why = "resourceVersion should not be set on objects to be created";
        return Err(Refused::Other(Status::unmapped(why)));
    }
    store(engine, resource, object, dry_run).await
}

enum Refused {
    /// The name is taken; whether by an object that is being deleted.
    Exists(String, bool),
    Other(Status),
}

async fn store(
    engine: &Engine,
    resource: &Resource,
    object: Object,
    dry_run: bool,
) -> Result<Answer, Refused> {
    let key = resource.storage_key(object.namespace(), object.name());
    let exists = |stored| {
        let deleting = engine.object(resource, stored).is_ok_and(|o| o.is_deleting());
        Refused::Exists(object.name().to_owned(), deleting)
    };
    if dry_run {
        let taken = engine
            .storage
            .get(&key)
            .await
            .map_err(|e| Refused::Other(engine.storage_status(resource, object.name(), e)))?;
        return match taken {
            Some(stored) => Err(exists(&stored)),
            None => {
                let warnings = (resource.rules.warn)(&object);
                Ok(Answer::made(201, object).with_warnings(warnings))
            }
        };
    }
    let document = engine.document(resource, &object).map_err(Refused::Other)?;
    match engine.storage.create(&key, document).await {
        Ok(stored) => {
            engine.after_creation(resource, &stored).await.map_err(Refused::Other)?;
            Ok(Answer::stored(201, stored).with_warnings((resource.rules.warn)(&object)))
        }
        Err(StorageError::Exists(stored)) => Err(exists(&stored)),
        Err(error) => Err(Refused::Other(engine.storage_status(resource, object.name(), error))),
    }
}

/// What only the server says of an object: when it came to be, and who it is.
fn identify(engine: &Engine, object: &mut Object) {
    let metadata = object.metadata_mut();
    for field in
        ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion", "managedFields"]
    {
        metadata.remove(field);
    }
    metadata.insert("creationTimestamp".to_owned(), engine.now_text().into());
    metadata.insert("uid".to_owned(), engine.new_uid().into());
}

fn prepare(resource: &Resource, object: &mut Object, owner: &Ownership) {
    let rules = resource.rules;
    if !rules.create_with_status {
        for field in rules.status_fields {
            object.root_mut().remove(*field);
        }
    }
    if rules.generation != Generation::None {
        object.metadata_mut().insert("generation".to_owned(), 1.into());
    }
    resource.default(object);
    match owner {
        Ownership::Writer(writer) => {
            Managers::default().updated(resource, writer, None, object).write(object)
        }
        Ownership::Settled(managers) => managers.clone().write(object),
    }
    (rules.prepare)(object);
}

/// Whether the namespace takes new objects.
async fn admit(engine: &Engine, resource: &Resource, object: &Object) -> Result<(), Status> {
    if !resource.namespaced {
        return Ok(());
    }
    match engine.namespace_phase(object.namespace()).await?.as_deref() {
        None if engine.is_immortal(object.namespace()) => {
            // Nobody can have deleted it: the store has lost its data, and what every cluster has is made again.
            Box::pin(engine.seed_namespaces()).await;
            Ok(())
        }
        None => Err(Status::not_found(engine.namespaces(), object.namespace())),
        Some("Terminating") => {
            Err(Status::namespace_terminating(resource, object.name(), object.namespace()))
        }
        Some(_) => Ok(()),
    }
}
