//! Reviews of authentication and authorization. This server has no users or roles: every
//! authenticated caller may do everything.
//!
//! A review is never stored: the response to the POST is the review with its status filled in.

use serde_json::{Value, json};

use super::decode::decode_object;
use super::error::VerbError;
use super::options::WriteOptions;
use super::{Request, Response};
use crate::registry::{Registry, Review};

/// The user that every caller is taken for.
const USER: &str = "system:anonymous";
const GROUPS: [&str; 2] = ["system:masters", "system:authenticated"];

pub(crate) fn review(registry: &Registry, request: &Request, review: Review) -> Result<Response, VerbError> {
    let options = WriteOptions::parse(&request.query, "CreateOptions")?;
    let decoded = decode_object(registry, request, options.field_validation)?;
    let mut object = decoded.object;
    object.set_meta("namespace", request.namespace());
    let status = status(review);
    object.root_mut().insert("status".to_owned(), status);
    Ok(Response::made(201, object).with_warnings(decoded.warnings))
}

fn status(review: Review) -> Value {
    let user = json!({"username": USER, "groups": GROUPS});
    match review {
        Review::Token => json!({"authenticated": true, "user": user}),
        Review::SelfSubject => json!({"userInfo": user}),
        Review::Rules => json!({
            "incomplete": false,
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        }),
        Review::Access => json!({"allowed": true, "reason": "this server has no authorization"}),
    }
}
