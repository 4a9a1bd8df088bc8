//! Reviews of authentication and authorization. This server has no roles: every authenticated caller may do everything.
//!
//! A review is never stored: the response to the POST is the review with its status filled in.

use serde_json::{Value, json};

use super::decode::decode_object;
use super::error::VerbError;
use super::options::WriteOptions;
use super::{Request, Response};
use crate::authentication::{Authenticator, ISSUER, User};
use crate::registry::{Object, Registry, Review};

pub(crate) fn review(
    registry: &Registry,
    authenticator: &Authenticator,
    request: &Request,
    review: Review,
) -> Result<Response, VerbError> {
    let options = WriteOptions::parse(&request.query, "CreateOptions")?;
    let decoded = decode_object(registry, request, options.field_validation)?;
    let mut object = decoded.object;
    object.set_meta("namespace", request.namespace());
    let status = match review {
        Review::Token => token_status(authenticator, &object),
        _ => status(review, &request.user),
    };
    object.root_mut().insert("status".to_owned(), status);
    Ok(Response::made(201, object).with_warnings(decoded.warnings))
}

/// The user of a token. A server without tokens accepts every token, but knows the users of those it issued.
fn token_status(authenticator: &Authenticator, review: &Object) -> Value {
    let token = review.str_at("/spec/token");
    let audiences = review.at("/spec/audiences").and_then(Value::as_array).into_iter().flatten();
    let audiences: Vec<String> = audiences.filter_map(Value::as_str).map(str::to_owned).collect();
    let own = || vec![ISSUER.to_owned()];
    let known = authenticator.static_user(token).map(|user| (user, own()));
    match known.or_else(|| authenticator.issuer.verify(token, Some(&audiences))) {
        Some((user, audiences)) => {
            json!({"authenticated": true, "user": user.info(), "audiences": audiences})
        }
        None if authenticator.requires_credentials() || authenticator.issuer.looks_issued(token) => {
            json!({"user": {}, "error": "[invalid bearer token]"})
        }
        None => json!({"authenticated": true, "user": User::anonymous().info()}),
    }
}

fn status(review: Review, user: &User) -> Value {
    match review {
        Review::Token | Review::SelfSubject => json!({"userInfo": user.info()}),
        Review::Rules => json!({
            "incomplete": false,
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        }),
        Review::Access => json!({"allowed": true, "reason": "this server has no authorization"}),
    }
}
