//! The usage of an object, as the quotas of its namespace count it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::resources::{Kind, ResourceList, containers, of_container, of_pod};
use crate::registry::{Lifecycle, Object, Resource};
use crate::schema::Quantity;

/// The part of the name of a resource of one storage class, before the resource.
const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
/// The end of the name of the devices of one class.
const DEVICE_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// The most devices that a claim can be allocated, which is what a request for all devices counts.
const ALL_DEVICES: usize = 32;
const CLAIM_RESOURCES: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];
const POD_RESOURCES: [&str; 10] = [
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "pods",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
/// The resources that every container must specify if a quota has them.
const SPECIFIED: [&str; 6] =
    ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// How the objects of a resource are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counting {
    Pods,
    Services,
    Claims,
    Devices,
    /// By number, also under the plain name of the resource.
    Named,
    /// By number.
    Plain,
    /// Not at all.
    Never,
}

impl Counting {
    fn of(resource: &Resource) -> Self {
        match (resource.group.as_str(), resource.plural.as_str()) {
            _ if !resource.namespaced || !resource.is_stored() => Self::Never,
            _ if resource.lifecycle == Lifecycle::Pod => Self::Pods,
            (_, "events") => Self::Never,
            ("", "services") => Self::Services,
            ("", "persistentvolumeclaims") => Self::Claims,
            ("resource.k8s.io", "resourceclaims") => Self::Devices,
            ("", "configmaps" | "replicationcontrollers" | "resourcequotas" | "secrets") => Self::Named,
            _ => Self::Plain,
        }
    }
}

/// Returns the name under which objects are counted, such as `count/deployments.apps`.
fn count_name(resource: &Resource) -> String {
    format!("count/{}", resource.qualified())
}

/// Returns whether objects of a resource count towards a resource of quotas.
pub(crate) fn counts(resource: &Resource, name: &str) -> bool {
    let counting = Counting::of(resource);
    if counting == Counting::Never {
        return false;
    }
    if let Some(counted) = name.strip_prefix("count/") {
        return counted == resource.qualified();
    }
    match counting {
        Counting::Pods => {
            let requested = name.strip_prefix("requests.").unwrap_or_default();
            let extended = requested.contains('/') && !requested.contains("kubernetes.io/");
            let pages = name.starts_with("hugepages-") || requested.starts_with("hugepages-");
            POD_RESOURCES.contains(&name) || pages || extended
        }
        Counting::Services => ["services", "services.loadbalancers", "services.nodeports"].contains(&name),
        Counting::Claims => {
            let of_class = name.split_once(STORAGE_CLASS).map(|(_, resource)| resource);
            CLAIM_RESOURCES.contains(&of_class.unwrap_or(name))
        }
        Counting::Devices => name.ends_with(DEVICE_CLASS),
        Counting::Named => name == resource.plural,
        Counting::Plain | Counting::Never => false,
    }
}

/// Returns whether the number of objects is all that counts towards these resources.
pub(crate) fn is_plain_count(resource: &Resource) -> bool {
    matches!(Counting::of(resource), Counting::Named | Counting::Plain)
}

/// Returns whether a changed object may count more than before.
pub(crate) fn may_grow(resource: &Resource) -> bool {
    matches!(Counting::of(resource), Counting::Services | Counting::Claims)
}

/// Returns the usage of an object.
pub(crate) fn of(resource: &Resource, object: &Object) -> ResourceList {
    let one = Quantity::count(1);
    let mut usage = ResourceList::from([(count_name(resource), one)]);
    match Counting::of(resource) {
        Counting::Pods => pod(object, &mut usage),
        Counting::Services => service(object, &mut usage),
        Counting::Claims => claim(object, &mut usage),
        Counting::Devices => devices(object, &mut usage),
        Counting::Named => usage.set(resource.plural.as_str(), one),
        Counting::Plain | Counting::Never => {}
    }
    usage
}

/// A pod that has ended counts as an object only.
fn pod(pod: &Object, usage: &mut ResourceList) {
    if !["Succeeded", "Failed"].contains(&pod.str_at("/status/phase")) {
        let (requests, limits) = (of_pod(pod, Kind::Requests), of_pod(pod, Kind::Limits));
        usage.add(&compute(&requests, &limits));
        usage.set("pods", Quantity::count(1));
    }
}

/// Returns requests and limits under the names that quotas have for them.
fn compute(requests: &ResourceList, limits: &ResourceList) -> ResourceList {
    let mut usage = ResourceList::default();
    for (name, quantity) in requests.iter() {
        let native = ["cpu", "memory", "ephemeral-storage"].contains(&name) || name.starts_with("hugepages-");
        if native {
            usage.set(name, quantity);
        }
        if native || name.contains('/') {
            usage.set(format!("requests.{name}"), quantity);
        }
    }
    for (name, quantity) in limits.iter() {
        if ["cpu", "memory", "ephemeral-storage"].contains(&name) {
            usage.set(format!("limits.{name}"), quantity);
        }
    }
    usage
}

fn service(service: &Object, usage: &mut ResourceList) {
    let ports = service.at("/spec/ports").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let allocated = ports.iter().filter(|port| port["nodePort"].as_i64().is_some_and(|number| number != 0));
    let balanced = service.str_at("/spec/type") == "LoadBalancer";
    let node_ports = match service.str_at("/spec/type") {
        "LoadBalancer" if service.at("/spec/allocateLoadBalancerNodePorts") == Some(&Value::Bool(false)) => {
            allocated.count()
        }
        "NodePort" | "LoadBalancer" => ports.len(),
        _ => 0,
    };
    usage.set("services", Quantity::count(1));
    usage.set("services.loadbalancers", Quantity::count(usize::from(balanced)));
    usage.set("services.nodeports", Quantity::count(node_ports));
}

fn claim(claim: &Object, usage: &mut ResourceList) {
    let storage = |pointer: &str| claim.at(pointer).and_then(|list| ResourceList::read(list).get("storage"));
    let requested = storage("/spec/resources/requests").map(Quantity::rounded_up);
    let allocated = storage("/status/allocatedResources");
    let annotation =
        claim.metadata().get("annotations").map(|all| &all["volume.beta.kubernetes.io/storage-class"]);
    let class = annotation.and_then(Value::as_str).unwrap_or_else(|| claim.str_at("/spec/storageClassName"));
    let mut set = |name: &str, quantity: Quantity| {
        usage.set(name, quantity);
        if !class.is_empty() {
            usage.set(format!("{class}{STORAGE_CLASS}{name}"), quantity);
        }
    };
    set("persistentvolumeclaims", Quantity::count(1));
    if let Some(requested) = requested {
        set("requests.storage", allocated.filter(|allocated| *allocated > requested).unwrap_or(requested));
    }
}

/// The devices of a claim by class. Of alternatives, each class counts with the one that needs most of it.
fn devices(claim: &Object, usage: &mut ResourceList) {
    let requests = claim.at("/spec/devices/requests").and_then(Value::as_array).into_iter().flatten();
    for request in requests {
        let alternatives = request["firstAvailable"].as_array().filter(|list| !list.is_empty());
        let requested = alternatives.map_or(std::slice::from_ref(&request["exactly"]), Vec::as_slice);
        let mut most = BTreeMap::<&str, usize>::new();
        for one in requested.iter().filter(|one| one.is_object()) {
            let number = match one["allocationMode"].as_str() {
                Some("ExactCount") => {
                    one["count"].as_u64().and_then(|count| count.try_into().ok()).unwrap_or(0)
                }
                Some("All") => ALL_DEVICES,
                _ => 0,
            };
            let counted = most.entry(one["deviceClassName"].as_str().unwrap_or_default()).or_default();
            *counted = number.max(*counted);
        }
        let named = most
            .into_iter()
            .map(|(class, number)| (format!("{class}{DEVICE_CLASS}"), Quantity::count(number)));
        named.for_each(|counted| usage.add(&ResourceList::from([counted])));
    }
}

/// Returns whether an object is in all scopes of a quota.
pub(crate) fn in_scope(resource: &Resource, object: &Object, quota: &Object) -> bool {
    let names = quota.at("/spec/scopes").and_then(Value::as_array).into_iter().flatten();
    let names = names.filter_map(Value::as_str).map(|name| (name, "Exists", &Value::Null));
    let selectors = quota.at("/spec/scopeSelector/matchExpressions").and_then(Value::as_array);
    let text = |selector: &'_ Value, field: &str| selector[field].as_str().unwrap_or_default().to_owned();
    let mut selectors =
        selectors.into_iter().flatten().map(|s| (text(s, "scopeName"), text(s, "operator"), &s["values"]));
    let counting = Counting::of(resource);
    names.into_iter().all(|(name, operator, values)| matches_scope(counting, object, name, operator, values))
        && selectors.all(|(name, operator, values)| matches_scope(counting, object, &name, &operator, values))
}

fn matches_scope(counting: Counting, object: &Object, scope: &str, operator: &str, values: &Value) -> bool {
    let selected = |class: &str| {
        let listed = values.as_array().is_some_and(|values| values.iter().any(|value| value == class));
        match operator {
            "Exists" => !class.is_empty(),
            "DoesNotExist" => class.is_empty(),
            "In" => listed,
            "NotIn" => !listed,
            _ => false,
        }
    };
    let terminating =
        || object.at("/spec/activeDeadlineSeconds").and_then(Value::as_i64).is_some_and(|s| s >= 0);
    let best_effort = || object.str_at("/status/qosClass") == "BestEffort";
    match (counting, scope) {
        (Counting::Pods, "Terminating") => terminating(),
        (Counting::Pods, "NotTerminating") => !terminating(),
        (Counting::Pods, "BestEffort") => best_effort(),
        (Counting::Pods, "NotBestEffort") => !best_effort(),
        (Counting::Pods, "PriorityClass") => selected(object.str_at("/spec/priorityClassName")),
        (Counting::Pods, "CrossNamespacePodAffinity") => crosses_namespaces(object),
        (Counting::Claims, "VolumeAttributesClass") => match attributes_classes(object).as_slice() {
            [] => selected(""),
            classes => classes.iter().any(|class| selected(class)),
        },
        _ => false,
    }
}

/// The classes that a claim has, asks for, or is being changed to.
fn attributes_classes(claim: &Object) -> Vec<&str> {
    let fields = [
        "/spec/volumeAttributesClassName",
        "/status/currentVolumeAttributesClassName",
        "/status/modifyVolumeStatus/targetVolumeAttributesClassName",
    ];
    fields.into_iter().map(|field| claim.str_at(field)).filter(|class| !class.is_empty()).collect()
}

fn crosses_namespaces(pod: &Object) -> bool {
    let terms = ["podAffinity", "podAntiAffinity"].into_iter().flat_map(|kind| {
        let affinity = pod.at("/spec/affinity").map_or(&Value::Null, |affinity| &affinity[kind]);
        let required =
            affinity["requiredDuringSchedulingIgnoredDuringExecution"].as_array().into_iter().flatten();
        let preferred =
            affinity["preferredDuringSchedulingIgnoredDuringExecution"].as_array().into_iter().flatten();
        required.chain(preferred.map(|weighted| &weighted["podAffinityTerm"]))
    });
    let mut terms = terms;
    terms.any(|term| {
        term["namespaces"].as_array().is_some_and(|list| !list.is_empty())
            || term["namespaceSelector"].is_object()
    })
}

/// Returns the containers that do not specify a resource that a quota has, such as `limits.cpu for: a,b`.
pub(crate) fn unspecified(resource: &Resource, object: &Object, required: &[&str]) -> Option<String> {
    let whole =
        object.at("/spec/resources").and_then(Value::as_object).is_some_and(|whole| !whole.is_empty());
    if Counting::of(resource) != Counting::Pods || whole {
        return None;
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in containers(object, "containers").chain(containers(object, "initContainers")) {
        let own = compute(&of_container(container, Kind::Requests), &of_container(container, Kind::Limits));
        for name in required.iter().filter(|name| SPECIFIED.contains(name) && !own.contains(name)) {
            missing.entry(name).or_default().insert(container["name"].as_str().unwrap_or_default());
        }
    }
    let lines = missing.into_iter().map(|(name, containers)| {
        format!("{name} for: {}", containers.into_iter().collect::<Vec<_>>().join(","))
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| format!("must specify {}", lines.join("; ")))
}
