//! Access control, the first check of every request.

use std::net::IpAddr;

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::uri::Authority;

use super::tokens::Tokens;

/// The access control of a server.
///
/// 1. On a loopback address, a request for a host that is not this machine is refused: a web page whose name was pointed at this
///    machine (DNS rebinding) sends its own name.
/// 2. On a loopback address, a request from a web page (with `Origin`) is refused.
/// 3. With tokens, the response to a request without a valid one is 401. Health probes need none.
#[derive(Debug)]
pub(super) struct AccessControl {
    loopback: bool,
    /// Host names of the server besides those of this machine.
    host_names: Vec<String>,
    tokens: Option<Tokens>,
}

/// A request that is refused before its path is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AccessError {
    #[error("requests from web pages (with an Origin header) are refused by a server on a loopback address")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    /// Presented a valid credential, or none is required.
    Authenticated,
    /// Sent a request that needs no credential.
    Anonymous,
}

impl AccessControl {
    pub(super) fn new(loopback: bool, host_names: Vec<String>, tokens: Option<Tokens>) -> Self {
        Self { loopback, host_names, tokens }
    }

    /// Whether callers have to present a credential.
    pub(super) fn requires_credentials(&self) -> bool {
        self.tokens.is_some()
    }

    pub(super) fn admit<B>(&self, request: &http::Request<B>) -> Result<Caller, AccessError> {
        if self.loopback {
            self.check_host(request)?;
            if request.headers().contains_key(ORIGIN) {
                return Err(AccessError::FromWebPage);
            }
        }
        match self.check_token(request) {
            Ok(()) => Ok(Caller::Authenticated),
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

    fn is_ours(&self, host: &str) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            || self.host_names.iter().any(|name| name.eq_ignore_ascii_case(host))
    }

    fn check_token<B>(&self, request: &http::Request<B>) -> Result<(), AccessError> {
        let Some(tokens) = &self.tokens else { return Ok(()) };
        let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let presented = header.and_then(|text| text.split_once(' '));
        let presented = presented.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        match presented {
            Some((_, token)) if tokens.admits(token.trim()) => Ok(()),
            _ => Err(AccessError::Unauthorized),
        }
    }
}

fn is_probe(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next();
    first.is_some_and(|first| ["healthz", "livez", "readyz"].contains(&first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Status;

    const TOKEN: &str = "0123456789abcdef";

    fn ask(access: &AccessControl, uri: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = http::Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        match access.admit(&request.body(()).unwrap()) {
            Ok(_) => 200,
            Err(error) => Status::from(&error).code().as_u16(),
        }
    }

    #[test]
    fn on_loopback_only_names_of_this_machine_and_no_web_pages() {
        let access = AccessControl::new(true, vec!["dev.example".to_owned()], None);
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
        for origin in ["http://localhost", "null", "https://evil.example"] {
            assert_eq!(ask(&access, "/api", &[("Host", "localhost"), ("Origin", origin)]), 403, "{origin}");
        }
    }

    #[test]
    fn elsewhere_a_token_and_nothing_but_a_token() {
        let access = AccessControl::new(false, Vec::new(), Some(Tokens::new([TOKEN]).unwrap()));
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
            access.admit(&probe.body(()).unwrap()).unwrap()
        };
        assert_eq!(caller("Bearer wrong"), Caller::Anonymous);
        assert_eq!(caller(&bearer), Caller::Authenticated);
    }
}
