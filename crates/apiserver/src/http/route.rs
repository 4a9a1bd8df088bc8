//! Parsing of paths.

use percent_encoding::percent_decode_str;

use super::snapshots::SnapshotAction;

/// A parsed path. The registry knows whether the resource exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/api/v1/…` or `/apis/GROUP/VERSION/…` down to a collection, an object or a subresource.
    Resource(ResourcePath),
    /// `/`
    Root,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/GROUP`
    Group(String),
    /// `/api/VERSION` or `/apis/GROUP/VERSION`
    GroupVersion(String, String),
    /// `/version`
    Version,
    /// `/healthz`, `/livez`, `/readyz` and one check of them.
    Health(&'static str, Option<String>),
    /// `/openapi/v2`
    OpenApiV2,
    /// `/openapi/v3`
    OpenApiIndex,
    /// `/openapi/v3/api/VERSION` or `/openapi/v3/apis/GROUP/VERSION`
    OpenApi(String, String),
    /// `/.well-known/openid-configuration`
    OpenIdConfiguration,
    /// `/openid/v1/jwks`
    OpenIdKeys,
    /// `/metrics`
    Metrics,
    /// `/metrics/slis`
    HealthMetrics,
    /// `/faults` and one switch of them.
    Faults(Option<String>),
    /// `/snapshots`, `/snapshots/NAME` and `/snapshots/NAME/restore`
    Snapshots(Option<(String, SnapshotAction)>),
    /// Any other path.
    Unknown,
}

/// The parts of a resource path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    /// The path has the deprecated `/watch/` prefix.
    pub(crate) watch: bool,
    pub(crate) namespace: Option<String>,
    pub(crate) resource: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

impl Route {
    pub(crate) fn parse(path: &str) -> Self {
        if path == "/" {
            return Self::Root;
        }
        let Some(parts) = segments(path) else { return Self::Unknown };
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts.as_slice() {
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group((*group).to_owned()),
            ["api", version] => Self::GroupVersion(String::new(), (*version).to_owned()),
            ["apis", group, version] => Self::GroupVersion((*group).to_owned(), (*version).to_owned()),
            ["api", version, rest @ ..] => resource("", version, rest),
            ["apis", group, version, rest @ ..] => resource(group, version, rest),
            ["openapi", "v2"] => Self::OpenApiV2,
            ["openapi", "v3"] => Self::OpenApiIndex,
            ["openapi", "v3", "api", version] => Self::OpenApi(String::new(), (*version).to_owned()),
            ["openapi", "v3", "apis", group, version] => {
                Self::OpenApi((*group).to_owned(), (*version).to_owned())
            }
            ["version"] => Self::Version,
            [".well-known", "openid-configuration"] => Self::OpenIdConfiguration,
            ["openid", "v1", "jwks"] => Self::OpenIdKeys,
            ["metrics"] => Self::Metrics,
            ["metrics", "slis"] => Self::HealthMetrics,
            ["faults"] => Self::Faults(None),
            ["faults", switch] => Self::Faults(Some((*switch).to_owned())),
            ["snapshots"] => Self::Snapshots(None),
            ["snapshots", name] => Self::Snapshots(Some(((*name).to_owned(), SnapshotAction::Manage))),
            ["snapshots", name, "restore"] => {
                Self::Snapshots(Some(((*name).to_owned(), SnapshotAction::Restore)))
            }
            [check @ ("healthz" | "livez" | "readyz"), rest @ ..] => health(check, rest),
            _ => Self::Unknown,
        }
    }
}

impl Route {
    /// Whether it only has GET and HEAD.
    pub(crate) fn is_read_only(&self) -> bool {
        !matches!(self, Self::Resource(_) | Self::Faults(_) | Self::Snapshots(_) | Self::Unknown)
    }
}

fn health(check: &str, rest: &[&str]) -> Route {
    let name = ["healthz", "livez", "readyz"].into_iter().find(|n| *n == check).unwrap_or("healthz");
    Route::Health(name, (!rest.is_empty()).then(|| rest.join("/")))
}

/// The decoded segments. `None` if one cannot be decoded, or contains a slash or is a dot segment.
fn segments(path: &str) -> Option<Vec<String>> {
    let parts = path.trim_matches('/').split('/');
    let decoded: Option<Vec<String>> =
        parts.map(|p| Some(percent_decode_str(p).decode_utf8().ok()?.into_owned())).collect();
    decoded.filter(|parts| !parts.iter().any(|p| p.is_empty() || p == "." || p == ".." || p.contains('/')))
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Route {
    let mut path =
        ResourcePath { group: group.to_owned(), version: version.to_owned(), ..ResourcePath::default() };
    let rest = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => {
            path.watch = true;
            rest
        }
        rest => rest,
    };
    let owned = |s: &&str| Some((*s).to_owned());
    match rest {
        // A namespace is an object, and the folder of others; `status` and `finalize` are its own.
        ["namespaces"] => path.resource = "namespaces".to_owned(),
        ["namespaces", name] => {
            path.resource = "namespaces".to_owned();
            path.name = owned(name);
        }
        ["namespaces", name, sub @ ("status" | "finalize")] if group.is_empty() => {
            path.resource = "namespaces".to_owned();
            path.name = owned(name);
            path.subresource = owned(sub);
        }
        ["namespaces", namespace, resource, rest @ ..] => {
            path.namespace = owned(namespace);
            path.resource = (*resource).to_owned();
            return with_name(path, rest);
        }
        [resource, rest @ ..] => {
            path.resource = (*resource).to_owned();
            return with_name(path, rest);
        }
        [] => return Route::Unknown,
    }
    Route::Resource(path)
}

fn with_name(mut path: ResourcePath, rest: &[&str]) -> Route {
    match rest {
        [] => {}
        [name] => path.name = Some((*name).to_owned()),
        [name, sub] => {
            path.name = Some((*name).to_owned());
            path.subresource = Some((*sub).to_owned());
        }
        _ => return Route::Unknown,
    }
    Route::Resource(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> ResourcePath {
        match Route::parse(text) {
            Route::Resource(path) => path,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn resources_in_all_their_forms() {
        let p = path("/api/v1/namespaces/a/pods/p/status");
        assert_eq!((p.namespace.as_deref(), p.resource.as_str()), (Some("a"), "pods"));
        assert_eq!((p.name.as_deref(), p.subresource.as_deref()), (Some("p"), Some("status")));
        let p = path("/apis/apps/v1/deployments");
        assert_eq!(
            (p.group.as_str(), p.version.as_str(), p.resource.as_str(), p.name),
            ("apps", "v1", "deployments", None)
        );
        let p = path("/api/v1/namespaces/a/finalize");
        assert_eq!(
            (p.resource.as_str(), p.name.as_deref(), p.subresource.as_deref()),
            ("namespaces", Some("a"), Some("finalize"))
        );
        let p = path("/api/v1/watch/namespaces/a/pods");
        assert!(p.watch && p.namespace.as_deref() == Some("a") && p.resource == "pods");
        assert_eq!(
            path("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Ax").name.as_deref(),
            Some("system:x")
        );
    }

    #[test]
    fn other_paths() {
        assert_eq!(Route::parse("/apis/apps"), Route::Group("apps".into()));
        assert_eq!(Route::parse("/api/v1"), Route::GroupVersion(String::new(), "v1".into()));
        assert_eq!(Route::parse("/livez/ping"), Route::Health("livez", Some("ping".into())));
        assert_eq!(Route::parse("/"), Route::Root);
        for nowhere in [
            "/foo",
            "/api/v1/pods/../secrets",
            "/api/v1/pods/a%2Fb",
            "/api/v1//pods",
            "/api/v1/a/b/c/d/e",
            "/api/v1/pods/%ff",
        ] {
            assert_eq!(Route::parse(nowhere), Route::Unknown, "{nowhere}");
        }
    }
}
