//! The HTTP client of an informer.

use super::connections::Connections;
use http::{HeaderValue, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::{
    Connection, HttpConnector,
    proxy::{SocksV5, Tunnel},
};
use kube::client::ConfigExt;
use std::time::Duration;
use tower::{BoxError, Service, ServiceBuilder};

/// A configuration from which no client can be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The TLS settings, credentials or headers of the configuration are invalid.
    #[error("cannot build a client from this configuration; check its certificates and credentials")]
    Config(#[source] Box<kube::Error>),
    /// `tls-server-name` is invalid.
    #[error("tls-server-name is not a host name or address; correct it in the kubeconfig")]
    ServerName(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The scheme of the proxy is not supported.
    #[error("proxies of the scheme {scheme:?} are not supported; use http, https or socks5")]
    Proxy {
        /// The scheme of the proxy's URL.
        scheme: String,
    },
}

impl From<kube::Error> for ClientError {
    fn from(error: kube::Error) -> Self {
        Self::Config(Box::new(error))
    }
}

/// Idle time of a TCP connection before the kernel sends keepalive probes. With the probes below, a dead connection is
/// noticed after 45 s, also with HTTP/1.1, which has no pings.
const TCP_IDLE: Duration = Duration::from_secs(30);
const TCP_PROBE_EVERY: Duration = Duration::from_secs(5);
const TCP_PROBES: u32 = 3;

/// A client for informers: authentication, TLS and proxies as [`kube::Client`] has them, but
///
/// 1. requests are never retried below the informer, which reports and retries failures itself;
/// 2. HTTP/2 is used if the server offers it in the TLS handshake, so that watches share a connection, otherwise
///    HTTP/1.1; plain `http://` is always HTTP/1.1;
/// 3. each connection is pinged every 30 s, and closed if no PONG arrives within 15 s;
/// 4. connections are opened as needed to stay below the number of streams that servers allow on each.
///
/// Must be called inside a tokio runtime, to which the client is bound.
pub fn informer_client(config: kube::Config) -> Result<kube::Client, ClientError> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_keepalive(Some(TCP_IDLE));
    http.set_keepalive_interval(Some(TCP_PROBE_EVERY));
    http.set_keepalive_retries(Some(TCP_PROBES));
    let Some(proxy) = config.proxy_url.clone() else { return over(http, &config) };
    match proxy.scheme_str().unwrap_or_default() {
        "http" => over(tunnel(&proxy, http), &config),
        "https" => over(tunnel(&proxy, config.rustls_https_connector_with_connector(http)?), &config),
        "socks5" => over(SocksV5::new(proxy, http), &config),
        scheme => Err(ClientError::Proxy { scheme: scheme.to_owned() }),
    }
}

/// A connector through an HTTP proxy, with the credentials that its URL carries.
fn tunnel<C>(proxy: &Uri, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.clone(), connector);
    let credentials = proxy.authority().and_then(|authority| authority.as_str().rsplit_once('@'));
    match credentials.and_then(|(user, _)| basic_auth(user)) {
        Some(header) => tunnel.with_auth(header),
        None => tunnel,
    }
}

fn basic_auth(user_and_password: &str) -> Option<HeaderValue> {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let plain: Vec<u8> = percent_encoding::percent_decode_str(user_and_password).collect();
    let mut header = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(plain))).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// Builds the client on top of a connector.
fn over<C>(connector: C, config: &kube::Config) -> Result<kube::Client, ClientError>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let mut connector = TimeoutConnector::new(tls(connector, config)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(Connections::new(connector));
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}

/// TLS that offers HTTP/2 and HTTP/1.1, in this order.
fn tls<C>(connector: C, config: &kube::Config) -> Result<HttpsConnector<C>, ClientError> {
    let mut builder =
        HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    if let Some(name) = config.tls_server_name.clone() {
        let name = name.try_into().map_err(|error| ClientError::ServerName(Box::new(error)))?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(builder.enable_all_versions().wrap_connector(connector))
}
