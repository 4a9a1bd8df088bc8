//! `LimitRanger`: limit ranges give containers their default resources, and bound those of containers, pods and claims.

use serde_json::{Map, Value};

use super::resources::{Kind, ResourceList, containers, of_container, of_pod};
use crate::registry::Object;
use crate::schema::Quantity;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Sets the default resources of the containers of a new pod, and says so in an annotation.
pub(super) fn add_defaults(range: &Object, pod: &mut Object) {
    let (mut requests, mut limits) = (ResourceList::default(), ResourceList::default());
    for limit in limits_of(range, "Container") {
        ResourceList::read(&limit["defaultRequest"]).iter().for_each(|(name, q)| requests.set(name, q));
        ResourceList::read(&limit["default"]).iter().for_each(|(name, q)| limits.set(name, q));
    }
    if requests.is_empty() && limits.is_empty() {
        return;
    }
    let mut notes = Vec::new();
    for (list, what) in [("containers", "container"), ("initContainers", "init container")] {
        let spec = pod.section_mut("spec");
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            for (kind, word, defaults) in
                [(Kind::Requests, "request", &requests), (Kind::Limits, "limit", &limits)]
            {
                let added = complete(container, kind, defaults);
                if !added.is_empty() {
                    let name = container["name"].as_str().unwrap_or_default();
                    notes.push(format!("{} {word} for {what} {name}", added.join(", ")));
                }
            }
        }
    }
    if !notes.is_empty() {
        let annotations =
            pod.metadata_mut().entry("annotations").or_insert_with(|| Value::Object(Map::new()));
        annotations[ANNOTATION] = format!("LimitRanger plugin set: {}", notes.join("; ")).into();
    }
}

/// Adds the resources that a container does not name. Returns the names of those that were added.
fn complete(container: &mut Value, kind: Kind, defaults: &ResourceList) -> Vec<String> {
    let own = of_container(container, kind);
    let missing: Vec<(&str, Quantity)> = defaults.iter().filter(|(name, _)| !own.contains(name)).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    for field in ["resources", kind.field()] {
        // Created as needed below; `null` is an empty object.
        let at = if field == "resources" {
            &mut container["resources"]
        } else {
            &mut container["resources"][field]
        };
        if at.is_null() {
            *at = Value::Object(Map::new());
        }
    }
    missing
        .into_iter()
        .map(|(name, quantity)| {
            container["resources"][kind.field()][name] = quantity.to_string().into();
            name.to_owned()
        })
        .collect()
}

/// Returns why a limit range does not allow a pod, if it does not.
pub(super) fn check_pod(range: &Object, pod: &Object) -> Result<(), String> {
    let mut errors = Vec::new();
    for limit in limits_of(range, "Container") {
        for container in containers(pod, "containers").chain(containers(pod, "initContainers")) {
            let requests = of_container(container, Kind::Requests);
            check(limit, "Container", &requests, &of_container(container, Kind::Limits), &mut errors);
        }
    }
    for limit in limits_of(range, "Pod") {
        check(limit, "Pod", &of_pod(pod, Kind::Requests), &of_pod(pod, Kind::Limits), &mut errors);
    }
    aggregate(errors)
}

/// Returns why a limit range does not allow a claim, if it does not.
pub(super) fn check_claim(range: &Object, claim: &Object) -> Result<(), String> {
    let requests = ResourceList::read(claim.at("/spec/resources/requests").unwrap_or(&Value::Null));
    let mut errors = Vec::new();
    for limit in limits_of(range, "PersistentVolumeClaim") {
        let what = |name: &str| format!("{name} usage per PersistentVolumeClaim is");
        for (name, bound) in ResourceList::read(&limit["min"]).iter() {
            errors.extend(below(&what(name), bound, requests.get(name), None));
        }
        for (name, bound) in ResourceList::read(&limit["max"]).iter() {
            let what = format!("maximum {} {bound}", what(name));
            match requests.get(name) {
                None => errors.push(format!("{what}.  No request is specified")),
                Some(request) if request > bound => {
                    errors.push(format!("{what}, but request is {request}"));
                }
                Some(_) => {}
            }
        }
    }
    aggregate(errors)
}

fn limits_of<'o>(range: &'o Object, kind: &'static str) -> impl Iterator<Item = &'o Value> + use<'o> {
    let limits = range.at("/spec/limits").and_then(Value::as_array).into_iter().flatten();
    limits.filter(move |limit| limit["type"] == kind)
}

fn check(
    limit: &Value,
    kind: &str,
    requests: &ResourceList,
    limits: &ResourceList,
    errors: &mut Vec<String>,
) {
    let what = |name: &str| format!("{name} usage per {kind} is");
    for (name, bound) in ResourceList::read(&limit["min"]).iter() {
        errors.extend(below(&what(name), bound, requests.get(name), limits.get(name)));
    }
    for (name, bound) in ResourceList::read(&limit["max"]).iter() {
        errors.extend(above(&what(name), bound, requests.get(name), limits.get(name)));
    }
    for (name, bound) in ResourceList::read(&limit["maxLimitRequestRatio"]).iter() {
        let what = format!("{name} max limit to request ratio per {kind} is {bound}");
        errors.extend(ratio(&what, bound, requests.get(name), limits.get(name)));
    }
}

fn below(what: &str, bound: Quantity, request: Option<Quantity>, limit: Option<Quantity>) -> Option<String> {
    let what = format!("minimum {what} {bound}");
    match (request, limit) {
        (None, _) => Some(format!("{what}.  No request is specified")),
        (Some(request), _) if request < bound => Some(format!("{what}, but request is {request}")),
        (_, Some(limit)) if limit < bound => Some(format!("{what}, but limit is {limit}")),
        _ => None,
    }
}

fn above(what: &str, bound: Quantity, request: Option<Quantity>, limit: Option<Quantity>) -> Option<String> {
    let what = format!("maximum {what} {bound}");
    match (request, limit) {
        (_, None) => Some(format!("{what}.  No limit is specified")),
        (_, Some(limit)) if limit > bound => Some(format!("{what}, but limit is {limit}")),
        (Some(request), _) if request > bound => Some(format!("{what}, but request is {request}")),
        _ => None,
    }
}

fn ratio(what: &str, bound: Quantity, request: Option<Quantity>, limit: Option<Quantity>) -> Option<String> {
    let amount = |quantity: Option<Quantity>| quantity.map(Quantity::as_f64).filter(|amount| *amount != 0.0);
    match (amount(request), amount(limit)) {
        (None, _) => Some(format!("{what}, but no request is specified or request is 0")),
        (_, None) => Some(format!("{what}, but no limit is specified or limit is 0")),
        (Some(request), Some(limit)) if limit / request > bound.as_f64() => {
            Some(format!("{what}, but provided ratio is {:.6}", limit / request))
        }
        _ => None,
    }
}

/// Joins messages; equal ones are listed once.
fn aggregate(mut errors: Vec<String>) -> Result<(), String> {
    let mut seen = std::collections::HashSet::new();
    errors.retain(|error| seen.insert(error.clone()));
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.remove(0)),
        _ => Err(format!("[{}]", errors.join(", "))),
    }
}
