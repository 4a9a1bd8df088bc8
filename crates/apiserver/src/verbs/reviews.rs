//! Reviews: questions about who may do what. This server lets everybody do everything, and says so.
//!
//! A review is posted, answered in its status, and never stored.

use serde_json::{Value, json};

use super::decode::decode_object;
use super::options::WriteOptions;
use super::{Answer, Request};
use crate::engine::Engine;
use crate::status::Status;

/// Whom the server takes every caller for.
const USER: &str = "system:anonymous";
const GROUPS: [&str; 2] = ["system:masters", "system:authenticated"];

pub(crate) fn review(engine: &Engine, request: &Request) -> Result<Answer, Status> {
    let options = WriteOptions::parse(&request.query, "CreateOptions")?;
    let decoded = decode_object(engine, request, options.field_validation)?;
    let mut object = decoded.object;
    object.set_meta("namespace", &request.namespace);
    let status = status(&request.resource.kind);
    object.root_mut().insert("status".to_owned(), status);
    Ok(Answer::made(201, object).with_warnings(decoded.warnings))
}

fn status(kind: &str) -> Value {
    let user = json!({"username": USER, "groups": GROUPS});
    match kind {
        "TokenReview" => json!({"authenticated": true, "user": user}),
        "SelfSubjectReview" => json!({"userInfo": user}),
        "SelfSubjectRulesReview" => json!({
            "incomplete": false,
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        }),
        _ => json!({"allowed": true, "reason": "this server has no authorization"}),
    }
}
