//! DELETE of one object: at once, after its finalizers, or (pods) after a grace period.

use std::sync::Arc;

use serde::Deserialize;

use super::decode::unknown_format;
use super::error::{DecodeError, Precondition, RequestError, Target, VerbError};
use super::namespaces::check_deletable;
use super::options::{Query, dry_run};
use super::update::is_finished;
use super::{Request, Response, Shown, WriteContext};
use crate::custom;
use crate::registry::{Lifecycle, Object, Resource};
use crate::schema::{parse_json, parse_yaml};
use crate::status::{FieldError, FieldErrors};
use crate::storage::{StorageError, Stored, Update, UpdateError, Updated, guaranteed_update};

/// The treatment of the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PropagationPolicy {
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay.
    Orphan,
}

/// A propagation policy as it was sent.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "String")]
enum Policy {
    Known(PropagationPolicy),
    Unknown(String),
}

impl From<String> for Policy {
    fn from(text: String) -> Self {
        match text.as_str() {
            "Background" => Self::Known(PropagationPolicy::Background),
            "Foreground" => Self::Known(PropagationPolicy::Foreground),
            "Orphan" => Self::Known(PropagationPolicy::Orphan),
            _ => Self::Unknown(text),
        }
    }
}

impl Policy {
    fn as_str(&self) -> &str {
        match self {
            Self::Known(PropagationPolicy::Background) => "Background",
            Self::Known(PropagationPolicy::Foreground) => "Foreground",
            Self::Known(PropagationPolicy::Orphan) => "Orphan",
            Self::Unknown(text) => text,
        }
    }
}

/// How to delete, from the body or else from the query.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_period_seconds: Option<i64>,
    preconditions: Preconditions,
    orphan_dependents: Option<bool>,
    propagation_policy: Option<Policy>,
    dry_run: Vec<String>,
    kind: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

pub(crate) async fn delete(context: &WriteContext, request: &Request) -> Result<Response, VerbError> {
    let options = DeleteOptions::read(request)?;
    let outcome = remove(context, &request.resource, request.namespace(), request.name()?, &options).await?;
    let response = outcome.response(&request.resource, request.name()?, &options);
    let warning = request.resource.rules.delete_warning.filter(|_| !options.has_policy());
    Ok(response.with_warnings(warning.into_iter().map(str::to_owned).collect()))
}

impl DeleteOptions {
    pub(crate) fn read(request: &Request) -> Result<Self, VerbError> {
        let options = if request.body.is_empty() {
            Self::from_query(&request.query)?
        } else {
            Self::from_body(request)?
        };
        let errors = options.errors();
        if errors.is_empty() {
            Ok(options)
        } else {
            Err(RequestError::InvalidOptions { kind: "DeleteOptions", errors }.into())
        }
    }

    fn has_policy(&self) -> bool {
        self.propagation_policy.is_some() || self.orphan_dependents.is_some()
    }

    /// Delete without a grace period, like the namespace controller.
    pub(crate) fn at_once() -> Self {
        Self { grace_period_seconds: Some(0), ..Self::default() }
    }

    /// Delete with this policy, like the garbage collector.
    pub(crate) fn cascading(policy: PropagationPolicy) -> Self {
        Self { propagation_policy: Some(Policy::Known(policy)), ..Self::default() }
    }

    /// Delete nothing, but check everything.
    pub(crate) fn dry_run(mut self) -> Self {
        self.dry_run = vec!["All".to_owned()];
        self
    }

    /// Delete only the object with this uid.
    pub(crate) fn only(mut self, uid: &str) -> Self {
        self.preconditions.uid = Some(uid.to_owned());
        self
    }

    /// Whether only one version of the object may be deleted.
    pub(crate) fn has_version(&self) -> bool {
        self.preconditions.resource_version.is_some()
    }

    /// Delete only this version, unless the options name one.
    pub(crate) fn at_version(mut self, version: &str) -> Self {
        self.preconditions.resource_version.get_or_insert_with(|| version.to_owned());
        self
    }

    /// Replaces the version that a caller has changed.
    pub(crate) fn follow_version(&mut self, version: u64) {
        if let Some(wanted) = &mut self.preconditions.resource_version {
            *wanted = version.to_string();
        }
    }

    fn from_body(request: &Request) -> Result<Self, VerbError> {
        let malformed = |error| DecodeError::DeleteOptions { options: "DeleteOptions", error };
        let parsed = match request.content_type.as_str() {
            "" | "application/json" => parse_json(&request.body),
            "application/yaml" => parse_yaml(&request.body).map_err(serde::de::Error::custom),
            _ => return Err(unknown_format(&request.resource).into()),
        };
        let options: Self = serde_json::from_value(parsed.map_err(malformed)?.value).map_err(malformed)?;
        match options.kind.as_deref() {
            None | Some("" | "DeleteOptions") => Ok(options),
            Some(kind) => Err(DecodeError::NotDeleteOptions(kind.to_owned()).into()),
        }
    }

    fn from_query(query: &Query) -> Result<Self, RequestError> {
        Ok(Self {
            grace_period_seconds: query.number("gracePeriodSeconds")?,
            orphan_dependents: query.get("orphanDependents").map(|_| query.flag("orphanDependents")),
            propagation_policy: query.get("propagationPolicy").map(|text| Policy::from(text.to_owned())),
            dry_run: query.all("dryRun"),
            ..Self::default()
        })
    }

    fn errors(&self) -> FieldErrors {
        let mut errors = FieldErrors::new();
        let policy = self.propagation_policy.as_ref();
        if self.orphan_dependents.is_some() && policy.is_some() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid("propagationPolicy", policy.map(Policy::as_str), why));
        }
        if let Some(Policy::Unknown(other)) = policy {
            errors.push(FieldError::not_supported(
                "propagationPolicy",
                other,
                &["Foreground", "Background", "Orphan", "nil"],
            ));
        }
        dry_run(&self.dry_run, &mut errors);
        errors
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry_run.iter().any(|v| !v.is_empty())
    }

    /// The finalizers of an object with the one of the propagation policy. `orphans` is the default of the resource.
    fn finalizers(&self, object: &Object, orphans: bool) -> Vec<String> {
        let policy = match &self.propagation_policy {
            Some(Policy::Known(policy)) => Some(*policy),
            Some(Policy::Unknown(_)) | None => None,
        };
        let wanted = match (policy, self.orphan_dependents) {
            (Some(PropagationPolicy::Orphan), _) | (None, Some(true)) => Some("orphan"),
            (Some(PropagationPolicy::Foreground), _) => Some("foregroundDeletion"),
            (Some(PropagationPolicy::Background), _) | (None, Some(false)) => None,
            (None, None) if orphans && !object.finalizers().contains(&"foregroundDeletion") => Some("orphan"),
            (None, None) => return object.finalizers().into_iter().map(str::to_owned).collect(),
        };
        let others =
            object.finalizers().into_iter().filter(|f| !["orphan", "foregroundDeletion"].contains(f));
        others.chain(wanted).map(str::to_owned).collect()
    }
}

/// The result of a delete.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Removed; this was its last state.
    Removed(Shown),
    /// Marked for deletion: it is removed after its grace period and its finalizers.
    Marked(Shown),
}

impl Outcome {
    fn response(self, resource: &Resource, name: &str, options: &DeleteOptions) -> Response {
        match self {
            Self::Marked(object) => {
                let code = if options.orphan_dependents == Some(false) { 202 } else { 200 };
                Response::object(code, object)
            }
            Self::Removed(object) if resource.rules.delete_returns_object => Response::object(200, object),
            Self::Removed(object) => {
                let uid = match &object {
                    Shown::Made(object) => object.uid().map(str::to_owned),
                    Shown::Stored(stored) => {
                        resource.decode(stored).ok().and_then(|object| object.uid().map(str::to_owned))
                    }
                };
                Response::deleted(Target::new(resource, Some(name)), uid)
            }
        }
    }
}

/// The next step of a delete.
enum Step {
    /// Nothing holds the object.
    Remove,
    /// Store this mark; the object stays.
    Mark(Object),
    /// Store this mark, then remove: two writes, as watchers of pods expect.
    MarkThenRemove(Object),
    /// It is already marked.
    Wait,
}

/// Deletes one object, as far as its finalizers and grace period allow.
pub(crate) async fn remove(
    context: &WriteContext,
    resource: &Resource,
    namespace: Option<&str>,
    name: &str,
    options: &DeleteOptions,
) -> Result<Outcome, VerbError> {
    check_deletable(context, resource, name)?;
    let key = resource.storage_key(namespace, name);
    if options.is_dry_run() {
        return rehearse(context, resource, name, &key, options).await;
    }
    let mut again = false;
    let updated = guaranteed_update(&*context.storage, &key, None, |stored| {
        again = false;
        let object = resource.decode(stored)?;
        check_preconditions(resource, &object, options)?;
        Ok(match next_step(context, resource, object, options) {
            Step::Remove => Update::Delete,
            Step::Wait => Update::Unchanged,
            Step::Mark(marked) => Update::Write(resource.encode(&marked)?),
            Step::MarkThenRemove(marked) => {
                again = true;
                Update::Write(resource.encode(&marked)?)
            }
        })
    })
    .await;
    match updated {
        // The mark is stored; the next round finds nothing that holds the object. A version precondition was met already.
        Ok(Updated::Written(stored)) if again => finish(context, resource, name, &key, &stored).await,
        Ok(Updated::Deleted(stored)) => Ok(Outcome::Removed(Shown::Stored(stored))),
        Ok(updated) => Ok(Outcome::Marked(Shown::Stored(Arc::clone(updated.stored())))),
        Err(error) => Err(VerbError::update(resource, name, error)),
    }
}

/// The second write of a two-step delete. A write in between has no effect, unless it added a finalizer.
async fn finish(
    context: &WriteContext,
    resource: &Resource,
    name: &str,
    key: &str,
    marked: &Arc<Stored>,
) -> Result<Outcome, VerbError> {
    let suggestion = Some(Arc::clone(marked));
    let updated = guaranteed_update(&*context.storage, key, suggestion, |stored| {
        let finished = is_finished(resource, &resource.decode(stored)?);
        Ok(if finished { Update::Delete } else { Update::Unchanged })
    })
    .await;
    match updated {
        Ok(Updated::Deleted(stored)) => Ok(Outcome::Removed(Shown::Stored(stored))),
        Ok(updated) => Ok(Outcome::Marked(Shown::Stored(Arc::clone(updated.stored())))),
        Err(UpdateError::Storage(StorageError::NotFound)) => {
            Ok(Outcome::Removed(Shown::Stored(Arc::clone(marked))))
        }
        Err(error) => Err(VerbError::update(resource, name, error)),
    }
}

async fn rehearse(
    context: &WriteContext,
    resource: &Resource,
    name: &str,
    key: &str,
    options: &DeleteOptions,
) -> Result<Outcome, VerbError> {
    let stored = context.storage.get(key).await?;
    let stored = stored.ok_or_else(|| VerbError::not_found(resource, name))?;
    let object = resource.decode(&stored)?;
    check_preconditions(resource, &object, options)?;
    Ok(match next_step(context, resource, object, options) {
        Step::Remove => Outcome::Removed(Shown::Stored(stored)),
        Step::MarkThenRemove(marked) => Outcome::Removed(Shown::Made(Box::new(marked))),
        Step::Mark(marked) => Outcome::Marked(Shown::Made(Box::new(marked))),
        Step::Wait => Outcome::Marked(Shown::Stored(stored)),
    })
}

pub(crate) fn check_preconditions(
    resource: &Resource,
    object: &Object,
    options: &DeleteOptions,
) -> Result<(), VerbError> {
    let failed = |why: Precondition| Err(VerbError::rejected(resource, object.name(), why.into()));
    let wanted = &options.preconditions;
    if let Some(uid) = wanted.uid.as_deref().filter(|uid| Some(*uid) != object.uid()) {
        return failed(Precondition::Uid {
            wanted: uid.to_owned(),
            found: object.uid().unwrap_or_default().to_owned(),
        });
    }
    if let Some(version) = wanted.resource_version.as_deref().filter(|v| *v != object.resource_version()) {
        let found = object.resource_version().to_owned();
        return failed(Precondition::Version { wanted: version.to_owned(), found });
    }
    Ok(())
}

fn next_step(context: &WriteContext, resource: &Resource, object: Object, options: &DeleteOptions) -> Step {
    match resource.lifecycle {
        Lifecycle::Namespace => return namespace_step(context, resource, object),
        Lifecycle::CustomResourceDefinition => return definition_step(context, object),
        Lifecycle::Plain | Lifecycle::Pod | Lifecycle::Binding | Lifecycle::Review(_) => {}
    }
    let orphans = context.garbage_collection && resource.rules.orphans_dependents;
    let finalizers = options.finalizers(&object, orphans);
    let changed = finalizers != object.finalizers();
    let held = !finalizers.is_empty();
    let mut marked = object;
    marked.set_finalizers(finalizers);
    if resource.lifecycle == Lifecycle::Pod {
        return graceful_step(context, marked, options, held, changed);
    }
    match (held, marked.is_deleting()) {
        (false, _) => Step::Remove,
        (true, true) if changed => Step::Mark(marked),
        (true, true) => Step::Wait,
        (true, false) => {
            mark(context, &mut marked, 0);
            Step::Mark(marked)
        }
    }
}

fn graceful_step(
    context: &WriteContext,
    mut pod: Object,
    options: &DeleteOptions,
    held: bool,
    changed: bool,
) -> Step {
    let grace = grace_period(&pod, options);
    if pod.is_deleting() {
        let left = pod.grace_seconds().unwrap_or_default();
        let shorter = options.grace_period_seconds.is_some() && grace < left;
        if shorter {
            let metadata = pod.metadata_mut();
            metadata.insert("deletionTimestamp".to_owned(), context.clock.timestamp_in(grace).into());
            metadata.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
        }
        return match (shorter, held || grace.min(left) > 0) {
            (true, false) => Step::MarkThenRemove(pod),
            (true, true) => Step::Mark(pod),
            (false, false) => Step::Remove,
            (false, true) if changed => Step::Mark(pod),
            (false, true) => Step::Wait,
        };
    }
    mark(context, &mut pod, grace);
    if held || grace > 0 { Step::Mark(pod) } else { Step::MarkThenRemove(pod) }
}

/// The first delete of a namespace starts its termination. It is removed after its content and its `spec.finalizers`.
fn namespace_step(context: &WriteContext, resource: &Resource, mut namespace: Object) -> Step {
    if namespace.is_deleting() {
        return if is_finished(resource, &namespace) { Step::Remove } else { Step::Wait };
    }
    namespace.metadata_mut().insert("deletionTimestamp".to_owned(), context.clock.timestamp().into());
    namespace.section_mut("status").insert("phase".to_owned(), "Terminating".into());
    if is_finished(resource, &namespace) { Step::Remove } else { Step::Mark(namespace) }
}

/// The first delete of a custom resource definition marks it; the last removal of its objects removes it.
fn definition_step(context: &WriteContext, mut definition: Object) -> Step {
    if definition.is_deleting() {
        return if definition.finalizers().is_empty() { Step::Remove } else { Step::Wait };
    }
    let now = context.clock.timestamp();
    definition.metadata_mut().insert("deletionTimestamp".to_owned(), now.clone().into());
    let mut finalizers: Vec<String> = definition.finalizers().into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|f| f == custom::FINALIZER) {
        finalizers.push(custom::FINALIZER.to_owned());
    }
    definition.set_finalizers(finalizers);
    custom::set_condition(&mut definition, custom::TERMINATING, &now);
    Step::Mark(definition)
}

/// The grace period of a pod: as requested, else its own; none if it does not run.
fn grace_period(pod: &Object, options: &DeleteOptions) -> i64 {
    let own =
        || pod.at("/spec/terminationGracePeriodSeconds").and_then(serde_json::Value::as_i64).unwrap_or(30);
    let idle = pod.str_at("/spec/nodeName").is_empty()
        || ["Succeeded", "Failed"].contains(&pod.str_at("/status/phase"));
    match options.grace_period_seconds.unwrap_or_else(own) {
        _ if idle => 0,
        negative if negative < 0 => 1,
        seconds => seconds,
    }
}

fn mark(context: &WriteContext, object: &mut Object, grace: i64) {
    let generation = object.generation();
    let when = context.clock.timestamp_in(grace);
    let metadata = object.metadata_mut();
    metadata.insert("deletionTimestamp".to_owned(), when.into());
    metadata.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
    if generation > 0 {
        metadata.insert("generation".to_owned(), (generation + 1).into());
    }
}
