//! The builder of a server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::uri::Scheme;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::access::AccessControl;
use super::connections::{ConnectionContext, serve};
use super::limits::ServerLimits;
use super::tls::{Secured, Tls, TlsError};
use super::tokens::Tokens;
use super::{ApiServer, LocalServer};
use crate::admission::{AdmissionPluginError, Plugins, RunningControllers};
use crate::api::{Api, ApiConfig};
use crate::client::Access;
use crate::clock::Clock;
use crate::controllers::Switches;
use crate::cpu_pool::CpuPool;
use crate::delegate::FeatureGates;
use crate::storage::{MemoryStorage, Storage, StorageError};
use crate::watch_cache::CacheOptions;

/// Configures a server. Every option has a default.
#[must_use = "a builder does nothing until it is started"]
pub struct ApiServerBuilder {
    storage: Option<Arc<dyn Storage>>,
    cache_options: CacheOptions,
    clock: Clock,
    seed: Option<u64>,
    controllers: Switches,
    enabled_plugins: Vec<String>,
    disabled_plugins: Vec<String>,
    limits: ServerLimits,
    listen: SocketAddr,
    host_name: Option<String>,
    tls: Option<Tls>,
    tokens: Option<Tokens>,
    fault_endpoints: bool,
}

/// The error of starting a server.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The server cannot listen on the address.
    #[error("cannot listen on {address}: choose another port, or 0 for any free one: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// Other machines could reach a server without authentication.
    #[error(
        "will not listen on {address}, where other machines can reach it, without {missing}: add what is missing, or listen on 127.0.0.1"
    )]
    Exposed {
        /// The requested address.
        address: SocketAddr,
        /// The missing option.
        missing: &'static str,
    },
    /// Other machines could make the server fail.
    #[error(
        "will not serve /faults and /snapshots on {address}, where other machines can reach it: listen on 127.0.0.1, or leave the fault endpoints out"
    )]
    FaultsExposed {
        /// The requested address.
        address: SocketAddr,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// An admission plugin cannot be enabled or disabled.
    #[error(transparent)]
    AdmissionPlugin(#[from] AdmissionPluginError),
    /// The store cannot be read.
    #[error("cannot read the store: {0}")]
    Storage(#[from] StorageError),
}

impl Default for ApiServerBuilder {
    fn default() -> Self {
        Self {
            storage: None,
            cache_options: CacheOptions::default(),
            clock: Clock::default(),
            seed: None,
            controllers: Switches::default(),
            enabled_plugins: Vec::new(),
            disabled_plugins: Vec::new(),
            limits: ServerLimits::default(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            host_name: None,
            tls: None,
            tokens: None,
            fault_endpoints: false,
        }
    }
}

impl ApiServerBuilder {
    /// Stores objects here instead of in memory.
    pub fn storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = Some(storage);
        self
    }

    /// Sizes and periods of the watch caches.
    pub fn cache_options(mut self, options: CacheOptions) -> Self {
        self.cache_options = options;
        self
    }

    /// Selects which lists the watch caches serve.
    pub fn gates(mut self, gates: FeatureGates) -> Self {
        self.cache_options.gates = gates;
        self
    }

    /// The time of day that objects show. Under a paused clock, derive it from [`tokio::time::Instant`].
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(now);
        self
    }

    /// Makes uids, generated names and durations of watches the same in every run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Whether deleted namespaces are emptied and removed, as the namespace controller does in a cluster. On by default.
    pub fn empty_namespaces(mut self, yes: bool) -> Self {
        self.controllers.namespaces = yes;
        self
    }

    /// Whether dependents of deleted objects are deleted, and propagation policies have an effect, as the garbage collector does in a
    /// cluster. Off by default: a policy then only adds a finalizer to the object.
    pub fn garbage_collection(mut self, yes: bool) -> Self {
        self.controllers.garbage_collection = yes;
        self
    }

    /// Whether pods that are deleted with a grace period are removed at once, as a kubelet does when they have stopped.
    /// Off by default: they stay until a client deletes them with a grace period of zero.
    pub fn finalize_pods(mut self, yes: bool) -> Self {
        self.controllers.finalize_pods = yes;
        self
    }

    /// Whether kube-controller-manager runs on this server. Then it empties namespaces and collects garbage, and this server does not; a
    /// delete marks objects for its garbage collector. Off by default.
    pub fn controller_manager(mut self, yes: bool) -> Self {
        self.controllers.elsewhere = yes;
        self
    }

    /// Whether controllers run in the background, as in a cluster: a CRD is not established yet, and a deleted namespace or dependent
    /// still exists, when the response arrives. Off by default: they finish before the response. Only for servers on a socket.
    pub fn background_controllers(mut self, yes: bool) -> Self {
        self.controllers.in_background = yes;
        self
    }

    /// Whether the server computes the usage of resource quotas, as the quota controller does in a cluster. On by default. Without it the
    /// admission plugin `ResourceQuota` is off unless it is enabled by name, because it rejects objects while the usage is not known.
    pub fn quota_usage(mut self, yes: bool) -> Self {
        self.controllers.quota_usage = yes;
        self
    }

    /// Enables admission plugins in addition to those that are on by default, by their names in kube-apiserver.
    pub fn enable_admission_plugins<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.enabled_plugins.extend(names.into_iter().map(Into::into));
        self
    }

    /// Disables admission plugins, by their names in kube-apiserver. On by default are `NamespaceLifecycle`, `LimitRanger`,
    /// `TaintNodesByCondition`, `Priority`, `DefaultTolerationSeconds`, `DefaultStorageClass`,
    /// `PersistentVolumeClaimResize`, `RuntimeClass`, `DefaultIngressClass` and `ResourceQuota`; with
    /// [`controller_manager`](Self::controller_manager) also `ServiceAccount` and `StorageObjectInUseProtection`.
    pub fn disable_admission_plugins<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.disabled_plugins.extend(names.into_iter().map(Into::into));
        self
    }

    /// The limits of clients.
    pub fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The largest request body, in bytes; 3 MiB by default.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.limits.body_bytes = bytes;
        self
    }

    /// The most open connections; further ones wait to be accepted. 1,000 by default.
    pub fn max_connections(mut self, n: usize) -> Self {
        self.limits.connections = n;
        self
    }

    /// The time for the head of a request; then the connection is closed. 10 seconds by default.
    pub fn header_timeout(mut self, time: Duration) -> Self {
        self.limits.header_timeout = time;
        self
    }

    /// The port to listen on; any free one by default.
    pub fn port(mut self, port: u16) -> Self {
        self.listen.set_port(port);
        self
    }

    /// The address to listen on. One that other machines can reach needs [`tls`](Self::tls) and [`tokens`](Self::tokens).
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = address;
        self
    }

    /// The host name of the server, for its URL, its self-signed certificate and the check of the `Host` header. By default its address.
    pub fn host_name(mut self, name: impl Into<String>) -> Self {
        self.host_name = Some(name.into());
        self
    }

    /// Serves HTTPS.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Requires one of these bearer tokens. Each gives full access.
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Whether [`Faults`](crate::Faults) and snapshots can be controlled over HTTP, under `/faults` and `/snapshots`. Off by default,
    /// and only on loopback addresses.
    pub fn fault_endpoints(mut self, yes: bool) -> Self {
        self.fault_endpoints = yes;
        self
    }

    /// Starts a server without sockets.
    pub async fn in_process(mut self) -> Result<LocalServer, StartError> {
        self.controllers.in_background = false; // there is no task that would run them
        Ok(LocalServer { api: self.api(None).await? })
    }

    /// Starts a server that listens.
    pub async fn start(mut self) -> Result<ApiServer, StartError> {
        self.check_exposure()?;
        let names = self.names();
        let secured = self.tls.take().map(|tls| tls.secure(names)).transpose()?;
        let listen = |source| StartError::Listen { address: self.listen, source };
        let listener = TcpListener::bind(self.listen).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let access = self.access(address, secured.as_ref());
        let host_names = self.host_name.clone().into_iter().collect();
        let scheme = if secured.is_some() { Scheme::HTTPS } else { Scheme::HTTP };
        let limits = self.limits.clone();
        self.controllers.kubernetes_service = Some(reachable(address));
        let api = self.api(Some(CpuPool::new())).await?;
        api.authenticator.issuer.set_url(&access.url);
        let authenticator = Arc::clone(&api.authenticator);
        let access_control =
            AccessControl::new(address.ip().is_loopback(), scheme, host_names, authenticator);
        let (stop, stopped) = watch::channel(false);
        let context = ConnectionContext {
            api: Arc::clone(&api),
            access_control,
            limits,
            acceptor: secured.map(|s| s.acceptor),
        };
        let task = tokio::spawn(serve(listener, context, stopped));
        Ok(ApiServer { local: LocalServer { api }, address, access, listener: Some(task), stop })
    }

    /// Checks that other machines can reach the server only with TLS and tokens, and never its fault endpoints.
    fn check_exposure(&self) -> Result<(), StartError> {
        let address = self.listen;
        if address.ip().is_loopback() {
            return Ok(());
        }
        let missing = match (&self.tls, &self.tokens) {
            (Some(_), Some(_)) if self.fault_endpoints => return Err(StartError::FaultsExposed { address }),
            (Some(_), Some(_)) => return Ok(()),
            (None, Some(_)) => "TLS",
            (Some(_), None) => "a token",
            (None, None) => "TLS and a token",
        };
        Err(StartError::Exposed { address, missing })
    }

    /// The names and addresses of a self-signed certificate.
    fn names(&self) -> Vec<String> {
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        let address = self.listen.ip();
        let address = (!address.is_unspecified()).then(|| address.to_string());
        for name in address.into_iter().chain(self.host_name.clone()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn access(&self, address: SocketAddr, secured: Option<&Secured>) -> Access {
        let host = match &self.host_name {
            Some(name) => format!("{name}:{}", address.port()),
            None => reachable(address).to_string(),
        };
        let scheme = if secured.is_some() { "https" } else { "http" };
        Access {
            url: format!("{scheme}://{host}"),
            authority: secured.and_then(|secured| secured.authority.clone()),
            token: self.tokens.as_ref().map(|tokens| tokens.first().to_owned()),
        }
    }

    /// The parts of the server, which computes large requests in the pool.
    pub(crate) async fn api(self, cpu_pool: Option<CpuPool>) -> Result<Arc<Api>, StartError> {
        let running = RunningControllers {
            quota_usage: self.controllers.quota_usage,
            controller_manager: self.controllers.elsewhere,
        };
        let plugins = Plugins::new(&self.enabled_plugins, &self.disabled_plugins, running)?;
        let seed = self.seed.unwrap_or_else(|| fastrand::Rng::new().u64(..));
        let api = Api::start(ApiConfig {
            storage: self.storage.unwrap_or_else(|| Arc::new(MemoryStorage::new())),
            cache_options: CacheOptions { seed, ..self.cache_options },
            clock: self.clock,
            seed,
            controllers: self.controllers,
            plugins,
            limits: self.limits,
            fault_endpoints: self.fault_endpoints,
            tokens: self.tokens,
            cpu_pool,
        })
        .await?;
        Ok(api)
    }
}

/// An address to connect to: that of this machine if the server listens on all of them.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

impl std::fmt::Debug for ApiServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServerBuilder")
            .field("listen", &self.listen)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> Tokens {
        Tokens::new(["0123456789abcdef"]).unwrap()
    }

    fn exposed() -> ApiServerBuilder {
        ApiServerBuilder::default().listen("0.0.0.0:0".parse().unwrap())
    }

    #[test]
    fn other_machines_need_both_tls_and_a_token() {
        let missing = |builder: ApiServerBuilder| match builder.check_exposure() {
            Err(StartError::Exposed { missing, .. }) => missing,
            other => panic!("{other:?}"),
        };
        assert_eq!(missing(exposed()), "TLS and a token");
        assert_eq!(missing(exposed().tokens(tokens())), "TLS");
        assert_eq!(missing(exposed().tls(Tls::self_signed())), "a token");
        let both = exposed().tls(Tls::self_signed()).tokens(tokens());
        assert!(both.check_exposure().is_ok());
        let faults = exposed().tls(Tls::self_signed()).tokens(tokens()).fault_endpoints(true);
        assert!(matches!(faults.check_exposure(), Err(StartError::FaultsExposed { .. })));
        for loopback in ["127.0.0.1:0", "127.1.2.3:0", "[::1]:0"] {
            let builder = ApiServerBuilder::default().listen(loopback.parse().unwrap()).fault_endpoints(true);
            assert!(builder.check_exposure().is_ok(), "{loopback}");
        }
    }

    #[test]
    fn urls_are_ones_a_client_can_use() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let url = |builder: ApiServerBuilder, text| builder.access(at(text), None).url;
        assert_eq!(url(ApiServerBuilder::default(), "127.0.0.1:5"), "http://127.0.0.1:5");
        assert_eq!(url(ApiServerBuilder::default(), "0.0.0.0:5"), "http://127.0.0.1:5");
        assert_eq!(url(ApiServerBuilder::default(), "[::]:5"), "http://[::1]:5");
        assert_eq!(
            url(ApiServerBuilder::default().host_name("ci.example"), "0.0.0.0:5"),
            "http://ci.example:5"
        );
    }
}
