//! Lists of resources, such as `{cpu: 100m, memory: 1Gi}`, and those of a pod.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::registry::Object;
use crate::schema::Quantity;

/// Quantities by the name of their resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResourceList(BTreeMap<String, Quantity>);

impl ResourceList {
    /// Reads a list. Quantities that cannot be parsed are left out; validation rejects them.
    pub(crate) fn read(value: &Value) -> Self {
        let entry = |(name, value): (&String, &Value)| {
            let quantity = match value {
                Value::String(text) => text.parse().ok()?,
                number => number.to_string().parse().ok()?,
            };
            Some((name.clone(), quantity))
        };
        Self(value.as_object().into_iter().flatten().filter_map(entry).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<Quantity> {
        self.0.get(name).copied()
    }

    pub(crate) fn set(&mut self, name: impl Into<String>, quantity: Quantity) {
        self.0.insert(name.into(), quantity);
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.0.iter().map(|(name, quantity)| (name.as_str(), *quantity))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Keeps the resources whose name and quantity `keep` accepts.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&str, Quantity) -> bool) {
        self.0.retain(|name, quantity| keep(name, *quantity));
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (name, quantity) in other.iter() {
            let sum = self.get(name).map_or(quantity, |own| own.plus(quantity));
            self.set(name, sum);
        }
    }

    /// Raises every quantity to that of the other list.
    fn raise(&mut self, other: &Self) {
        for (name, quantity) in other.iter() {
            if self.get(name).is_none_or(|own| quantity > own) {
                self.set(name, quantity);
            }
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let entries = self.iter().map(|(name, quantity)| (name.to_owned(), quantity.to_string().into()));
        Value::Object(entries.collect::<Map<_, _>>())
    }

    /// Returns `cpu=1,memory=2Gi`.
    pub(crate) fn listed(&self) -> String {
        let entries: Vec<String> = self.iter().map(|(name, quantity)| format!("{name}={quantity}")).collect();
        entries.join(",")
    }
}

impl<N: Into<String>, const LEN: usize> From<[(N, Quantity); LEN]> for ResourceList {
    fn from(entries: [(N, Quantity); LEN]) -> Self {
        Self(entries.into_iter().map(|(name, quantity)| (name.into(), quantity)).collect())
    }
}

/// The two lists of a container or a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Requests,
    Limits,
}

impl Kind {
    pub(crate) fn field(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Limits => "limits",
        }
    }
}

/// Returns the resources of a container.
pub(crate) fn of_container(container: &Value, kind: Kind) -> ResourceList {
    ResourceList::read(&container["resources"][kind.field()])
}

pub(crate) fn containers<'o>(pod: &'o Object, list: &str) -> impl Iterator<Item = &'o Value> + use<'o> {
    pod.at("/spec").and_then(|spec| spec[list].as_array()).into_iter().flatten()
}

/// Returns the resources of a pod: those of its containers together, or more while init containers run.
pub(crate) fn of_pod(pod: &Object, kind: Kind) -> ResourceList {
    let mut total = ResourceList::default();
    for container in containers(pod, "containers") {
        total.add(&of_container(container, kind));
    }
    let (mut sidecars, mut starting) = (ResourceList::default(), ResourceList::default());
    for container in containers(pod, "initContainers") {
        let mut own = of_container(container, kind);
        if container["restartPolicy"] == "Always" {
            total.add(&own);
            sidecars.add(&own);
            own = sidecars.clone();
        } else {
            own.add(&sidecars);
        }
        starting.raise(&own);
    }
    total.raise(&starting);
    // Resources of the pod as a whole replace the sums.
    let whole = pod.at("/spec/resources").map(|resources| ResourceList::read(&resources[kind.field()]));
    for (name, quantity) in
        whole.unwrap_or_default().iter().filter(|(name, _)| ["cpu", "memory"].contains(name))
    {
        total.set(name, quantity);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_needs_the_most_of_its_phases() {
        let container =
            |cpu: &str| json!({"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}});
        let mut sidecar = container("100m");
        sidecar["restartPolicy"] = json!("Always");
        let pod = |spec: Value| Object::new(json!({"spec": spec})).unwrap();
        let requests = |spec: Value| of_pod(&pod(spec), Kind::Requests).listed();
        let both = json!([container("1"), container("500m")]);
        assert_eq!(requests(json!({"containers": both})), "cpu=1500m,memory=2Gi");
        let init = json!([sidecar, container("2")]);
        assert_eq!(requests(json!({"containers": both, "initContainers": init})), "cpu=2100m,memory=3Gi");
        let whole = json!({"requests": {"cpu": "4", "other": "1"}});
        assert_eq!(requests(json!({"containers": both, "resources": whole})), "cpu=4,memory=2Gi");
    }
}
