//! Clients and kubeconfigs for the server.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use crate::api::Api;
use crate::http::handle;

const NAMESPACE: &str = "default";

/// The URL and the credentials that a client needs.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) url: String,
    /// CA certificates, as PEM.
    pub(crate) authority: Option<String>,
    pub(crate) token: Option<String>,
}

impl Access {
    pub(crate) fn client(&self) -> Result<kube::Client, kube::Error> {
        let url = self.url.parse().map_err(|e| kube::Error::Service(Box::new(e)))?;
        let mut config = kube::Config::new(url);
        config.default_namespace = NAMESPACE.to_owned();
        // A watch may be idle for a long time; the server ends it.
        config.read_timeout = None;
        config.root_cert = self.authority.as_deref().map(|pem| {
            CertificateDer::pem_slice_iter(pem.as_bytes()).flatten().map(|der| der.to_vec()).collect()
        });
        config.auth_info.token = self.token.clone().map(Into::into);
        kube::Client::try_from(config)
    }

    /// Returns a kubeconfig. Values are written as JSON, which is valid YAML, to escape them.
    pub(crate) fn kubeconfig(&self) -> String {
        let mut cluster = json!({"server": self.url});
        if let Some(pem) = &self.authority {
            cluster["certificate-authority-data"] = STANDARD.encode(pem).into();
        }
        if self.url.starts_with("http:") {
            // There is no certificate to verify. The JavaScript client refuses `http` without this.
            cluster["insecure-skip-tls-verify"] = true.into();
        }
        let user = self.token.as_ref().map_or_else(|| json!({}), |token| json!({"token": token}));
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: embedded\n  cluster: {cluster}\n\
             users:\n\
             - name: embedded\n  user: {user}\n\
             contexts:\n\
             - name: embedded\n  context:\n    cluster: embedded\n    user: embedded\n    namespace: {NAMESPACE}\n\
             current-context: embedded\n"
        )
    }
}

impl std::fmt::Debug for Access {
    /// Does not show the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Access({})", self.url)
    }
}

/// Returns a client without a connection. A request runs in the task that awaits it; the client has one task for its queue.
pub(crate) fn in_process(api: Arc<Api>) -> kube::Client {
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let api = Arc::clone(&api);
        handle(api, request)
    });
    kube::Client::new(service, NAMESPACE)
}
