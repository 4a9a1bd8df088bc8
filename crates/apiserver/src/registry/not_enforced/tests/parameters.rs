//! The parameters of every operation, as the served OpenAPI documents list them.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use serde_json::Value;

use super::Effect::{self, Test};
use super::assert_exists;
use crate::http::handle;
use crate::server::ApiServer;

const PARAMETERS: &[(&str, Effect)] = &[
    ("allowWatchBookmarks", Test("bookmarks_are_not_sent_unless_allowed")),
    ("continue", Test("pages_are_one_snapshot")),
    ("dryRun", Test("dry_runs_change_nothing")),
    ("fieldManager", Test("the_manager_is_named_by_the_parameter_or_the_client")),
    ("fieldSelector", Test("every_kind_can_be_selected_by_name")),
    ("fieldValidation", Test("unknown_fields_are_reported_for_every_kind")),
    ("force", Test("applying_anothers_field_conflicts_unless_equal_or_forced")),
    ("gracePeriodSeconds", Test("a_grace_period_is_that_of_the_options_or_the_pod")),
    ("labelSelector", Test("scopes_and_selectors_combine")),
    ("limit", Test("pages_are_one_snapshot")),
    ("orphanDependents", Test("a_policy_is_a_finalizer_and_contradictions_are_rejected")),
    ("pretty", Test("responses_are_indented_on_request_and_for_people")),
    ("propagationPolicy", Test("a_policy_is_a_finalizer_and_contradictions_are_rejected")),
    ("resourceVersion", Test("the_start_matrix")),
    ("resourceVersionMatch", Test("every_forbidden_combination_is_named")),
    ("sendInitialEvents", Test("the_start_matrix")),
    ("timeoutSeconds", Test("a_bookmark_is_sent_shortly_before_the_end")),
    ("watch", Test("flags_read_as_clients_send_them")),
];

async fn get(api: &Arc<crate::api::Api>, path: &str) -> Value {
    let request = http::Request::get(path).body(Empty::<Bytes>::new()).expect("a request");
    let response = handle(Arc::clone(api), request).await.expect("a response");
    assert_eq!(response.status(), 200, "{path}");
    serde_json::from_slice(&response.into_body().collect().await.expect("a body").to_bytes()).expect("JSON")
}

fn query_parameters(of: &Value, found: &mut BTreeSet<String>) {
    for parameter in of["parameters"].as_array().into_iter().flatten().filter(|p| p["in"] == "query") {
        found.insert(parameter["name"].as_str().expect("a name").to_owned());
    }
}

#[tokio::test(start_paused = true)]
async fn every_parameter_in_openapi_has_an_effect() {
    let api = ApiServer::builder().in_process().await.expect("the server starts").api;
    let index = get(&api, "/openapi/v3").await;
    let mut found = BTreeSet::new();
    for document in index["paths"].as_object().expect("documents").values() {
        let document = get(&api, document["serverRelativeURL"].as_str().expect("a URL")).await;
        for path in document["paths"].as_object().expect("paths").values() {
            query_parameters(path, &mut found);
            for operation in path.as_object().expect("operations").values() {
                query_parameters(operation, &mut found);
            }
        }
    }
    let listed: BTreeSet<String> = PARAMETERS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(found, listed);
    for (name, effect) in PARAMETERS {
        assert_exists(*effect, name);
    }
}
