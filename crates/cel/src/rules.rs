//! `x-kubernetes-validations`: checks of the rules when a CRD is written, and of objects when they are.

mod correlation;
mod defaults;
mod definition;
mod field_path;
mod validator;

use serde_json::Value as Json;

pub use defaults::check_defaults;
pub use definition::check_rules;
pub use validator::{Validator, Verdict};

/// A problem of one field, in the words of kube-apiserver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The path of the field; `<nil>` is the object as a whole.
    pub field: String,
    /// The kind of the problem.
    pub kind: ProblemKind,
}

/// The kinds of problems.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The value is not valid.
    Invalid {
        /// The value as JSON, unless it is left out.
        value: Option<String>,
        /// Why.
        detail: String,
    },
    /// A value is missing.
    Required {
        /// Why.
        detail: String,
    },
    /// The value must not be set.
    Forbidden {
        /// Why.
        detail: String,
    },
    /// The value occurs twice.
    Duplicate {
        /// The value as JSON, unless it is left out.
        value: Option<String>,
    },
    /// The value is not one of a few.
    NotSupported {
        /// The value.
        value: String,
        /// The values that are supported.
        supported: &'static [&'static str],
    },
    /// The rules cannot be checked.
    Internal {
        /// Why.
        detail: String,
    },
}

impl Problem {
    fn invalid(field: impl Into<String>, value: Option<String>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), kind: ProblemKind::Invalid { value, detail: detail.into() } }
    }

    fn required(field: impl Into<String>, detail: &str) -> Self {
        Self { field: field.into(), kind: ProblemKind::Required { detail: detail.to_owned() } }
    }

    fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), kind: ProblemKind::Forbidden { detail: detail.into() } }
    }

    /// Returns the message without the field, such as `Invalid value: "x": must be shorter`.
    #[must_use]
    pub fn message(&self) -> String {
        let shown =
            |value: &Option<String>| value.as_ref().map(|value| format!(": {value}")).unwrap_or_default();
        match &self.kind {
            ProblemKind::Invalid { value, detail } => format!("Invalid value{}: {detail}", shown(value)),
            ProblemKind::Required { detail } => format!("Required value: {detail}"),
            ProblemKind::Forbidden { detail } => format!("Forbidden: {detail}"),
            ProblemKind::Duplicate { value } => format!("Duplicate value{}", shown(value)),
            ProblemKind::NotSupported { value, supported } => {
                let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
                format!("Unsupported value: {value:?}: supported values: {}", supported.join(", "))
            }
            ProblemKind::Internal { detail } => format!("Internal error: {detail}"),
        }
    }

    /// Returns the machine-readable reason, such as `FieldValueInvalid`.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self.kind {
            ProblemKind::Invalid { .. } => "FieldValueInvalid",
            ProblemKind::Required { .. } => "FieldValueRequired",
            ProblemKind::Forbidden { .. } => "FieldValueForbidden",
            ProblemKind::Duplicate { .. } => "FieldValueDuplicate",
            ProblemKind::NotSupported { .. } => "FieldValueNotSupported",
            ProblemKind::Internal { .. } => "InternalError",
        }
    }
}

/// Returns a string as JSON.
fn quoted(text: &str) -> Option<String> {
    Some(Json::from(text).to_string())
}
