//! Checks of the rules in a schema.

use serde_json::{Map, Value as Json};

use super::{Problem, ProblemKind, field_path, quoted};
use crate::limits::{ESTIMATED_COST_LIMIT, ESTIMATED_SCHEMA_COST_LIMIT, MAX_REQUEST_BYTES};
use crate::program::{CompileError, Environment, Program};
use crate::schema::{Rule, Schema};

const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
/// The most expensive rules that an error about the total names.
const MOST_EXPENSIVE: usize = 4;

/// Returns the problems of the rules in a structural schema, the value of `openAPIV3Schema`, at a path.
#[must_use]
pub fn check_rules(schema: &Json, at: &str) -> Vec<Problem> {
    let mut walk = Walk { problems: Vec::new(), total: 0, expensive: Vec::new() };
    walk.schema(schema, at, Place { is_root: true, cardinality: Some(1), uncorrelatable: None });
    if walk.total > ESTIMATED_SCHEMA_COST_LIMIT {
        let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let expensive = std::mem::take(&mut walk.expensive);
        walk.problems.extend(expensive.into_iter().map(|(field, _)| Problem::forbidden(field, why)));
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        walk.problems
            .push(Problem::forbidden(at, too_expensive(name, walk.total, ESTIMATED_SCHEMA_COST_LIMIT)));
    }
    walk.problems
}

/// Where a schema is in the schema of the resource.
#[derive(Clone)]
struct Place {
    is_root: bool,
    /// How often a value can occur in an object, if lists and maps around it are bounded.
    cardinality: Option<u64>,
    /// The list around it whose elements have no former value.
    uncorrelatable: Option<String>,
}

struct Walk {
    problems: Vec<Problem>,
    total: u64,
    expensive: Vec<(String, u64)>,
}

impl Walk {
    /// Checks a schema and all schemas in it. Returns whether the fields of all rules are well-formed.
    fn schema(&mut self, json: &Json, at: &str, place: Place) -> bool {
        let empty = Map::new();
        let fields = json.as_object().unwrap_or(&empty);
        let inner =
            Place { is_root: false, cardinality: children(fields, place.cardinality), ..place.clone() };
        let mut valid = true;
        if let Some(additional) = fields.get("additionalProperties").filter(|inner| inner.is_object()) {
            valid &= self.schema(additional, &format!("{at}.additionalProperties"), inner.clone());
        }
        for (name, property) in fields.get("properties").and_then(Json::as_object).into_iter().flatten() {
            valid &= self.schema(property, &format!("{at}.properties[{name}]"), inner.clone());
        }
        if let Some(items) = fields.get("items").filter(|inner| inner.is_object()) {
            let mut inner = inner;
            if fields.get("x-kubernetes-list-type").and_then(Json::as_str) != Some("map") {
                inner.uncorrelatable = Some(at.to_owned());
            }
            valid &= self.schema(items, &format!("{at}.items"), inner);
        }
        if fields.get("x-kubernetes-validations").and_then(Json::as_array).is_none_or(Vec::is_empty) {
            return valid;
        }
        let schema = if place.is_root { Schema::of_resource(json) } else { Schema::new(json) };
        let before = self.problems.len();
        for (i, rule) in schema.rules.iter().enumerate() {
            self.form(rule, &schema, &format!("{at}.x-kubernetes-validations[{i}]"));
        }
        valid &= self.problems.len() == before;
        // Expressions are compiled only if no field of a rule here or below has an error.
        if valid {
            self.expressions(&schema, at, &place);
        }
        valid
    }

    fn form(&mut self, rule: &Rule, schema: &Schema, at: &str) {
        let broken = |text: &str| text.contains(['\n', '\r']);
        let (text, message) = (rule.rule.trim(), rule.message.trim());
        let mut push = |problem: Problem| self.problems.push(problem);
        if text.is_empty() {
            push(Problem::required(format!("{at}.rule"), "rule is not specified"));
        } else if !rule.message.is_empty() && message.is_empty() {
            push(Problem::invalid(
                format!("{at}.message"),
                quoted(&rule.message),
                "must be non-empty if specified",
            ));
        } else if broken(message) {
            push(Problem::invalid(
                format!("{at}.message"),
                quoted(&rule.message),
                "must not contain line breaks",
            ));
        } else if broken(text) && message.is_empty() {
            push(Problem::required(
                format!("{at}.message"),
                "message must be specified if rule contains line breaks",
            ));
        }
        if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            push(Problem::required(format!("{at}.messageExpression"), why));
        }
        if let Some(reason) = rule.reason.as_ref().filter(|reason| !REASONS.contains(&reason.as_str())) {
            let kind = ProblemKind::NotSupported { value: reason.clone(), supported: &REASONS };
            push(Problem { field: format!("{at}.reason"), kind });
        }
        let path = &rule.field_path;
        let mut reject = |why: &str| push(Problem::invalid(format!("{at}.fieldPath"), quoted(path), why));
        if !path.is_empty() && path.trim().is_empty() {
            reject("must be non-empty if specified");
        }
        if broken(path) {
            reject("must not contain line breaks");
        }
        if !path.is_empty() && field_path::normalize(path, schema).is_err() {
            reject("must be a valid path");
        }
    }

    fn expressions(&mut self, schema: &Schema, at: &str, place: &Place) {
        let Some(environment) = Environment::new(schema) else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to \
                          convert structural schema to CEL declarations";
            let kind = ProblemKind::Internal { detail: detail.to_owned() };
            self.problems.push(Problem { field: format!("{at}.x-kubernetes-validations"), kind });
            return;
        };
        let occurrences = place
            .cardinality
            .unwrap_or_else(|| u64::try_from(MAX_REQUEST_BYTES / (environment.min_size() + 1)).unwrap_or(0));
        for (i, rule) in schema.rules.iter().enumerate() {
            self.rule(rule, &environment, occurrences, &format!("{at}.x-kubernetes-validations[{i}]"), place);
        }
    }

    fn rule(&mut self, rule: &Rule, environment: &Environment, occurrences: u64, at: &str, place: &Place) {
        let environment = environment.clone().with_optional_old_self(rule.optional_old_self == Some(true));
        let field = format!("{at}.rule");
        let program = match compile(&environment, &rule.rule, "bool", "") {
            Ok(program) => program,
            Err(why) => {
                self.problems.push(Problem::invalid(field, Some(shown(rule)), why));
                if rule.optional_old_self.is_some() {
                    self.optional_old_self_unused(rule, at);
                }
                return;
            }
        };
        let cost = program.estimated_cost().1.saturating_mul(occurrences);
        self.charge("estimated rule cost", &field, cost);
        if !rule.message_expression.is_empty() {
            let field = format!("{at}.messageExpression");
            match compile(&environment, &rule.message_expression, "string", "messageExpression ") {
                Ok(program) => {
                    self.charge("estimated messageExpression cost", &field, program.estimated_cost().1)
                }
                Err(why) => self.problems.push(Problem::invalid(field, Some(shown(rule)), why)),
            }
        }
        match (&place.uncorrelatable, program.uses_old_self()) {
            (Some(list), true) => {
                let why = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                );
                self.problems.push(Problem::invalid(field, quoted(&rule.rule), why));
            }
            (_, false) if rule.optional_old_self.is_some() => self.optional_old_self_unused(rule, at),
            _ => {}
        }
    }

    fn optional_old_self_unused(&mut self, rule: &Rule, at: &str) {
        let value = rule.optional_old_self.unwrap_or_default().to_string();
        let why = "may not be set if oldSelf is not used in rule";
        self.problems.push(Problem::invalid(format!("{at}.optionalOldSelf"), Some(value), why));
    }

    /// Reports an expression that may cost too much, and adds it to the total.
    fn charge(&mut self, name: &str, field: &str, cost: u64) {
        if cost > ESTIMATED_COST_LIMIT {
            self.problems.push(Problem::forbidden(field, too_expensive(name, cost, ESTIMATED_COST_LIMIT)));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= ESTIMATED_SCHEMA_COST_LIMIT / 100 {
            self.expensive.push((field.to_owned(), cost));
            self.expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
            self.expensive.truncate(MOST_EXPENSIVE);
        }
    }
}

fn compile(environment: &Environment, expression: &str, wanted: &str, name: &str) -> Result<Program, String> {
    match environment.compile(expression) {
        Ok(program) if program.output_type() == wanted => Ok(program),
        Ok(_) if name.is_empty() => Err(format!("cel expression must evaluate to a {wanted}")),
        Ok(_) => Err(format!("{name}must evaluate to a {wanted}")),
        Err(CompileError::Invalid(why)) => Err(format!("{name}compilation failed: {why}")),
        Err(CompileError::Program(why)) if name.is_empty() => {
            Err(format!("program instantiation failed: {why}"))
        }
        Err(CompileError::Program(why)) => Err(format!("{name}instantiation failed: {why}")),
    }
}

/// Returns the most values of schemas inside this one.
fn children(fields: &Map<String, Json>, cardinality: Option<u64>) -> Option<u64> {
    let most = |key: &str| fields.get(key).and_then(Json::as_i64).map(|max| max.max(0).unsigned_abs());
    let factor = match fields.get("type").and_then(Json::as_str) {
        Some("object") if fields.contains_key("additionalProperties") => most("maxProperties")?,
        Some("array") => most("maxItems")?,
        _ => 1,
    };
    Some(cardinality?.saturating_mul(factor))
}

fn too_expensive(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// Returns a rule as kube-apiserver prints it.
fn shown(rule: &Rule) -> String {
    let text = |text: &str| Json::from(text).to_string();
    let reason = rule.reason.as_ref().map_or("null".to_owned(), |reason| text(reason));
    let optional = rule.optional_old_self.map_or("null".to_owned(), |optional| optional.to_string());
    format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{reason},"FieldPath":{},"OptionalOldSelf":{optional}}}"#,
        text(&rule.rule),
        text(&rule.message),
        text(&rule.message_expression),
        text(&rule.field_path)
    )
}
