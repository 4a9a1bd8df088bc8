//! Finds a kind by the name that a user types.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::core::discovery::v2::{APIGroupDiscovery, APIGroupDiscoveryList, APIResourceDiscovery};
use kube_informer::Kind;

/// Resources of a server, in lookup order: the core group, then the others, preferred versions first.
#[derive(Debug, Default)]
pub(crate) struct Catalogue(Vec<Resource>);

#[derive(Debug, Clone)]
struct Resource {
    kind: Kind,
    singular: String,
    short_names: Vec<String>,
}

/// A name of no resource of the server.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server has no resource {name:?} that can be watched{hint}")]
pub(crate) struct UnknownKind {
    name: String,
    hint: String,
}

impl Catalogue {
    /// Reads the resources of a server: from aggregated discovery if it has that, otherwise from each group and version.
    pub(crate) async fn discover(client: &kube::Client) -> Result<Self, kube::Error> {
        match client.list_core_api_versions_aggregated().await {
            Ok(core) if !core.items.is_empty() => {
                let groups = client.list_api_groups_aggregated().await?;
                Ok(Self::aggregated(core, groups))
            }
            // Servers before 1.30 return the old documents, which decode as an empty list or not at all.
            Ok(_) | Err(kube::Error::SerdeError(_)) => Self::legacy(client).await,
            Err(error) => Err(error),
        }
    }

    fn aggregated(core: APIGroupDiscoveryList, groups: APIGroupDiscoveryList) -> Self {
        let all = core.items.into_iter().chain(groups.items);
        Self(all.flat_map(resources_of_group).collect())
    }

    async fn legacy(client: &kube::Client) -> Result<Self, kube::Error> {
        let mut found = Vec::new();
        for version in client.list_core_api_versions().await?.versions {
            found.extend(resources_of_list("", &version, client.list_core_api_resources(&version).await?));
        }
        for group in client.list_api_groups().await?.groups {
            for version in group.versions {
                // A broken aggregated API must not hide the others.
                if let Ok(list) = client.list_api_group_resources(&version.group_version).await {
                    found.extend(resources_of_list(&group.name, &version.version, list));
                }
            }
        }
        Ok(Self(found))
    }

    /// Finds a kind by plural, singular, kind or short name, optionally followed by a group, or by version and group.
    pub(crate) fn find(&self, name: &str) -> Result<Kind, UnknownKind> {
        let wanted = name.to_lowercase();
        let (resource, rest) = wanted.split_once('.').unwrap_or((&wanted, ""));
        let found = self.0.iter().find(|known| known.has_name(resource) && known.is_in(rest));
        found.map(|known| known.kind.clone()).ok_or_else(|| self.unknown(name, resource))
    }

    fn unknown(&self, name: &str, resource: &str) -> UnknownKind {
        let near = |known: &&Resource| {
            let start = resource.get(..3).unwrap_or(resource);
            known.has_name(resource) || known.kind.plural.starts_with(start)
        };
        let near: Vec<String> =
            self.0.iter().filter(near).map(|known| known.kind.to_string()).take(4).collect();
        let hint = if near.is_empty() {
            "; list them with `kubectl api-resources`".to_owned()
        } else {
            format!("; did you mean {}?", near.join(" or "))
        };
        UnknownKind { name: name.to_owned(), hint }
    }
}

impl Resource {
    fn has_name(&self, name: &str) -> bool {
        self.kind.plural == name
            || self.singular == name
            || self.kind.kind.to_lowercase() == name
            || self.short_names.iter().any(|short| short == name)
    }

    /// Whether it is in a group, given as `group`, `version.group`, or `version` for the core group; "" matches any.
    fn is_in(&self, rest: &str) -> bool {
        let Kind { group, version, .. } = &self.kind;
        let group_start =
            |rest: &str| *group == rest || group.strip_prefix(rest).is_some_and(|more| more.starts_with('.'));
        match rest.split_once('.') {
            _ if rest.is_empty() => true,
            Some((first, more)) if first == version && group_start(more) => true,
            None if group.is_empty() => rest == version,
            _ => group_start(rest),
        }
    }
}

fn resources_of_group(group: APIGroupDiscovery) -> Vec<Resource> {
    let name = group.metadata.and_then(|meta| meta.name).unwrap_or_default();
    let versions = group.versions.into_iter();
    let resources = versions.flat_map(|version| {
        let name = version.version.unwrap_or_default();
        version.resources.into_iter().map(move |resource| (name.clone(), resource))
    });
    resources.filter_map(|(version, resource)| resource_of(&name, version, resource)).collect()
}

fn resource_of(group: &str, version: String, resource: APIResourceDiscovery) -> Option<Resource> {
    let kind = Kind {
        group: group.to_owned(),
        version,
        kind: resource.response_kind?.kind?,
        plural: resource.resource?,
        namespaced: resource.scope.as_deref() == Some("Namespaced"),
    };
    let watchable = resource.verbs.iter().any(|verb| verb == "watch");
    let singular = resource.singular_resource.unwrap_or_default();
    watchable.then_some(Resource { kind, singular, short_names: resource.short_names })
}

fn resources_of_list(group: &str, version: &str, list: APIResourceList) -> Vec<Resource> {
    let watchable =
        list.resources.into_iter().filter(|resource| resource.verbs.iter().any(|verb| verb == "watch"));
    let resource = |resource: k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource| Resource {
        kind: Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: resource.kind,
            plural: resource.name,
            namespaced: resource.namespaced,
        },
        singular: resource.singular_name,
        short_names: resource.short_names.unwrap_or_default(),
    };
    watchable.map(resource).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Catalogue {
        let resource = |kind: Kind, short: &[&str]| Resource {
            singular: kind.kind.to_lowercase(),
            short_names: short.iter().map(|&name| name.to_owned()).collect(),
            kind,
        };
        Catalogue(vec![
            resource(Kind::namespaced("", "v1", "Pod", "pods"), &["po"]),
            resource(Kind::namespaced("", "v1", "Event", "events"), &["ev"]),
            resource(Kind::cluster("", "v1", "Node", "nodes"), &["no"]),
            resource(Kind::namespaced("apps", "v1", "Deployment", "deployments"), &["deploy"]),
            resource(Kind::namespaced("events.k8s.io", "v1", "Event", "events"), &["ev"]),
            resource(
                Kind::namespaced("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
                &["hpa"],
            ),
            resource(
                Kind::namespaced("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
                &["hpa"],
            ),
        ])
    }

    #[test]
    fn kinds_are_found_by_many_names() {
        let found =
            |name: &str| catalogue().find(name).map(|kind| format!("{kind} {}", kind.version)).unwrap();
        for name in ["pods", "pod", "po", "Pod", "PODS", "pods.v1"] {
            assert_eq!(found(name), "pods v1", "{name}");
        }
        for name in ["deploy", "deployments.apps", "deployment.v1.apps", "deploy.apps"] {
            assert_eq!(found(name), "deployments.apps v1", "{name}");
        }
        assert_eq!(found("events"), "events v1", "the core group comes first");
        assert_eq!(found("ev.events.k8s.io"), "events.events.k8s.io v1");
        assert_eq!(
            found("ev.events"),
            "events.events.k8s.io v1",
            "as with kubectl, the start of a group will do"
        );
        assert_eq!(
            found("hpa"),
            "horizontalpodautoscalers.autoscaling v2",
            "the preferred version comes first"
        );
        assert_eq!(found("hpa.v1.autoscaling"), "horizontalpodautoscalers.autoscaling v1");
    }

    #[test]
    fn an_unknown_name_gets_a_hint() {
        let hint = |name: &str| catalogue().find(name).unwrap_err().to_string();
        assert!(hint("deploys").contains("did you mean deployments.apps?"), "{}", hint("deploys"));
        assert!(hint("pods.apps").contains("did you mean pods?"), "{}", hint("pods.apps"));
        assert!(hint("zebra").contains("api-resources"), "{}", hint("zebra"));
    }
}
