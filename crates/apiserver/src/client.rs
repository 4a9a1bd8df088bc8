//! Ways to talk to the server.

use std::convert::Infallible;
use std::sync::Arc;

use crate::engine::Engine;
use crate::http::{AnswerBody, handle};

const NAMESPACE: &str = "default";

pub(crate) fn over_socket(url: &str) -> Result<kube::Client, kube::Error> {
    let url = url.parse().map_err(|e| kube::Error::Service(Box::new(e)))?;
    let mut config = kube::Config::new(url);
    config.default_namespace = NAMESPACE.to_owned();
    // A watch may be silent for long; its end is the server's decision.
    config.read_timeout = None;
    kube::Client::try_from(config)
}

/// The client's requests run in the task that awaits their answers; only its queue has a task of its own.
pub(crate) fn in_process(engine: Arc<Engine>) -> kube::Client {
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let engine = Arc::clone(&engine);
        async move { Ok::<http::Response<AnswerBody>, Infallible>(handle(engine, request).await) }
    });
    kube::Client::new(service, NAMESPACE)
}

pub(crate) fn kubeconfig(url: &str) -> String {
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: embedded\n  cluster:\n    server: {url}\n\
         users:\n\
         - name: embedded\n  user: {{}}\n\
         contexts:\n\
         - name: embedded\n  context:\n    cluster: embedded\n    user: embedded\n    namespace: {NAMESPACE}\n\
         current-context: embedded\n"
    )
}
