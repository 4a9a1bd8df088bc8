//! Jobs and cron jobs.

use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::container::among;
use super::numbers::not_negative;
use super::pod::pod_spec;
use super::selector;
use crate::registry::Object;
use crate::status::{FieldError, FieldErrors};

pub(in crate::registry) fn job(object: &Object) -> FieldErrors {
    let mut errors = not_negative(
        object,
        &[
            "/spec/parallelism",
            "/spec/completions",
            "/spec/activeDeadlineSeconds",
            "/spec/backoffLimit",
            "/spec/ttlSecondsAfterFinished",
        ],
    );
    errors.extend(job_spec(object.at("/spec"), "spec"));
    let empty = Map::new();
    let chosen = object.at("/spec/selector").and_then(Value::as_object).unwrap_or(&empty);
    errors.extend(selector::validate(chosen, "spec.selector"));
    errors.extend(selector::must_match(chosen, object));
    errors
}

pub(in crate::registry) fn job_update(new: &Object, old: &Object) -> FieldErrors {
    // The completions of an indexed job may change together with its parallelism.
    let indexed = new.str_at("/spec/completionMode") == "Indexed";
    let elastic = indexed && new.at("/spec/completions") == new.at("/spec/parallelism");
    let suspended = |job: &Object| job.at("/spec/suspend") == Some(&Value::Bool(true));
    let started = old.at("/status/startTime").is_some();
    let mut fixed =
        vec!["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"];
    if !elastic {
        fixed.insert(0, "completions");
    }
    if !suspended(old) || started {
        fixed.insert(fixed.len() - 3, "template");
    }
    let changed = fixed.into_iter().filter(|field| {
        let at = format!("/spec/{field}");
        new.at(&at) != old.at(&at)
    });
    changed
        .map(|field| {
            let value = new.at(&format!("/spec/{field}"));
            FieldError::invalid(format!("spec.{field}"), value, "field is immutable")
        })
        .collect()
}

fn job_spec(spec: Option<&Value>, at: &str) -> FieldErrors {
    let spec = spec.unwrap_or(&Value::Null);
    let mode = spec["completionMode"].as_str().unwrap_or_default();
    let mut errors = FieldErrors::new();
    errors.extend(retries(spec, at));
    errors.extend(among(mode, &["NonIndexed", "Indexed"], format!("{at}.completionMode")));
    if mode == "Indexed" && spec["completions"].is_null() {
        let why = "when completion mode is Indexed";
        errors.push(FieldError::required(format!("{at}.completions"), why));
    }
    errors.extend(pod_spec(spec["template"].get("spec"), &format!("{at}.template.spec")));
    let field = format!("{at}.template.spec.restartPolicy");
    match spec["template"]["spec"]["restartPolicy"].as_str().unwrap_or_default() {
        "" | "Always" => errors.push(FieldError::required(field, "valid values: \"OnFailure\", \"Never\"")),
        policy => errors.extend(among(policy, &["OnFailure", "Never"], field)),
    }
    errors
}

/// What only an indexed job has, and who replaces its pods.
fn retries(spec: &Value, at: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let fields = ["backoffLimitPerIndex", "maxFailedIndexes"];
    for field in fields {
        let number = spec[field].as_i64().filter(|number| *number < 0);
        errors.extend(number.map(|number| {
            FieldError::invalid(format!("{at}.{field}"), number, "must be greater than or equal to 0")
        }));
    }
    if spec["backoffLimitPerIndex"].is_null() && !spec["maxFailedIndexes"].is_null() {
        let field = format!("{at}.backoffLimitPerIndex");
        errors.push(FieldError::required(field, "when maxFailedIndexes is specified"));
    }
    if let Some(controller) = spec["managedBy"].as_str().filter(|name| !name.contains('/')) {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        errors.push(FieldError::invalid(format!("{at}.managedBy"), controller, why));
    }
    if spec["completionMode"] != "Indexed" {
        for field in fields.into_iter().chain(["successPolicy"]).filter(|field| !spec[*field].is_null()) {
            let why = "requires indexed completion mode";
            errors.push(FieldError::invalid(format!("{at}.{field}"), &spec[field], why));
        }
    }
    let policy = spec["podReplacementPolicy"].as_str().unwrap_or_default();
    errors.extend(among(policy, &["Failed", "TerminatingOrFailed"], format!("{at}.podReplacementPolicy")));
    errors
}

pub(in crate::registry) fn cron_job(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if object.str_at("/spec/schedule").is_empty() {
        errors.push(FieldError::required("spec.schedule", ""));
    } else {
        errors.extend(schedule(object.str_at("/spec/schedule")));
    }
    errors.extend(object.at("/spec/timeZone").and_then(Value::as_str).and_then(time_zone));
    errors.extend(not_negative(object, &["/spec/startingDeadlineSeconds"]));
    let policy = object.str_at("/spec/concurrencyPolicy");
    errors.extend(among(policy, &["Allow", "Forbid", "Replace"], "spec.concurrencyPolicy".to_owned()));
    errors.extend(job_spec(object.at("/spec/jobTemplate/spec"), "spec.jobTemplate.spec"));
    errors
        .extend(not_negative(object, &["/spec/successfulJobsHistoryLimit", "/spec/failedJobsHistoryLimit"]));
    errors
}

/// The name of a time zone, in upper and lower case as the table of time zones has it.
fn time_zone(name: &str) -> Option<FieldError> {
    let invalid = |why: String| Some(FieldError::invalid("spec.timeZone", name, why));
    if name.is_empty() {
        return invalid("timeZone must be nil or non-empty string".to_owned());
    }
    if name.eq_ignore_ascii_case("Local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        return invalid(why.to_owned());
    }
    let is_known = TimeZone::get(name).is_ok_and(|zone| zone.iana_name() == Some(name));
    if is_known { None } else { invalid(format!("unknown time zone {name}")) }
}

/// A schedule: five fields or a macro such as `@daily`. Of the fields only the characters are checked.
fn schedule(text: &str) -> Option<FieldError> {
    let words = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    if words.contains(&text) || text.starts_with("@every ") {
        return None;
    }
    if text.starts_with('@') {
        let why = format!("unrecognized descriptor: {text}");
        return Some(FieldError::invalid("spec.schedule", text, why));
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != 5 {
        let why = format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" "));
        return Some(FieldError::invalid("spec.schedule", text, why));
    }
    let odd = fields
        .iter()
        .find(|field| field.contains(|c: char| !c.is_ascii_alphanumeric() && !"*/,-?".contains(c)));
    odd.map(|field| FieldError::invalid("spec.schedule", text, format!("failed to parse int from {field}")))
}
