//! Validation of the versions of a CRD: their names, schemas, columns, subresources and selectable fields.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::definition::{Scale, Spec, Version};
use super::super::json_path::{JsonPath, pointer};
use super::super::props::Props;
use super::{keywords, structural};
use crate::registry::label_1035;
use crate::status::{FieldError, FieldErrors};

/// The most selectable fields of a version.
const MAX_SELECTABLE: u64 = 8;

/// Returns the errors of all versions. `raw` is the list as JSON, for error messages.
pub(super) fn check(spec: &Spec, raw: Option<&Value>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (i, version) in spec.versions.iter().enumerate() {
        let at = format!("spec.versions[{i}]");
        let faults = label_1035(&version.name);
        if !faults.is_empty() {
            errors.push(FieldError::invalid(format!("{at}.name"), &version.name, faults.join(",")));
        }
        check_version(version, &Paths::of(i, raw), &mut errors);
    }
    let names: BTreeSet<&str> = spec.versions.iter().map(|v| v.name.as_str()).collect();
    if names.len() < spec.versions.len() {
        errors.push(FieldError::invalid("spec.versions", raw, "must contain unique version names"));
    }
    if spec.versions.iter().filter(|v| v.storage).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", raw, why));
    }
    errors
}

/// The paths of the parts of a version in error messages. A part that is the same in all versions is reported once, at the path of the
/// CRD as a whole.
struct Paths {
    version: String,
    schema: Option<String>,
    subresources: Option<String>,
    columns: Option<String>,
    /// Field name of a column's path in errors: `JSONPath` if the columns are shared, otherwise `jsonPath`.
    column_path: &'static str,
    selectable: Option<String>,
}

impl Paths {
    fn of(i: usize, raw: Option<&Value>) -> Self {
        let version = format!("spec.versions[{i}]");
        let all = raw.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let is_shared = |field: &str| {
            let first = all.first().map_or(&Value::Null, |version| &version[field]);
            !first.is_null() && all.iter().all(|version| version[field] == *first)
        };
        let path = |field: &str, shared: &str| match (is_shared(field), i) {
            (true, 0) => Some(shared.to_owned()),
            (true, _) => None,
            (false, _) => Some(format!("{version}.{field}")),
        };
        let column_path = if is_shared("additionalPrinterColumns") { "JSONPath" } else { "jsonPath" };
        Self {
            schema: path("schema", "spec.validation").map(|at| format!("{at}.openAPIV3Schema")),
            subresources: path("subresources", "spec.subresources"),
            columns: path("additionalPrinterColumns", "spec.additionalPrinterColumns"),
            column_path,
            selectable: path("selectableFields", "spec.selectableFields"),
            version,
        }
    }
}

fn check_version(version: &Version, paths: &Paths, errors: &mut FieldErrors) {
    let at = &paths.version;
    let schema_at = paths.schema.as_deref().unwrap_or_default();
    let props = match version.props() {
        None => {
            errors.push(FieldError::required(format!("{at}.schema.openAPIV3Schema"), ""));
            None
        }
        Some(Err(error)) => {
            errors.push(FieldError::invalid(schema_at, "", error.to_string()));
            None
        }
        Some(Ok(props)) => Some(props),
    };
    if let (Some(props), Some(at)) = (&props, &paths.schema) {
        let before = errors.len();
        keywords::check(props, at, errors);
        // The structural check requires supported keywords.
        if errors.len() == before {
            structural::check(props, at, errors);
        }
        // Rules are compiled against a valid schema.
        if errors.len() == before
            && let Some(schema) = version.schema()
        {
            let problems = kube_informer_cel::check_rules(schema, at);
            errors.extend(problems.iter().map(FieldError::of_rule));
            if problems.is_empty() {
                errors.extend(kube_informer_cel::check_defaults(schema, at).iter().map(FieldError::of_rule));
            }
        }
    }
    if let (Some(props), Some(at)) = (&props, &paths.selectable) {
        check_selectable(version, props, at, errors);
    }
    if let Some(warning) = version.deprecation_warning.as_deref() {
        check_warning(version, warning, &format!("{at}.deprecationWarning"), errors);
    }
    if let (Some(scale), Some(at)) = (version.scale(), &paths.subresources) {
        check_scale(scale, &format!("{at}.scale"), errors);
    }
    if let Some(at) = &paths.columns {
        check_columns(version, at, paths.column_path, errors);
    }
}

fn check_warning(version: &Version, warning: &str, at: &str, errors: &mut FieldErrors) {
    if !version.deprecated {
        errors.push(FieldError::invalid(at, warning, "can only be set for deprecated versions"));
    }
    if warning.is_empty() || warning.len() > 256 || warning.contains(char::is_control) {
        let why = "must be between 1 and 256 printable characters on one line";
        errors.push(FieldError::invalid(at, warning, why));
    }
}

fn check_scale(scale: &Scale, at: &str, errors: &mut FieldErrors) {
    let mut path = |field: &str, path: &str, roots: &[&str], why: &str| {
        let field = format!("{at}.{field}");
        if path.is_empty() {
            errors.push(FieldError::required(field, ""));
        } else if !path.starts_with('.') {
            errors.push(FieldError::invalid(field, path, "must be a simple json path starting with ."));
        } else if pointer(path).is_none() {
            errors.push(FieldError::invalid(field, path, "must be a json path in the dot notation"));
        } else if !roots.iter().any(|root| path.starts_with(root)) {
            errors.push(FieldError::invalid(field, path, why));
        }
    };
    path("specReplicasPath", &scale.spec_replicas_path, &[".spec."], "should be a json path under .spec");
    path(
        "statusReplicasPath",
        &scale.status_replicas_path,
        &[".status."],
        "should be a json path under .status",
    );
    if !scale.label_selector_path.is_empty() {
        let why = "should be a json path under either .status or .spec";
        path("labelSelectorPath", &scale.label_selector_path, &[".status.", ".spec."], why);
    }
}

fn check_columns(version: &Version, at: &str, path: &str, errors: &mut FieldErrors) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    for (i, column) in version.additional_printer_columns.iter().enumerate() {
        let at = format!("{at}[{i}]");
        if column.name.is_empty() {
            errors.push(FieldError::required(format!("{at}.name"), ""));
        }
        match column.r#type.as_str() {
            "" => {
                let why = format!("must be one of {}", TYPES.join(","));
                errors.push(FieldError::required(format!("{at}.type"), &why));
            }
            known if TYPES.contains(&known) => {}
            other => {
                let why = format!("must be one of {}", TYPES.join(","));
                errors.push(FieldError::invalid(format!("{at}.type"), other, why));
            }
        }
        if !column.format.is_empty() && !FORMATS.contains(&column.format.as_str()) {
            let why = format!("must be one of {}", FORMATS.join(","));
            errors.push(FieldError::invalid(format!("{at}.format"), &column.format, why));
        }
        if column.json_path.is_empty() {
            errors.push(FieldError::required(format!("{at}.{path}"), ""));
        } else if !column.json_path.starts_with('.') {
            let why = "must be a simple json path starting with .";
            errors.push(FieldError::invalid(format!("{at}.{path}"), &column.json_path, why));
        } else if let Err(error) = JsonPath::parse(&column.json_path) {
            let why = format!("must be a JSON path that this server supports: {error}");
            errors.push(FieldError::invalid(format!("{at}.{path}"), &column.json_path, why));
        }
    }
}

fn check_selectable(version: &Version, props: &Props, at: &str, errors: &mut FieldErrors) {
    let fields = &version.selectable_fields;
    if fields.len() as u64 > MAX_SELECTABLE {
        errors.push(FieldError::too_many(at, fields.len() as u64, MAX_SELECTABLE));
    }
    let mut seen = BTreeSet::new();
    for (i, field) in fields.iter().enumerate() {
        let at = format!("{at}[{i}].jsonPath");
        let path = field.json_path.as_str();
        if path.is_empty() {
            errors.push(FieldError::required(at, ""));
        } else if !seen.insert(path) {
            errors.push(FieldError::duplicate(at, path));
        } else if path.starts_with(".metadata.") || path == ".metadata" {
            errors.push(FieldError::invalid(at, path, "must not point to fields in metadata"));
        } else {
            match selected(props, path).map(|p| p.r#type.as_str()) {
                None => {
                    let why = "is an invalid path: does not refer to a valid field";
                    errors.push(FieldError::invalid(at, path, why));
                }
                Some("string" | "boolean" | "integer") => {}
                Some(_) => {
                    let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                               formats are allowed.";
                    errors.push(FieldError::invalid(at, path, why));
                }
            }
        }
    }
}

fn selected<'p>(props: &'p Props, path: &str) -> Option<&'p Props> {
    pointer(path)?.split('/').skip(1).try_fold(props, |props, name| props.properties.get(name))
}
