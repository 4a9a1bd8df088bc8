//! Access control, the first check of every request.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::{HOST, ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use http::uri::{Authority, Scheme};

use std::sync::Arc;

use crate::authentication::{Authenticator, User, bearer_token};

/// The access control of a server.
///
/// 1. On a loopback address without tokens, a request for a host that is not this machine is refused: a web page whose name was pointed
///    at this machine (DNS rebinding) sends its own name.
/// 2. There, and with a client certificate, which a browser sends for every page, a request from a web page of another origin is refused.
///    The origin of the server itself is not another one.
/// 3. With tokens, the response to a request without a valid one is 401, unless its connection has a client certificate. Health probes
///    need neither. A web page has no token, so that `Host` and `Origin` may be any.
/// 4. A certificate comes before a token: its user is the caller.
#[derive(Debug)]
pub(super) struct AccessControl {
    loopback: bool,
    /// Of the server's URL.
    scheme: Scheme,
    /// Host names of the server besides those of this machine.
    host_names: Vec<String>,
    authenticator: Arc<Authenticator>,
}

/// A request that is refused before its path is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AccessError {
    #[error("requests from web pages (with an Origin header of another origin) are refused without a token")]
    FromWebPage,
    #[error(
        "the Host of this request is not this machine: use localhost or 127.0.0.1, or start the server with the host name it \
         is reached by"
    )]
    ForeignHost,
    #[error("Unauthorized")]
    Unauthorized,
}

/// The sender of a request that is admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Caller {
    /// Presented a valid credential, or none is required.
    Authenticated(User),
    /// Sent a request that needs no credential.
    Anonymous,
}

impl AccessControl {
    pub(super) fn new(
        loopback: bool,
        scheme: Scheme,
        host_names: Vec<String>,
        authenticator: Arc<Authenticator>,
    ) -> Self {
        Self { loopback, scheme, host_names, authenticator }
    }

    /// Whether callers have to present a credential.
    pub(super) fn requires_credentials(&self) -> bool {
        self.authenticator.requires_credentials()
    }

    /// Admits a request. `certified` is the user of the client certificate of its connection.
    pub(super) fn admit<B>(
        &self,
        request: &http::Request<B>,
        certified: Option<&User>,
    ) -> Result<Caller, AccessError> {
        let open = self.loopback && !self.requires_credentials();
        if open {
            self.check_host(request)?;
        }
        if (open || certified.is_some())
            && !request.headers().get_all(ORIGIN).iter().all(|origin| self.is_own_origin(origin, request))
        {
            return Err(AccessError::FromWebPage);
        }
        if let Some(user) = certified {
            return Ok(Caller::Authenticated(user.clone()));
        }
        match self.check_token(request) {
            Ok(user) => Ok(Caller::Authenticated(user)),
            Err(_) if is_probe(request.uri().path()) => Ok(Caller::Anonymous),
            Err(error) => Err(error),
        }
    }

    /// Checks the host in the target of the request and in every `Host` header.
    fn check_host<B>(&self, request: &http::Request<B>) -> Result<(), AccessError> {
        let target = request.uri().authority().map(|authority| self.is_ours(authority.host()));
        let headers = request.headers().get_all(HOST).iter().map(|value| {
            let authority = value.to_str().ok().and_then(|text| text.parse::<Authority>().ok());
            authority.is_some_and(|authority| self.is_ours(authority.host()))
        });
        let mut hosts = target.into_iter().chain(headers).peekable();
        if hosts.peek().is_some() && hosts.all(|ours| ours) {
            return Ok(());
        }
        Err(AccessError::ForeignHost)
    }

    /// Whether an origin is the one of the requested URL: same scheme, host and port. The host was checked before.
    fn is_own_origin<B>(&self, origin: &http::HeaderValue, request: &http::Request<B>) -> bool {
        let host = request.headers().get(HOST).and_then(|value| value.to_str().ok());
        let requested = request.uri().authority().map(Authority::as_str).or(host).unwrap_or_default();
        let origin = origin.to_str().ok().and_then(|text| text.split_once("://"));
        origin.is_some_and(|(scheme, authority)| {
            scheme.eq_ignore_ascii_case(self.scheme.as_str()) && authority.eq_ignore_ascii_case(requested)
        })
    }

    fn is_ours(&self, host: &str) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            || self.host_names.iter().any(|name| name.eq_ignore_ascii_case(host))
    }

    /// The user of the token. Without a token, and where none is required, the anonymous one.
    fn check_token<B>(&self, request: &http::Request<B>) -> Result<User, AccessError> {
        let header = bearer_token(request.headers()).map(str::to_owned);
        let token = header.or_else(|| websocket_token(request.headers()));
        match token.and_then(|token| self.authenticator.user_of(&token)) {
            Some(user) => Ok(user),
            None if !self.requires_credentials() => Ok(User::anonymous()),
            None => Err(AccessError::Unauthorized),
        }
    }
}

/// The prefix of the WebSocket subprotocol that contains a token. Browsers cannot set other headers.
const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// The WebSocket subprotocols of a request, without the one that contains a token.
pub(super) fn websocket_protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    subprotocols(headers).filter(|protocol| !protocol.starts_with(TOKEN_PROTOCOL))
}

fn subprotocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|protocol| !protocol.is_empty())
}

/// The token among the WebSocket subprotocols. As in kube-apiserver, there must be one token, and another protocol to respond with.
fn websocket_token(headers: &HeaderMap) -> Option<String> {
    let mut encoded = subprotocols(headers).filter_map(|protocol| protocol.strip_prefix(TOKEN_PROTOCOL));
    let (token, None) = (encoded.next()?, encoded.next()) else { return None };
    websocket_protocols(headers).next()?;
    String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()
}

fn is_probe(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next();
    first.is_some_and(|first| ["healthz", "livez", "readyz"].contains(&first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::server::Tokens;
    use crate::status::Status;

    const TOKEN: &str = "0123456789abcdef";

    fn authenticator(with_token: bool) -> Arc<Authenticator> {
        let tokens = with_token.then(|| Tokens::new([TOKEN]).unwrap());
        Arc::new(Authenticator::new(tokens, Clock::default()))
    }

    fn ask(access: &AccessControl, uri: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = http::Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        match access.admit(&request.body(()).unwrap(), None) {
            Ok(_) => 200,
            Err(error) => Status::from(&error).code().as_u16(),
        }
    }

    #[test]
    fn on_loopback_only_names_of_this_machine_and_no_web_pages() {
        let access =
            AccessControl::new(true, Scheme::HTTP, vec!["dev.example".to_owned()], authenticator(false));
        for ours in [
            "localhost",
            "localhost:80",
            "LOCALHOST.",
            "127.0.0.1:8001",
            "127.9.9.9",
            "[::1]:1",
            "dev.example:2",
        ] {
            assert_eq!(ask(&access, "/api", &[("Host", ours)]), 200, "{ours}");
        }
        for foreign in
            ["evil.example", "evil.example:8001", "10.0.0.1", "localhost.evil.example", "", "[::2]", "a@b c"]
        {
            assert_eq!(ask(&access, "/api", &[("Host", foreign)]), 403, "{foreign}");
        }
        assert_eq!(ask(&access, "/api", &[]), 403, "no host at all");
        assert_eq!(ask(&access, "/api", &[("Host", "localhost"), ("Host", "evil.example")]), 403);
        assert_eq!(ask(&access, "http://evil.example/api", &[("Host", "localhost")]), 403);
        assert_eq!(ask(&access, "http://localhost:1/api", &[]), 200, "as HTTP/2 says it");
        for origin in [
            "http://localhost:81",
            "https://localhost",
            "null",
            "https://evil.example",
            "http://localhost/",
            "",
        ] {
            assert_eq!(ask(&access, "/api", &[("Host", "localhost"), ("Origin", origin)]), 403, "{origin}");
        }
        for (host, origin) in [("localhost", "http://localhost"), ("127.0.0.1:80", "HTTP://127.0.0.1:80")] {
            assert_eq!(ask(&access, "/api", &[("Host", host), ("Origin", origin)]), 200, "its own origin");
            let both = [("Host", host), ("Origin", origin), ("Origin", "http://evil.example")];
            assert_eq!(ask(&access, "/api", &both), 403, "one of two");
        }
    }

    #[test]
    fn elsewhere_a_token_and_nothing_but_a_token() {
        let access = AccessControl::new(false, Scheme::HTTPS, Vec::new(), authenticator(true));
        let bearer = format!("Bearer {TOKEN}");
        assert_eq!(ask(&access, "/api", &[("Authorization", &bearer), ("Host", "any.example")]), 200);
        assert_eq!(ask(&access, "/api", &[("Authorization", &format!("bearer  {TOKEN}"))]), 200);
        for wrong in ["", TOKEN, "Bearer", "Bearer ", "Bearer 0123456789abcdeX", "Basic 0123456789abcdef"] {
            assert_eq!(ask(&access, "/api", &[("Authorization", wrong)]), 401, "{wrong}");
        }
        assert_eq!(ask(&access, "/livezX", &[]), 401);
        for probe in ["/livez", "/readyz?verbose", "/healthz/ping"] {
            assert_eq!(ask(&access, probe, &[]), 200, "{probe}");
        }
        let caller = |header: &str| {
            let probe = http::Request::builder().uri("/livez").header("Authorization", header);
            access.admit(&probe.body(()).unwrap(), None).unwrap()
        };
        assert_eq!(caller("Bearer wrong"), Caller::Anonymous);
        assert_eq!(caller(&bearer), Caller::Authenticated(User::admin()));
    }

    #[test]
    fn with_a_token_any_host_and_origin_also_on_loopback() {
        let access = AccessControl::new(true, Scheme::HTTPS, Vec::new(), authenticator(true));
        let bearer = format!("Bearer {TOKEN}");
        let from = [("Host", "host.docker.internal:6443"), ("Origin", "https://app.example")];
        assert_eq!(ask(&access, "/api", &from), 401);
        assert_eq!(ask(&access, "/api", &[from[0], from[1], ("Authorization", &bearer)]), 200);
    }

    #[test]
    fn a_certificate_is_as_good_as_a_token_but_not_for_web_pages() {
        let access = AccessControl::new(false, Scheme::HTTPS, Vec::new(), authenticator(true));
        let user = User::new("jane", "", []);
        let admit = |headers: &[(&str, &str)]| {
            let mut request = http::Request::builder().uri("/api").header("Host", "api.example");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            access.admit(&request.body(()).unwrap(), Some(&user))
        };
        assert_eq!(admit(&[]), Ok(Caller::Authenticated(user.clone())));
        let bearer = format!("Bearer {TOKEN}");
        assert_eq!(admit(&[("Authorization", &bearer)]), Ok(Caller::Authenticated(user.clone())));
        assert_eq!(admit(&[("Origin", "https://api.example")]), Ok(Caller::Authenticated(user.clone())));
        assert_eq!(admit(&[("Origin", "https://evil.example")]), Err(AccessError::FromWebPage));
    }

    #[test]
    fn a_websocket_client_may_send_its_token_as_a_subprotocol() {
        let access = AccessControl::new(false, Scheme::HTTPS, Vec::new(), authenticator(true));
        let protocol = |token: &str| format!("{TOKEN_PROTOCOL}{}", URL_SAFE_NO_PAD.encode(token));
        let ask = |value: &str| ask(&access, "/api", &[("Sec-WebSocket-Protocol", value)]);
        assert_eq!(ask(&format!("{}, v4.channel.k8s.io", protocol(TOKEN))), 200);
        for wrong in [
            protocol(TOKEN),
            format!("{}, v4.channel.k8s.io", protocol("0123456789abcdeX")),
            format!("{0}, {0}, v4.channel.k8s.io", protocol(TOKEN)),
            format!("{TOKEN_PROTOCOL}!, v4.channel.k8s.io"),
            "v4.channel.k8s.io".to_owned(),
        ] {
            assert_eq!(ask(&wrong), 401, "{wrong}");
        }
    }
}
