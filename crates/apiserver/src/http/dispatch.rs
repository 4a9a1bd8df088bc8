//! Execution of a resolved request by its verb.

use std::sync::Arc;

use http::Extensions;

use super::request_head::with_json;
use crate::api::Api;
use crate::caches::Caches;
use crate::registry::{Lifecycle, Subresource};
use crate::verb::Verb;
use crate::verbs::error::VerbError;
use crate::verbs::list::scope;
use crate::verbs::options::ListOptions;
use crate::verbs::patch::PatchType;
use crate::verbs::{self, Request};
use crate::watch_cache::RevisionOption;
use crate::work::Work;

/// A body or an object beyond this is processed in the CPU pool. Below it, changing threads would take longer than the work.
pub(super) const LARGE: usize = 32 * 1024;

/// Executes a request, in the CPU pool if there is one and the request is large or its CEL rules are expensive.
pub(super) async fn execute(
    api: &Arc<Api>,
    verb: Verb,
    mut request: Request,
    extensions: &Extensions,
) -> Result<verbs::Response, VerbError> {
    let Some(pool) = &api.cpu_pool else { return process(Arc::clone(api), verb, request).await };
    if !is_large(&api.caches, verb, &request).await {
        if !verb.has_body() || !request.resource.has_rules() {
            return process(Arc::clone(api), verb, request).await;
        }
        // The rules of most objects take microseconds. Nothing is stored before all of them are evaluated.
        let brief = Work::brief();
        let attempt = Request { work: brief.clone(), ..request.clone() };
        let response = process(Arc::clone(api), verb, attempt).await;
        if !brief.is_postponed() {
            return response;
        }
    }
    let work = extensions.get::<Work>().cloned().unwrap_or_default();
    request.work = work.clone();
    pool.run(extensions, &work, process(Arc::clone(api), verb, request)).await
}

/// Whether the body, or the object that the request changes, takes long to process.
async fn is_large(caches: &Caches, verb: Verb, request: &Request) -> bool {
    if request.body.len() > LARGE {
        return true;
    }
    if !verb.has_body() || request.name.is_none() {
        return false;
    }
    let Ok(cache) = caches.of(&request.resource).await else { return false };
    let stored = cache.get(&scope(request), RevisionOption::Any).await;
    stored.ok().flatten().is_some_and(|stored| stored.document.encoded_len() > LARGE)
}

async fn process(api: Arc<Api>, verb: Verb, request: Request) -> Result<verbs::Response, VerbError> {
    let request = with_json(request)?;
    let mark = api.controllers.mark();
    let response = dispatch(&api, verb, &request).await;
    if verb.has_body() {
        api.controllers.after_request(mark).await;
    }
    response
}

async fn dispatch(api: &Api, verb: Verb, request: &Request) -> Result<verbs::Response, VerbError> {
    let (caches, writes) = (&*api.caches, &*api.writes);
    match (request.subresource, verb) {
        (Some(Subresource::Scale), Verb::Get) => return verbs::scale::get(caches, request).await,
        (Some(Subresource::Scale), Verb::Update) => return verbs::scale::update(writes, request).await,
        (Some(Subresource::Scale), Verb::Patch) => {
            return verbs::scale::patch(writes, request, PatchType::parse(request)?).await;
        }
        (Some(Subresource::Token), _) => {
            return verbs::token_request::create(writes, &api.authenticator.issuer, request).await;
        }
        (Some(Subresource::Binding), _) => return verbs::pods::bind(writes, request).await,
        (Some(Subresource::Eviction), _) => return verbs::eviction::evict(writes, request).await,
        _ => {}
    }
    match verb {
        Verb::Get => verbs::get::get(caches, request).await,
        Verb::List => verbs::list::list(caches, request, &ListOptions::parse(&request.query)?).await,
        Verb::Watch => verbs::watch::watch(caches, request, &ListOptions::parse(&request.query)?).await,
        Verb::Create => match request.resource.lifecycle {
            Lifecycle::Review(review) => verbs::reviews::review(
                &api.resources.snapshot().registry,
                &api.authenticator,
                request,
                review,
            ),
            Lifecycle::Binding => verbs::pods::bind(writes, request).await,
            _ => verbs::create::create(writes, request).await,
        },
        Verb::Update => verbs::update::update(writes, request).await,
        Verb::Patch => match PatchType::parse(request)? {
            PatchType::Apply => verbs::apply::apply(writes, request).await,
            PatchType::Patch(kind) => verbs::patch::patch(writes, request, kind).await,
        },
        Verb::Delete => verbs::delete::delete(writes, request).await,
        Verb::DeleteCollection => {
            let options = ListOptions::parse(&request.query)?;
            verbs::delete_collection::delete_collection(writes, caches, request, &options).await
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::Full;
    use serde_json::{Value, json};

    use super::*;
    use crate::cpu_pool::CpuPool;
    use crate::http::handle;
    use crate::server::ApiServer;

    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    const MERGE: &str = "application/merge-patch+json";
    const JSON: &str = "application/json";

    /// The status of a response. It is 429 for a request that is computed in the pool, which is full.
    async fn send(api: &Arc<Api>, method: &str, path: &str, media: &str, body: Value) -> u16 {
        let header = if method == "GET" { "Accept" } else { "Content-Type" };
        let request = http::Request::builder().method(method).uri(path).header(header, media);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = request.body(Full::<Bytes>::from(body)).expect("a request");
        handle(Arc::clone(api), request).await.expect("a response").status().as_u16()
    }

    fn map(name: &str, size: usize) -> Value {
        json!({"metadata": {"name": name}, "data": {"k": "x".repeat(size)}})
    }

    async fn full() -> Arc<Api> {
        ApiServer::builder().seed(3).api(Some(CpuPool::full())).await.expect("the server starts")
    }

    #[tokio::test]
    async fn large_requests_are_computed_in_the_pool() {
        let api = full().await;
        assert_eq!(send(&api, "POST", MAPS, JSON, map("small", LARGE * 2 / 3)).await, 201);
        assert_eq!(send(&api, "POST", MAPS, JSON, map("large", LARGE)).await, 429);
        let finalizers: Vec<String> = (0..100_000).map(|n| format!("example.com/{n}")).collect();
        let many = json!({"metadata": {"name": "many", "finalizers": finalizers}});
        assert_eq!(send(&api, "POST", MAPS, JSON, many).await, 429);
        // The patch is small, and so is the object until it has been patched.
        let path = format!("{MAPS}/small");
        let patch = json!({"data": {"l": "x".repeat(LARGE * 2 / 3)}});
        assert_eq!(send(&api, "PATCH", &path, MERGE, patch.clone()).await, 200);
        assert_eq!(send(&api, "PATCH", &path, MERGE, patch).await, 429);
    }

    #[tokio::test]
    async fn long_lists_are_encoded_in_the_pool() {
        let api = full().await;
        let encoded = [
            "application/json;as=Table;v=v1;g=meta.k8s.io",
            "application/yaml",
            "application/vnd.kubernetes.protobuf",
        ];
        for (name, status) in [("a", 200), ("b", 429)] {
            assert_eq!(send(&api, "POST", MAPS, JSON, map(name, LARGE * 2 / 3)).await, 201);
            for media in encoded {
                assert_eq!(send(&api, "GET", MAPS, media, Value::Null).await, status, "{media}");
            }
            assert_eq!(send(&api, "GET", MAPS, JSON, Value::Null).await, 200, "sent from the stored bytes");
        }
    }
}
