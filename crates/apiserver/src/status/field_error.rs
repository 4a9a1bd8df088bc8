//! The error of one field, with the messages that clients match on.

use kube_informer_cel::Problem;
use serde::Serialize;
use serde_json::Value;

use super::Cause;

/// The error of one field. A 422 response has one or more.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FieldError {
    field: String,
    reason: &'static str,
    /// Starts with the kind of fault: `Invalid value: …`.
    message: String,
}

impl FieldError {
    fn new(field: impl Into<String>, reason: &'static str, message: String) -> Self {
        Self { field: field.into(), reason, message }
    }

    /// `value` is printed as JSON, as kube-apiserver does for strings and numbers.
    pub(crate) fn invalid(field: impl Into<String>, value: impl Serialize, why: impl AsRef<str>) -> Self {
        let value = serde_json::to_string(&value).unwrap_or_default();
        Self::new(field, "FieldValueInvalid", format!("Invalid value: {value}: {}", why.as_ref()))
    }

    pub(crate) fn required(field: impl Into<String>, why: &str) -> Self {
        let message =
            if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self::new(field, "FieldValueRequired", message)
    }

    pub(crate) fn forbidden(field: impl Into<String>, why: impl AsRef<str>) -> Self {
        Self::new(field, "FieldValueForbidden", format!("Forbidden: {}", why.as_ref()))
    }

    pub(crate) fn not_supported(field: impl Into<String>, value: &str, supported: &[&str]) -> Self {
        let supported = supported.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(", ");
        Self::new(
            field,
            "FieldValueNotSupported",
            format!("Unsupported value: {value:?}: supported values: {supported}"),
        )
    }

    /// A value of the wrong type; `found` is its type.
    pub(crate) fn wrong_type(field: impl Into<String>, found: &str, why: &str) -> Self {
        Self::new(field, "FieldValueTypeInvalid", format!("Invalid value: {found:?}: {why}"))
    }

    /// A value that is not among those a schema allows.
    pub(crate) fn not_among(field: impl Into<String>, value: &Value, allowed: &[Value]) -> Self {
        let quoted = |v: &Value| format!("{:?}", v.as_str().map_or_else(|| v.to_string(), str::to_owned));
        let allowed = allowed.iter().map(quoted).collect::<Vec<_>>().join(", ");
        let message = format!("Unsupported value: {value}: supported values: {allowed}");
        Self::new(field, "FieldValueNotSupported", message)
    }

    pub(crate) fn too_many(field: impl Into<String>, found: u64, limit: u64) -> Self {
        let items = if limit == 1 { "item" } else { "items" };
        Self::new(field, "FieldValueTooMany", format!("Too many: {found}: must have at most {limit} {items}"))
    }

    /// A duplicate list element, by its JSON.
    pub(crate) fn duplicate_json(field: impl Into<String>, json: &str) -> Self {
        Self::new(field, "FieldValueDuplicate", format!("Duplicate value: {json}"))
    }

    /// The same error for a value below `prefix`.
    pub(crate) fn below(self, prefix: &str) -> Self {
        let field = match self.field.as_str() {
            "" => prefix.to_owned(),
            own if own.starts_with('[') => format!("{prefix}{own}"),
            own => format!("{prefix}.{own}"),
        };
        // Without a name of its own the value is just "in body".
        Self { field, message: self.message.replace(":  in body", ": in body"), ..self }
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: &str) -> Self {
        Self::new(field, "FieldValueDuplicate", format!("Duplicate value: {value:?}"))
    }

    /// A reference to something that does not exist.
    pub(crate) fn not_found(field: impl Into<String>, value: &str) -> Self {
        Self::new(field, "FieldValueNotFound", format!("Not found: {value:?}"))
    }

    pub(crate) fn too_long(field: impl Into<String>, limit: usize) -> Self {
        Self::new(field, "FieldValueTooLong", format!("Too long: may not be more than {limit} bytes"))
    }

    /// The error that a CEL rule, or the check of one, found.
    pub(crate) fn of_rule(problem: &Problem) -> Self {
        Self::new(problem.field.as_str(), problem.reason(), problem.message())
    }

    /// The note that the rules of an object with other errors were not evaluated.
    pub(crate) fn rules_not_checked() -> Self {
        let why = "some validation rules were not checked because the object was invalid; correct the existing errors to complete \
                   validation";
        Self::invalid("<nil>", (), why)
    }

    /// Returns whether CEL rules are not evaluated for an object with this error: they rely on types, bounds and required fields.
    pub(crate) fn blocks_rules(&self) -> bool {
        let blocking = [
            "FieldValueNotSupported",
            "FieldValueRequired",
            "FieldValueTooLong",
            "FieldValueTooMany",
            "FieldValueTypeInvalid",
        ];
        blocking.contains(&self.reason)
    }

    pub(super) fn cause(&self) -> Cause {
        Cause { reason: self.reason, message: self.message.clone(), field: self.field.clone() }
    }

    /// Bytes of the text, about.
    pub(super) fn len(&self) -> usize {
        self.field.len() + self.message.len()
    }

    /// The field and its error.
    pub(crate) fn text(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }
}
