//! GET of a collection.

use kube_informer_wire::{FieldSelector, FieldTerm, LabelSelector};

use super::get::parse_version;
use super::options::ListOptions;
use super::watch::read_status;
use super::{Answer, Request};
use crate::engine::Engine;
use crate::registry::Resource;
use crate::status::Status;
use crate::watch_cache::{ListRequest, ListResponse, RevisionMatch, Scope};

pub(crate) async fn list(
    engine: &Engine,
    request: &Request,
    options: &ListOptions,
) -> Result<Answer, Status> {
    read(engine, request, options).await.map(Answer::List)
}

/// The list itself, also for deletecollection.
pub(crate) async fn read(
    engine: &Engine,
    request: &Request,
    options: &ListOptions,
) -> Result<ListResponse, Status> {
    let labels = label_selector(options)?;
    let fields = field_selector(&request.resource, options)?;
    let list = ListRequest {
        scope: scope(request),
        revision: parse_version(&options.resource_version)
            .map_err(|e| Status::bad_request(format!("invalid resource version: {e}")))?,
        revision_match: match options.version_match.as_str() {
            "Exact" => Some(RevisionMatch::Exact),
            "NotOlderThan" => Some(RevisionMatch::NotOlderThan),
            _ => None,
        },
        limit: usize::try_from(options.limit).unwrap_or_default(),
        continue_token: (!options.continue_token.is_empty()).then(|| options.continue_token.clone()),
        labels,
        fields,
    };
    engine.cache(&request.resource).await?.list(&list).await.map_err(|e| read_status(&e))
}

/// What part of the resource the URL names.
pub(crate) fn scope(request: &Request) -> Scope {
    let namespace = (!request.namespace.is_empty()).then(|| request.namespace.clone());
    match (namespace, request.name.as_str()) {
        (None, "") => Scope::All,
        (Some(namespace), "") => Scope::Namespace(namespace),
        (namespace, name) => Scope::Object { namespace, name: name.to_owned() },
    }
}

pub(crate) fn label_selector(options: &ListOptions) -> Result<LabelSelector, Status> {
    LabelSelector::parse(&options.label_selector).map_err(|e| Status::bad_request(e.to_string()))
}

/// Reads the selector and gives every label the name under which the kind's values are kept.
pub(crate) fn field_selector(resource: &Resource, options: &ListOptions) -> Result<FieldSelector, Status> {
    let selector =
        FieldSelector::parse(&options.field_selector).map_err(|e| Status::bad_request(e.to_string()))?;
    let resolve = |term: &FieldTerm| {
        let field = resource.field_label(&term.field)?;
        Ok(FieldTerm { field: field.into(), ..term.clone() })
    };
    let terms: Result<Vec<FieldTerm>, crate::registry::UnknownLabel> =
        selector.terms().iter().map(resolve).collect();
    terms.map(FieldSelector::new).map_err(|e| Status::bad_request(e.to_string()))
}
