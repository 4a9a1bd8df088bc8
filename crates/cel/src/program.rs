//! Expressions that are compiled once and evaluated often.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::check::{Reference, check, check_literals};
use crate::declared::Declared;
use crate::estimate::estimate;
use crate::eval::evaluate;
use crate::plan::{Plan, plan};
use crate::schema::Schema;
use crate::syntax::parse;
use crate::syntax::source::Issues;
use crate::types::Type;
use crate::value::{Failure, Value, to_value};

/// The name of the type of `self`, and the start of the names of the types of its fields.
const SELF_TYPE: &str = "selfType";

/// The variables of expressions: `self` and `oldSelf`, both of the type of one schema.
#[derive(Debug, Clone)]
pub struct Environment {
    declared: Arc<Declared>,
    optional_old_self: bool,
}

/// Why an expression has no program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompileError {
    /// The syntax or a type is wrong. The text has one error a line, with an excerpt of the expression.
    Invalid(String),
    /// A constant cannot be computed.
    Program(String),
}

/// A compiled expression.
#[derive(Debug)]
pub struct Program {
    plan: Plan,
    output: Type,
    uses_old_self: bool,
    estimated: (u64, u64),
}

/// The result of one evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The value, or why there is none.
    pub result: Result<Output, String>,
    /// The cost in the units of Kubernetes.
    pub cost: u64,
    /// Whether the evaluation ended because it cost more than the limit.
    pub exceeded: bool,
}

/// The value of an expression.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Output {
    /// `true` or `false`.
    Bool(bool),
    /// A string.
    String(String),
    /// Any other value, as a literal of the language.
    Other(String),
}

impl Environment {
    /// Returns the environment of expressions about values of a schema, or `None` if expressions cannot access such values.
    #[must_use]
    pub fn new(schema: &Schema) -> Option<Self> {
        Some(Self { declared: Arc::new(Declared::of(schema)?), optional_old_self: false })
    }

    /// Makes `oldSelf` optional: it has no value for an object that is created.
    #[must_use]
    pub fn with_optional_old_self(self, optional: bool) -> Self {
        Self { optional_old_self: optional, ..self }
    }

    /// The bytes of the smallest JSON of a value.
    pub(crate) fn min_size(&self) -> i64 {
        self.declared.min_size
    }

    /// Compiles an expression.
    ///
    /// # Errors
    ///
    /// The expression is invalid, or longer or deeper than the limits of Kubernetes.
    pub fn compile(&self, expression: &str) -> Result<Program, CompileError> {
        let mut issues = Issues::default();
        let invalid = |issues: Issues| CompileError::Invalid(issues.render(expression));
        let Some(parsed) = parse(expression, &mut issues) else { return Err(invalid(issues)) };
        let current = self.declared.static_type(SELF_TYPE);
        let old = if self.optional_old_self { Type::optional(current.clone()) } else { current.clone() };
        let variables = [("self", current), ("oldSelf", old)];
        let checked = check(&parsed.root, &parsed.positions, &variables, &mut issues);
        if issues.is_empty() {
            check_literals(&parsed.root, &parsed.positions, &checked, &mut issues);
        }
        if !issues.is_empty() {
            return Err(invalid(issues));
        }
        let plan = plan(&parsed.root, &checked, &["self", "oldSelf"]);
        let plan = plan.map_err(|why| CompileError::Program(why.to_string()))?;
        let is_old_self =
            |reference: &Reference| matches!(reference, Reference::Variable(name) if name == "oldSelf");
        let uses_old_self = checked.references.values().any(is_old_self);
        let estimated = estimate(&parsed.root, &checked, &self.declared);
        Ok(Program { plan, output: checked.types[parsed.root.id].clone(), uses_old_self, estimated })
    }
}

impl Program {
    /// Returns whether the expression refers to `oldSelf`.
    #[must_use]
    pub fn uses_old_self(&self) -> bool {
        self.uses_old_self
    }

    /// Returns the least and the most that an evaluation costs for values that the schema allows.
    #[must_use]
    pub fn estimated_cost(&self) -> (u64, u64) {
        self.estimated
    }

    /// Returns the name of the type of the value, such as `bool` or `list(int)`.
    #[must_use]
    pub fn output_type(&self) -> String {
        self.output.to_string()
    }

    /// Evaluates the expression for a value of the schema, with its former value if it has one.
    #[must_use]
    pub fn evaluate(&self, schema: &Schema, current: &Json, old: Option<&Json>, limit: u64) -> Outcome {
        let old = old.map(|old| to_value(old, schema));
        self.run(vec![Some(to_value(current, schema)), old], limit)
    }

    /// Like [`Program::evaluate`], for an expression with an optional `oldSelf`.
    #[must_use]
    pub fn evaluate_optional(
        &self,
        schema: &Schema,
        current: &Json,
        old: Option<&Json>,
        limit: u64,
    ) -> Outcome {
        let old = match old {
            Some(old) => to_value(old, schema).map(Value::some),
            None => Ok(Value::Optional(None)),
        };
        self.run(vec![Some(to_value(current, schema)), Some(old)], limit)
    }

    fn run<'a>(&self, variables: Vec<Option<Result<Value<'a>, Failure>>>, limit: u64) -> Outcome {
        let (result, cost) = evaluate(&self.plan, variables, limit);
        let exceeded = matches!(result, Err(Failure::Exceeded));
        let result = match result {
            Ok(Value::Bool(b)) => Ok(Output::Bool(b)),
            Ok(Value::String(text)) => Ok(Output::String(text.to_string())),
            Ok(other) => Ok(Output::Other(other.to_string())),
            Err(Failure::Error(why)) => Err(why.to_string()),
            Err(Failure::Exceeded) => Err("operation cancelled: actual cost limit exceeded".to_owned()),
        };
        Outcome { result, cost, exceeded }
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) => write!(f, "compilation failed: {why}"),
            Self::Program(why) => write!(f, "program instantiation failed: {why}"),
        }
    }
}

impl std::error::Error for CompileError {}
