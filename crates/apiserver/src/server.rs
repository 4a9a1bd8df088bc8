//! The server: start, client, shutdown.

mod access;
mod activity;
mod builder;
mod connections;
mod head_timer;
mod limits;
mod request_body;
mod slots;
mod tls;
mod tokens;
mod websocket;
mod write_timeout;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) use access::AccessError;
pub use builder::ApiServerBuilder;
pub use builder::StartError;
pub(crate) use limits::OBJECT_BYTES;
pub use limits::ServerLimits;
pub use tls::Tls;
pub use tls::TlsError;
pub use tokens::TokenError;
pub use tokens::Tokens;
pub(crate) use websocket::fuzzing;

use crate::api::Api;
use crate::client::{self, Access};
use crate::faults::Faults;
use crate::snapshots::{self, ClusterSnapshot};
use crate::storage::{Storage, StorageError};

/// A Kubernetes API server on a free port of this machine.
///
/// 1. [`ApiServer::start`] returns when the server accepts requests; that takes milliseconds.
/// 2. Dropping it closes the port, every connection and every watch, and frees all objects in memory.
/// 3. [`shutdown`](Self::shutdown) does the same gracefully: running requests get their responses and watches end cleanly first.
/// 4. By default it listens on the loopback interface. There it requires no credential, but refuses foreign web pages and foreign
///    `Host` headers unless it has tokens. On any other address it starts only with TLS and tokens.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use k8s_openapi::api::core::v1::Namespace;
/// use kube_embedded_apiserver::ApiServer;
///
/// let server = ApiServer::start().await?;
/// let namespaces: kube::Api<Namespace> = kube::Api::all(server.client()?);
/// let names: Vec<_> = namespaces.list(&Default::default()).await?.into_iter().filter_map(|n| n.metadata.name).collect();
/// assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
/// server.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping the server stops it"]
pub struct ApiServer {
    local: LocalServer,
    address: SocketAddr,
    access: Access,
    /// Accepts connections and owns them; ends when `stop` is set.
    listener: Option<JoinHandle<()>>,
    /// Starts the graceful shutdown of the listener.
    stop: watch::Sender<bool>,
}

/// The same server without sockets and without a task: requests are executed in the task that sends them.
///
/// Under a paused clock and with a seed, the same requests get the same responses, including uids, names and timestamps.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::api::{Api, ObjectMeta, PostParams};
/// use kube_embedded_apiserver::ApiServer;
///
/// let server = ApiServer::builder().seed(7).in_process().await?;
/// let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
/// let map = ConfigMap { metadata: ObjectMeta { name: Some("a".into()), ..Default::default() }, ..Default::default() };
/// let stored = maps.create(&PostParams::default(), &map).await?;
/// assert!(stored.metadata.uid.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct LocalServer {
    pub(crate) api: Arc<Api>,
}

impl ApiServer {
    /// Starts a server with default options.
    pub async fn start() -> Result<Self, StartError> {
        Self::builder().start().await
    }

    /// Returns a builder.
    pub fn builder() -> ApiServerBuilder {
        ApiServerBuilder::default()
    }

    /// Its URL, such as `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        self.access.url.clone()
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A client over a socket, with the namespace `default`, and with the first token if there are tokens.
    pub fn client(&self) -> Result<kube::Client, kube::Error> {
        self.access.client()
    }

    /// A kubeconfig file. It contains the first token, so it is as secret as that.
    pub fn kubeconfig(&self) -> String {
        self.access.kubeconfig()
    }

    /// The bearer token of clients, if there are tokens. It is the first of them.
    pub fn token(&self) -> Option<&str> {
        self.access.token.as_deref()
    }

    /// The CA certificates that clients need, as PEM, if the server has TLS.
    pub fn certificate_authority(&self) -> Option<&str> {
        self.access.authority.as_deref()
    }

    /// The server behind the sockets, for requests without them.
    pub fn local(&self) -> &LocalServer {
        &self.local
    }

    /// Controls fault injection.
    pub fn faults(&self) -> Faults {
        self.local.faults()
    }

    /// Stops accepting connections, ends watches, and returns when running requests have finished.
    pub async fn shutdown(mut self) {
        self.local.api.shutdown.begin();
        self.stop.send_replace(true);
        if let Some(listener) = self.listener.take() {
            // A panic of the listener no longer matters.
            let _ = listener.await;
        }
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.local.api.shutdown.begin();
        if let Some(listener) = self.listener.take() {
            listener.abort();
        }
    }
}

impl LocalServer {
    /// A client that calls the server directly, with the namespace `default`.
    ///
    /// Must be called inside a tokio runtime: `kube` puts a queue in front of every client.
    pub fn client(&self) -> kube::Client {
        client::in_process(Arc::clone(&self.api))
    }

    /// Controls fault injection.
    pub fn faults(&self) -> Faults {
        Faults::new(&self.api)
    }

    /// Takes a snapshot of all objects. It shares them with the server, so it takes little memory until they change.
    pub async fn snapshot(&self) -> Result<ClusterSnapshot, StorageError> {
        snapshots::take(&*self.api.storage).await
    }

    /// Makes the objects those of a snapshot: others are deleted, changed ones are written, deleted ones are created with their old uid.
    ///
    /// Every change has a new resource version, and watchers receive it as an event. Finalizers and grace periods have no effect, and
    /// fault rules stay. Objects that clients write meanwhile may remain.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use k8s_openapi::api::core::v1::Namespace;
    /// # use kube_embedded_apiserver::ApiServer;
    /// let server = ApiServer::builder().in_process().await?;
    /// let empty = server.snapshot().await?;
    /// let namespaces: kube::Api<Namespace> = kube::Api::all(server.client());
    /// let mut namespace = Namespace::default();
    /// namespace.metadata.name = Some("test".into());
    /// namespaces.create(&Default::default(), &namespace).await?;
    /// server.restore(&empty).await?;
    /// assert!(namespaces.get_opt("test").await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn restore(&self, snapshot: &ClusterSnapshot) -> Result<(), StorageError> {
        snapshots::restore(&self.api, snapshot).await
    }

    /// The storage.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.api.storage
    }

    /// Ends every watch and refuses new requests.
    pub fn close(&self) {
        self.api.shutdown.begin();
    }
}
