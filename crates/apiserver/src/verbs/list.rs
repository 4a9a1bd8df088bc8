//! GET of a collection.

use kube_informer_wire::{FieldSelector, FieldTerm, LabelSelector};

use super::error::{RequestError, VerbError};
use super::get::parse_version;
use super::options::{ListOptions, VersionMatch};
use super::{Request, Response};
use crate::caches::Caches;
use crate::registry::Resource;
use crate::watch_cache::{ListRequest, ListResponse, Scope, ShardSelector};

pub(crate) async fn list(
    caches: &Caches,
    request: &Request,
    options: &ListOptions,
) -> Result<Response, VerbError> {
    read(caches, request, options).await.map(Response::list)
}

/// The list itself, also for deletecollection.
pub(crate) async fn read(
    caches: &Caches,
    request: &Request,
    options: &ListOptions,
) -> Result<ListResponse, VerbError> {
    let labels = label_selector(options)?;
    let fields = field_selector(&request.resource, options)?;
    let list = ListRequest {
        scope: scope(request),
        revision: parse_version(&options.resource_version).map_err(RequestError::ListVersion)?,
        revision_match: match options.version_match {
            Some(VersionMatch::Known(revision_match)) => Some(revision_match),
            Some(VersionMatch::Unknown(_)) | None => None,
        },
        limit: usize::try_from(options.limit).unwrap_or_default(),
        continue_token: (!options.continue_token.is_empty()).then(|| options.continue_token.clone()),
        labels,
        fields,
        shards: shard_selector(caches, options)?,
    };
    Ok(caches.of(&request.resource).await?.list(&list).await?)
}

/// The part of the resource that the URL names.
pub(crate) fn scope(request: &Request) -> Scope {
    match (request.namespace.clone(), request.name.clone()) {
        (None, None) => Scope::All,
        (Some(namespace), None) => Scope::Namespace(namespace),
        (namespace, Some(name)) => Scope::Object { namespace, name },
    }
}

pub(crate) fn label_selector(options: &ListOptions) -> Result<LabelSelector, RequestError> {
    Ok(LabelSelector::parse(&options.label_selector)?)
}

/// The selected shards. A server without the feature ignores the parameter.
pub(crate) fn shard_selector(caches: &Caches, options: &ListOptions) -> Result<ShardSelector, RequestError> {
    match options.shard_selector.as_str() {
        "" => Ok(ShardSelector::default()),
        _ if !caches.gates().sharded_list_and_watch => Ok(ShardSelector::default()),
        text => Ok(ShardSelector::parse(text)?),
    }
}

/// Reads the selector and gives every label the name under which the kind's values are kept.
pub(crate) fn field_selector(
    resource: &Resource,
    options: &ListOptions,
) -> Result<FieldSelector, RequestError> {
    let selector = FieldSelector::parse(&options.field_selector)?;
    let resolve = |term: &FieldTerm| {
        let field = resource.field_label(&term.field)?;
        Ok(FieldTerm { field: field.into(), ..term.clone() })
    };
    let terms: Result<Vec<FieldTerm>, RequestError> = selector.terms().iter().map(resolve).collect();
    terms.map(FieldSelector::new)
}
