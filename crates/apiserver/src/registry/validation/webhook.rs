//! Webhook configurations.

use serde_json::Value;

use super::container::among;
use super::read::{each, is_empty, text};
use crate::registry::Object;
use crate::registry::names::subdomain;
use crate::status::{FieldError, FieldErrors};

pub(in crate::registry) fn webhooks(object: &Object) -> FieldErrors {
    each(object.value(), "webhooks").flat_map(|(i, hook)| webhook(hook, &format!("webhooks[{i}]"))).collect()
}

fn webhook(hook: &Value, at: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let name = text(hook, "name");
    if name.is_empty() {
        errors.push(FieldError::required(format!("{at}.name"), ""));
    } else {
        let wrong = subdomain(name);
        if wrong.is_empty() && name.split('.').count() < 3 {
            let why = "should be a domain with at least three segments separated by dots";
            errors.push(FieldError::invalid(format!("{at}.name"), name, why));
        }
        errors.extend(wrong.into_iter().map(|why| FieldError::invalid(format!("{at}.name"), name, why)));
    }
    for (i, rule) in each(hook, "rules") {
        for field in ["operations", "apiGroups", "apiVersions", "resources"] {
            if is_empty(&rule[field]) {
                errors.push(FieldError::required(format!("{at}.rules[{i}].{field}"), ""));
            }
        }
    }
    errors.extend(among(text(hook, "failurePolicy"), &["Fail", "Ignore"], format!("{at}.failurePolicy")));
    errors.extend(among(text(hook, "matchPolicy"), &["Equivalent", "Exact"], format!("{at}.matchPolicy")));
    match text(hook, "sideEffects") {
        "" => errors.push(FieldError::required(
            format!("{at}.sideEffects"),
            "must specify one of None, NoneOnDryRun",
        )),
        effects => errors.extend(among(effects, &["None", "NoneOnDryRun"], format!("{at}.sideEffects"))),
    }
    if let Some(seconds) = hook["timeoutSeconds"].as_i64().filter(|seconds| !(1..=30).contains(seconds)) {
        let why = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(format!("{at}.timeoutSeconds"), seconds, why));
    }
    let client = &hook["clientConfig"];
    if client["url"].is_string() == client["service"].is_object() {
        let why = "exactly one of url or service is required";
        errors.push(FieldError::required(format!("{at}.clientConfig"), why));
    }
    if is_empty(&hook["admissionReviewVersions"]) {
        let why = "must specify one of v1, v1beta1";
        errors.push(FieldError::required(format!("{at}.admissionReviewVersions"), why));
    }
    errors
}
