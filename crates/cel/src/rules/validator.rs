//! Checks of objects by the rules of their schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::correlation::{Correlated, Keyed, Ratcheting};
use super::{Problem, ProblemKind, field_path, quoted};
use crate::limits::{MAX_MESSAGE_BYTES, OBJECT_BUDGET, PER_CALL_LIMIT};
use crate::program::{CompileError, Environment, Outcome, Output, Program};
use crate::schema::{Kind, Rule, Schema};

/// The compiled rules of a schema.
#[derive(Debug, Clone)]
pub struct Validator {
    schema: Arc<Schema>,
    root: Arc<Level>,
}

/// The result of checking an object by its rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Why the object is rejected.
    pub errors: Vec<Problem>,
    /// The problems of unchanged values, which stay accepted.
    pub warnings: Vec<Problem>,
}

/// The rules of one schema and of the schemas in it.
#[derive(Debug, Default)]
pub(super) struct Level {
    rules: Vec<Compiled>,
    pub(super) properties: BTreeMap<String, Level>,
    additional: Option<Box<Level>>,
    pub(super) items: Option<Box<Level>>,
}

#[derive(Debug)]
struct Compiled {
    program: Result<Program, CompileError>,
    message: Option<Program>,
    /// The field that errors are reported for, from the value of the rule.
    field: String,
}

impl Validator {
    /// Compiles the rules of a schema; returns `None` if it has none.
    #[must_use]
    pub fn new(schema: Schema) -> Option<Self> {
        let root = Level::of(&schema)?;
        Some(Self { schema: Arc::new(schema), root: Arc::new(root) })
    }

    /// Checks an object that replaces `old`, or that is new.
    #[must_use]
    pub fn validate(&self, object: &Json, old: Option<&Json>) -> Verdict {
        self.run(object, old, u64::MAX).unwrap_or_default()
    }

    /// Like [`Validator::validate`], but gives up and returns `None` when the check costs more than `allowance`. A caller that must not
    /// be delayed can then repeat the check elsewhere.
    #[must_use]
    pub fn validate_within(&self, object: &Json, old: Option<&Json>, allowance: u64) -> Option<Verdict> {
        self.run(object, old, allowance)
    }

    fn run(&self, object: &Json, old: Option<&Json>, allowance: u64) -> Option<Verdict> {
        let mut run = Run::new(OBJECT_BUDGET, allowance);
        let correlated = old.map(|old| Correlated { new: object, old, schema: &self.schema });
        let value =
            Checked { schema: &self.schema, new: object, old, ratcheting: Ratcheting::new(correlated) };
        // The verdict has the error of a budget that is used up.
        let _ = run.level(&self.root, &value, "");
        (!run.gave_up).then_some(run.verdict)
    }

    pub(super) fn root(&self) -> (&Schema, &Level) {
        (&self.schema, &self.root)
    }
}

impl Level {
    /// Returns the rules of a schema and of those in it, or `None` if there are none.
    fn of(schema: &Schema) -> Option<Self> {
        let mut level = Self::default();
        if !schema.rules.is_empty()
            && let Some(environment) = Environment::new(schema)
        {
            level.rules = schema.rules.iter().map(|rule| Compiled::of(rule, &environment, schema)).collect();
        }
        for (name, property) in &schema.properties {
            if let Some(inner) = Self::of(property) {
                level.properties.insert(name.clone(), inner);
            }
        }
        level.additional = schema.additional.as_deref().and_then(Self::of).map(Box::new);
        level.items = schema.items.as_deref().and_then(Self::of).map(Box::new);
        let is_empty = level.rules.is_empty()
            && level.properties.is_empty()
            && level.additional.is_none()
            && level.items.is_none();
        (!is_empty).then_some(level)
    }
}

impl Compiled {
    fn of(rule: &Rule, environment: &Environment, schema: &Schema) -> Self {
        let environment = environment.clone().with_optional_old_self(rule.optional_old_self == Some(true));
        let message = Some(&rule.message_expression).filter(|message| !message.is_empty());
        Self {
            program: environment.compile(&rule.rule),
            message: message.and_then(|message| environment.compile(message).ok()),
            field: field_path::normalize(&rule.field_path, schema).unwrap_or_default(),
        }
    }
}

/// A value that is checked.
pub(super) struct Checked<'o> {
    pub(super) schema: &'o Schema,
    pub(super) new: &'o Json,
    pub(super) old: Option<&'o Json>,
    pub(super) ratcheting: Ratcheting<'o>,
}

/// The budget or the allowance is used up; no more rules are evaluated.
pub(super) struct Ended;

/// The check of one object.
pub(super) struct Run {
    pub(super) verdict: Verdict,
    /// The cost that is left for the object.
    pub(super) budget: i64,
    /// The cost that is left before the check gives up.
    allowance: u64,
    gave_up: bool,
}

impl Run {
    pub(super) fn new(budget: i64, allowance: u64) -> Self {
        Self { verdict: Verdict::default(), budget, allowance, gave_up: false }
    }

    pub(super) fn level<'o>(&mut self, level: &Level, value: &Checked<'o>, path: &str) -> Result<(), Ended> {
        if value.new.is_null() {
            return Ok(());
        }
        self.rules(level, value, path)?;
        match value.new {
            Json::Array(items) => {
                let (Some(inner), Some(schema)) = (&level.items, value.schema.items.as_deref()) else {
                    return Ok(());
                };
                let keyed = Keyed::new(value.schema, value.old);
                for (i, item) in items.iter().enumerate() {
                    let old = keyed.get(item);
                    let ratcheting = value.ratcheting.item(i, old);
                    let item = Checked { schema, new: item, old: present(old), ratcheting };
                    self.level(inner, &item, &format!("{path}[{i}]"))?;
                }
            }
            Json::Object(fields) => {
                for (name, field) in fields {
                    let old = value.old.and_then(|old| old.get(name));
                    let ratcheting = value.ratcheting.key(name);
                    let (inner, schema, path) =
                        match (level.properties.get(name), value.schema.properties.get(name)) {
                            (Some(inner), Some(schema)) => (inner, schema, child(path, name)),
                            _ => match (&level.additional, value.schema.additional.as_deref()) {
                                (Some(inner), Some(schema)) => (&**inner, schema, format!("{path}[{name}]")),
                                _ => continue,
                            },
                        };
                    let field = Checked { schema, new: field, old: present(old), ratcheting };
                    self.level(inner, &field, &path)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn rules(&mut self, level: &Level, value: &Checked<'_>, path: &str) -> Result<(), Ended> {
        for (rule, compiled) in value.schema.rules.iter().zip(&level.rules) {
            if self.budget <= 0 {
                return Err(self.out_of_budget(value, path));
            }
            self.rule(rule, compiled, value, path)?;
        }
        Ok(())
    }

    fn rule(
        &mut self,
        rule: &Rule,
        compiled: &Compiled,
        value: &Checked<'_>,
        path: &str,
    ) -> Result<(), Ended> {
        let program = match &compiled.program {
            Ok(program) => program,
            Err(why) => {
                self.error(value, path, format!("rule compile error: {why}"));
                return Ok(());
            }
        };
        let optional = rule.optional_old_self == Some(true);
        // A transition rule applies only to a value that has a former value.
        if program.uses_old_self() && value.old.is_none() && !optional {
            return Ok(());
        }
        let outcome = self.evaluate(program, value, optional)?;
        self.spend(&outcome, value, path)?;
        let name = if rule.message.is_empty() { rule.rule.trim() } else { rule.message.trim() };
        match outcome.result {
            Ok(Output::Bool(true)) => Ok(()),
            Ok(_) => self.failed(rule, compiled, value, path),
            Err(why) if why.starts_with("no such overload") => {
                let why = format!(
                    "'{why}': call arguments did not match a supported operator, function or macro signature for rule: {name}"
                );
                self.error(value, path, why);
                Ok(())
            }
            Err(why) if outcome.exceeded => {
                let why = format!(
                    "'{why}': no further validation rules will be run due to call cost exceeds limit for rule: {name}"
                );
                self.error(value, path, why);
                Err(Ended)
            }
            Err(why) => {
                self.error(value, path, format!("{why} evaluating rule: {name}"));
                Ok(())
            }
        }
    }

    /// Reports a value that does not satisfy a rule.
    fn failed(
        &mut self,
        rule: &Rule,
        compiled: &Compiled,
        value: &Checked<'_>,
        path: &str,
    ) -> Result<(), Ended> {
        let field = if compiled.field.is_empty() { path.to_owned() } else { child(path, &compiled.field) };
        let uses_old_self = compiled.program.as_ref().is_ok_and(Program::uses_old_self);
        let ratcheted = !uses_old_self && value.ratcheting.is_unchanged();
        let message = match &compiled.message {
            Some(program) => match self.message(program, rule, value)? {
                Ok(message) => message,
                Err(why) => {
                    let problem = Problem::invalid(shown_path(&field), kind(value), why);
                    self.push(problem, ratcheted);
                    return Err(Ended);
                }
            },
            None => None,
        };
        let detail = message.unwrap_or_else(|| match rule.message.as_str() {
            "" => format!("failed rule: {}", rule.rule.trim()),
            message => message.trim().to_owned(),
        });
        let shown = match value.schema.kind {
            Some(Kind::Object | Kind::Array) => None,
            _ => Some(value.new.to_string()),
        };
        let field = shown_path(&field);
        let problem = match rule.reason.as_deref() {
            Some("FieldValueForbidden") => Problem::forbidden(field, detail),
            Some("FieldValueRequired") => Problem::required(field, &detail),
            Some("FieldValueDuplicate") => Problem { field, kind: ProblemKind::Duplicate { value: shown } },
            _ => Problem::invalid(field, shown, detail),
        };
        self.push(problem, ratcheted);
        Ok(())
    }

    /// Evaluates a message; `None` if it has an error that leaves the default message. An inner `Err` is reported and ends the check.
    fn message(
        &mut self,
        program: &Program,
        rule: &Rule,
        value: &Checked<'_>,
    ) -> Result<Result<Option<String>, String>, Ended> {
        let outcome = self.evaluate(program, value, rule.optional_old_self == Some(true))?;
        if i64::try_from(outcome.cost).unwrap_or(i64::MAX) > self.budget {
            let why = "messageExpression evaluation failed due to running out of cost budget, no further validation rules \
                       will be run";
            return Ok(Err(why.to_owned()));
        }
        if outcome.exceeded {
            let source = Json::from(rule.message_expression.as_str());
            return Ok(Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {source}"
            )));
        }
        self.budget -= i64::try_from(outcome.cost).unwrap_or(i64::MAX);
        let Ok(Output::String(text)) = outcome.result else { return Ok(Ok(None)) };
        let text = text.trim();
        let usable = !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n');
        Ok(Ok(usable.then(|| text.to_owned())))
    }

    fn evaluate(&mut self, program: &Program, value: &Checked<'_>, optional: bool) -> Result<Outcome, Ended> {
        let limit = self.allowance.min(PER_CALL_LIMIT);
        let outcome = match optional {
            true => program.evaluate_optional(value.schema, value.new, value.old, limit),
            false => program.evaluate(value.schema, value.new, value.old, limit),
        };
        if outcome.exceeded && limit < PER_CALL_LIMIT {
            self.gave_up = true;
            return Err(Ended);
        }
        self.allowance = self.allowance.saturating_sub(outcome.cost);
        Ok(outcome)
    }

    fn spend(&mut self, outcome: &Outcome, value: &Checked<'_>, path: &str) -> Result<(), Ended> {
        let cost = i64::try_from(outcome.cost).unwrap_or(i64::MAX);
        if cost > self.budget {
            return Err(self.out_of_budget(value, path));
        }
        self.budget -= cost;
        Ok(())
    }

    fn out_of_budget(&mut self, value: &Checked<'_>, path: &str) -> Ended {
        let why =
            "validation failed due to running out of cost budget, no further validation rules will be run";
        self.error(value, path, why.to_owned());
        Ended
    }

    fn error(&mut self, value: &Checked<'_>, path: &str, why: String) {
        self.verdict.errors.push(Problem::invalid(shown_path(path), kind(value), why));
    }

    fn push(&mut self, problem: Problem, ratcheted: bool) {
        let list = if ratcheted { &mut self.verdict.warnings } else { &mut self.verdict.errors };
        list.push(problem);
    }
}

fn kind(value: &Checked<'_>) -> Option<String> {
    quoted(value.schema.kind_text())
}

/// A former value of null is none.
fn present(old: Option<&Json>) -> Option<&Json> {
    old.filter(|old| !old.is_null())
}

fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn shown_path(path: &str) -> String {
    if path.is_empty() { "<nil>".to_owned() } else { path.to_owned() }
}
