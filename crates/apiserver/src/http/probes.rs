//! The version and the health of the server.

use std::time::Duration;

use http::{Response, StatusCode};
use serde_json::json;

use super::body::ResponseBody;
use super::respond::respond_text;
use crate::api::Api;
use crate::verbs::options::Query;

const TEXT: &str = "text/plain; charset=utf-8";
/// The time in which the store must respond.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);
/// The minor version of the Kubernetes release that this server follows.
const MINOR: &str = "36";

pub(crate) fn version() -> Response<ResponseBody> {
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    let version = json!({
        "major": "1",
        "minor": MINOR,
        "emulationMajor": "1",
        "emulationMinor": MINOR,
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": format!("v1.{MINOR}.4+embedded.{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": platform,
    });
    respond_text(StatusCode::OK, "application/json", version.to_string())
}

/// `/healthz`, `/livez`, `/readyz`: all checks, or one by name.
pub(crate) async fn health(
    api: &Api,
    endpoint: &str,
    check: Option<&str>,
    query: &Query,
) -> Response<ResponseBody> {
    let excluded = query.all("exclude");
    let checks: Vec<(&str, bool)> = checks(api, endpoint)
        .await
        .into_iter()
        .filter(|(name, _)| !excluded.iter().any(|e| e == name))
        .collect();
    if let Some(name) = check {
        return match checks.iter().find(|(known, _)| *known == name) {
            Some((_, true)) => respond_text(StatusCode::OK, TEXT, "ok"),
            Some((_, false)) => respond_text(
                StatusCode::INTERNAL_SERVER_ERROR,
                TEXT,
                format!("internal server error: {name}\n"),
            ),
            None => respond_text(StatusCode::NOT_FOUND, TEXT, "404 page not found\n"),
        };
    }
    let healthy = checks.iter().all(|(_, ok)| *ok);
    if healthy && !query.flag("verbose") {
        return respond_text(StatusCode::OK, TEXT, "ok");
    }
    let mut lines: String = checks
        .iter()
        .map(
            |(name, ok)| {
                if *ok { format!("[+]{name} ok\n") } else { format!("[-]{name} failed: not ready\n") }
            },
        )
        .collect();
    lines.push_str(&format!("{endpoint} check {}\n", if healthy { "passed" } else { "failed" }));
    let code = if healthy { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
    respond_text(code, TEXT, lines)
}

/// The names of the checks of an endpoint, and whether they pass.
pub(super) async fn checks(api: &Api, endpoint: &str) -> Vec<(&'static str, bool)> {
    let revision = tokio::time::timeout(STORE_TIMEOUT, api.storage.current_revision()).await;
    let mut checks = vec![("ping", true), ("etcd", matches!(revision, Ok(Ok(_))))];
    if endpoint == "readyz" {
        checks.push(("informer-sync", api.caches.are_ready()));
        checks.push(("shutdown", !api.shutdown.has_begun()));
    }
    checks
}
