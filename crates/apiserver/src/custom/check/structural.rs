//! Checks that a schema is structural: every field has a type, and the schemas in `allOf`, `anyOf`, `oneOf` and `not` only restrict
//! values.

use super::super::path::Path;
use super::super::pattern::Patterns;
use super::super::props::Props;
use super::super::schema::Structural;
use super::super::{coerce, validate};
use crate::budget::Budget;
use crate::server::OBJECT_BYTES;
use crate::status::{FieldError, FieldErrors};

/// The level of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Appends the errors of the schema of one version.
pub(super) fn check(props: &Props, at: &str, errors: &mut FieldErrors) {
    let mut walk = Walk { patterns: Patterns::default(), errors: FieldErrors::new() };
    walk.schema(props, Level::Root, at);
    check_complete(props, at, &mut walk.errors);
    errors.extend(walk.errors);
}

struct Walk {
    patterns: Patterns,
    errors: FieldErrors,
}

impl Walk {
    fn schema(&mut self, props: &Props, level: Level, at: &str) {
        if props.r#type == "array" && props.items.is_none() {
            self.errors.push(FieldError::required(format!("{at}.items"), "must be specified"));
        }
        if let Some(items) = props.items() {
            self.schema(items, Level::Item, &format!("{at}.items"));
        }
        for (name, inner) in &props.properties {
            self.schema(inner, Level::Field, &format!("{at}.properties[{name}]"));
        }
        if props.additional_properties.is_some() {
            let field = format!("{at}.additionalProperties");
            if level == Level::Root {
                self.errors.push(FieldError::forbidden(&field, "must not be used at the root"));
            }
            if props.embedded {
                let why = "must not be used if x-kubernetes-embedded-resource is set";
                self.errors.push(FieldError::forbidden(&field, why));
            }
            if let Some(inner) = props.additional() {
                self.schema(inner, Level::Field, &field);
            }
        }
        self.extensions(props, at);
        self.type_keyword(props, level, at);
        self.identity(props, level, at);
        self.restrictions(props, at);
        self.default(props, at);
    }

    fn extensions(&mut self, props: &Props, at: &str) {
        let why = "must be false if x-kubernetes-int-or-string is true";
        if props.int_or_string && props.preserves() {
            let field = format!("{at}.x-kubernetes-preserve-unknown-fields");
            self.errors.push(FieldError::invalid(field, true, why));
        }
        if props.int_or_string && props.embedded {
            self.errors.push(FieldError::invalid(format!("{at}.x-kubernetes-embedded-resource"), true, why));
        }
        if props.embedded && !props.preserves() && props.properties.is_empty() {
            let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                       x-kubernetes-preserve-unknown-fields";
            self.errors.push(FieldError::required(format!("{at}.properties"), why));
        }
    }

    fn type_keyword(&mut self, props: &Props, level: Level, at: &str) {
        let field = format!("{at}.type");
        let kind = props.r#type.as_str();
        if props.embedded && kind != "object" {
            let why = "must be object if x-kubernetes-embedded-resource is true";
            self.errors.push(match kind {
                "" => FieldError::required(field, why),
                other => FieldError::invalid(field, other, why),
            });
        } else if kind.is_empty() && !props.int_or_string && !props.preserves() {
            let why = match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            };
            self.errors.push(FieldError::required(field, why));
        } else if level == Level::Root && !kind.is_empty() && kind != "object" {
            self.errors.push(FieldError::invalid(field, kind, "must be object at the root"));
        }
    }

    /// Checks the schemas of `kind`, `apiVersion` and `metadata`.
    fn identity(&mut self, props: &Props, level: Level, at: &str) {
        let is_object = level == Level::Root || props.embedded;
        for name in ["kind", "apiVersion"] {
            if let Some(inner) = props.properties.get(name).filter(|p| is_object && p.r#type != "string") {
                let field = format!("{at}.properties[{name}].type");
                self.errors.push(FieldError::invalid(field, &inner.r#type, "must be string"));
            }
        }
        let Some(metadata) = props.properties.get("metadata") else { return };
        let field = format!("{at}.properties[metadata]");
        if is_object && metadata.r#type != "object" {
            self.errors.push(FieldError::invalid(
                format!("{field}.type"),
                &metadata.r#type,
                "must be object",
            ));
        }
        let names_only = metadata.properties.keys().all(|k| k == "name" || k == "generateName");
        let bare = names_only && !metadata.preserves() && metadata.additional_properties.is_none();
        if level == Level::Root && !bare {
            let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
            self.errors.push(FieldError::forbidden(field, why));
        }
    }

    fn restrictions(&mut self, props: &Props, at: &str) {
        self.pattern(props, at);
        // Only `x-kubernetes-int-or-string` allows alternatives with types: integer and string.
        let is_allowed = |list: &[Props]| props.int_or_string && is_int_or_string(list);
        if !is_allowed(&props.any_of) {
            self.nested_list(&props.any_of, "anyOf", at);
        }
        for (i, inner) in props.all_of.iter().enumerate() {
            let at = format!("{at}.allOf[{i}]");
            if i == 0 && is_allowed(&inner.any_of) {
                let without = Props { any_of: Vec::new(), ..inner.clone() };
                self.nested(&without, &at);
            } else {
                self.nested(inner, &at);
            }
        }
        self.nested_list(&props.one_of, "oneOf", at);
        if let Some(inner) = &props.not {
            self.nested(inner, &format!("{at}.not"));
        }
    }

    fn nested_list(&mut self, list: &[Props], keyword: &str, at: &str) {
        for (i, inner) in list.iter().enumerate() {
            self.nested(inner, &format!("{at}.{keyword}[{i}]"));
        }
    }

    /// Checks a schema inside `allOf`, `anyOf`, `oneOf` or `not`, which may only restrict values.
    fn nested(&mut self, props: &Props, at: &str) {
        self.pattern(props, at);
        for (keyword, list) in [("anyOf", &props.any_of), ("allOf", &props.all_of), ("oneOf", &props.one_of)]
        {
            self.nested_list(list, keyword, at);
        }
        if let Some(inner) = &props.not {
            self.nested(inner, &format!("{at}.not"));
        }
        if let Some(items) = props.items() {
            self.nested(items, &format!("{at}.items"));
        }
        for (name, inner) in &props.properties {
            self.nested(inner, &format!("{at}.properties[{name}]"));
        }
        for (keyword, used, must) in [
            ("type", !props.r#type.is_empty(), "empty"),
            ("additionalProperties", props.additional_properties.is_some(), "undefined"),
            ("default", props.default.is_some(), "undefined"),
            ("title", !props.title.is_empty(), "empty"),
            ("description", !props.description.is_empty(), "empty"),
            ("nullable", props.nullable, "false"),
            ("x-kubernetes-preserve-unknown-fields", props.preserves(), "false"),
            ("x-kubernetes-embedded-resource", props.embedded, "false"),
            ("x-kubernetes-int-or-string", props.int_or_string, "false"),
            ("x-kubernetes-list-map-keys", !props.list_map_keys.is_empty(), "empty"),
            ("x-kubernetes-list-type", props.list_type.is_some(), "undefined"),
            ("x-kubernetes-map-type", props.map_type.is_some(), "undefined"),
            ("x-kubernetes-validations", !props.rules.is_empty(), "empty"),
        ] {
            if used {
                let why = format!("must be {must} to be structural");
                self.errors.push(FieldError::forbidden(format!("{at}.{keyword}"), why));
            }
        }
        if props.properties.contains_key("metadata") {
            let why = "must not be specified in a nested context";
            self.errors.push(FieldError::forbidden(format!("{at}.properties[metadata]"), why));
        }
    }

    fn pattern(&mut self, props: &Props, at: &str) {
        if let Some(Err(error)) = (!props.pattern.is_empty()).then(|| self.patterns.get(&props.pattern)) {
            let why = format!("must be a valid regular expression, but isn't: {error}");
            self.errors.push(FieldError::invalid(format!("{at}.pattern"), &props.pattern, why));
        }
    }

    /// Checks that a default satisfies its schema.
    fn default(&mut self, props: &Props, at: &str) {
        let Some(default) = &props.default else { return };
        let Ok(schema) = Structural::compile(props, &mut self.patterns) else { return };
        let field = format!("{at}.default");
        let mut value = default.clone();
        if let Some(object) = value.as_object_mut() {
            if let Some(unknown) = coerce::prune(&schema, object).first() {
                let why = format!("must not have unknown fields: {unknown}");
                self.errors.push(FieldError::invalid(&field, default, why));
            }
            if coerce::apply_defaults(&schema, object, &mut Budget::new(OBJECT_BYTES)).is_err() {
                self.errors.push(FieldError::invalid(&field, "", "must not exceed the size of an object"));
                return;
            }
        }
        let mut found = FieldErrors::new();
        validate::check(&schema, &value, Path::ROOT, &mut found);
        self.errors.extend(found.into_iter().map(|error| error.below(&field)));
    }
}

fn is_int_or_string(list: &[Props]) -> bool {
    list.len() == 2 && list[0].r#type == "integer" && list[1].r#type == "string"
}

/// Checks that fields inside `allOf`, `anyOf`, `oneOf` and `not` are specified outside of them too.
fn check_complete(structure: &Props, at: &str, errors: &mut FieldErrors) {
    for (keyword, inner) in combined(structure) {
        check_specified(structure, inner, at, &format!("{at}.{keyword}"), errors);
    }
    for (name, inner) in &structure.properties {
        check_complete(inner, &format!("{at}.properties[{name}]"), errors);
    }
    if let Some(inner) = structure.items() {
        check_complete(inner, &format!("{at}.items"), errors);
    }
    if let Some(inner) = structure.additional() {
        check_complete(inner, &format!("{at}.additionalProperties"), errors);
    }
}

/// Checks that the fields of a restriction at `restriction_at` are specified at `at`.
fn check_specified(
    structure: &Props,
    restriction: &Props,
    at: &str,
    restriction_at: &str,
    errors: &mut FieldErrors,
) {
    for (name, inner) in &restriction.properties {
        let (at, restriction_at) =
            (format!("{at}.properties[{name}]"), format!("{restriction_at}.properties[{name}]"));
        match structure.properties.get(name).or(structure.additional()) {
            Some(known) => check_specified(known, inner, &at, &restriction_at, errors),
            None => {
                errors.push(FieldError::required(at, &format!("because it is defined in {restriction_at}")))
            }
        }
    }
    if let Some(inner) = restriction.items() {
        let (at, restriction_at) = (format!("{at}.items"), format!("{restriction_at}.items"));
        match structure.items() {
            Some(known) => check_specified(known, inner, &at, &restriction_at, errors),
            None => {
                errors.push(FieldError::required(at, &format!("because it is defined in {restriction_at}")))
            }
        }
    }
    for (keyword, inner) in combined(restriction) {
        check_specified(structure, inner, at, &format!("{restriction_at}.{keyword}"), errors);
    }
}

/// The schemas in `allOf`, `anyOf`, `oneOf` and `not`, with their paths.
fn combined(props: &Props) -> impl Iterator<Item = (String, &Props)> {
    let lists = [("allOf", &props.all_of), ("anyOf", &props.any_of), ("oneOf", &props.one_of)];
    let lists = lists.into_iter().flat_map(|(keyword, list)| {
        list.iter().enumerate().map(move |(i, inner)| (format!("{keyword}[{i}]"), inner))
    });
    lists.chain(props.not.as_deref().map(|inner| ("not".to_owned(), inner)))
}
