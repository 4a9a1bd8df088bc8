//! The users of requests: static bearer tokens, client certificates, and the tokens of service accounts that this server issued.

mod bound_objects;
mod certificate;
mod impersonation;
mod issuer;

use std::collections::BTreeMap;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};

pub(crate) use certificate::user_of_certificate;
pub(crate) use certificate::user_of_subject;
pub(crate) use impersonation::WithoutUser;
pub(crate) use impersonation::impersonate;
pub(crate) use issuer::ISSUER;
pub(crate) use issuer::Issuer;
pub(crate) use issuer::TokenSubject;

use crate::clock::Clock;
use crate::server::Tokens;

/// The group of every user with a valid credential.
const AUTHENTICATED: &str = "system:authenticated";
/// The group with full access.
const MASTERS: &str = "system:masters";

/// The sender of a request. Without roles, users only differ in reviews and in objects that record their creator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user with a credential.
    pub(crate) fn new(name: &str, uid: &str, groups: impl IntoIterator<Item = String>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self { name: name.to_owned(), uid: uid.to_owned(), groups, extra: BTreeMap::new() }
    }

    /// The user of a token that names none.
    pub(crate) fn admin() -> Self {
        Self::new("admin", "", [MASTERS.to_owned()])
    }

    /// The user without a credential, on servers that require none.
    pub(crate) fn anonymous() -> Self {
        Self::new("system:anonymous", "", [MASTERS.to_owned()])
    }

    /// As `UserInfo`.
    pub(crate) fn info(&self) -> Value {
        let mut info = json!({"username": self.name, "groups": self.groups});
        if !self.uid.is_empty() {
            info["uid"] = self.uid.as_str().into();
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }
}

/// Finds the user of a token.
#[derive(Debug)]
pub(crate) struct Authenticator {
    /// `None` if the server requires no credential.
    tokens: Option<Tokens>,
    pub(crate) issuer: Issuer,
}

impl Authenticator {
    pub(crate) fn new(tokens: Option<Tokens>, clock: Clock) -> Self {
        Self { tokens, issuer: Issuer::new(clock) }
    }

    /// Whether callers have to present a credential.
    pub(crate) fn requires_credentials(&self) -> bool {
        self.tokens.is_some()
    }

    /// The user of a static token, or of a token for this server that it issued.
    pub(crate) fn user_of(&self, token: &str) -> Option<User> {
        self.static_user(token).or_else(|| self.issuer.verify(token, None).map(|(user, _)| user))
    }

    /// The user of a static token.
    pub(crate) fn static_user(&self, token: &str) -> Option<User> {
        self.tokens.as_ref()?.user_of(token).cloned()
    }
}

/// The bearer token of a request.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
