//! Whether a schema is structural: every field has its type outside of `allOf` and its kin, which only restrict.

use super::super::pattern::Patterns;
use super::super::props::Props;
use super::super::schema::Structural;
use super::super::{coerce, validate};
use crate::status::FieldError;

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Appends what is wrong with the schema of one version.
pub(super) fn check(props: &Props, at: &str, errors: &mut Vec<FieldError>) {
    let mut walk = Walk { patterns: Patterns::default(), errors: Vec::new() };
    walk.schema(props, Level::Root, at);
    complete(props, at, &mut walk.errors);
    errors.append(&mut walk.errors);
}

struct Walk {
    patterns: Patterns,
    errors: Vec<FieldError>,
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
        self.type_word(props, level, at);
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

    fn type_word(&mut self, props: &Props, level: Level, at: &str) {
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

    /// The fields every object has may be restricted little.
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
        // The one place where alternatives have types: numbers or text.
        let spared = |list: &[Props]| props.int_or_string && is_int_or_string(list);
        if !spared(&props.any_of) {
            self.nested_list(&props.any_of, "anyOf", at);
        }
        for (i, inner) in props.all_of.iter().enumerate() {
            let at = format!("{at}.allOf[{i}]");
            if i == 0 && spared(&inner.any_of) {
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

    fn nested_list(&mut self, list: &[Props], word: &str, at: &str) {
        for (i, inner) in list.iter().enumerate() {
            self.nested(inner, &format!("{at}.{word}[{i}]"));
        }
    }

    /// A schema under a junctor: it may restrict values, and say nothing else.
    fn nested(&mut self, props: &Props, at: &str) {
        self.pattern(props, at);
        for (word, list) in [("anyOf", &props.any_of), ("allOf", &props.all_of), ("oneOf", &props.one_of)] {
            self.nested_list(list, word, at);
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
        for (word, used, must) in [
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
                self.errors.push(FieldError::forbidden(format!("{at}.{word}"), why));
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

    /// A default must itself be what the schema allows.
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
            coerce::fill(&schema, object);
        }
        let mut found = Vec::new();
        validate::check(&schema, &value, "", &mut found);
        self.errors.extend(found.into_iter().map(|error| error.below(&field)));
    }
}

fn is_int_or_string(list: &[Props]) -> bool {
    list.len() == 2 && list[0].r#type == "integer" && list[1].r#type == "string"
}

/// Fields that junctors speak of must be specified outside of them too.
fn complete(structure: &Props, at: &str, errors: &mut Vec<FieldError>) {
    for (word, inner) in junctors(structure) {
        check_named(structure, inner, at, &format!("{at}.{word}"), errors);
    }
    for (name, inner) in &structure.properties {
        complete(inner, &format!("{at}.properties[{name}]"), errors);
    }
    if let Some(inner) = structure.items() {
        complete(inner, &format!("{at}.items"), errors);
    }
    if let Some(inner) = structure.additional() {
        complete(inner, &format!("{at}.additionalProperties"), errors);
    }
}

/// `said_at` is where the restriction stands, `at` where its subject should.
fn check_named(structure: &Props, said: &Props, at: &str, said_at: &str, errors: &mut Vec<FieldError>) {
    for (name, inner) in &said.properties {
        let (at, said_at) = (format!("{at}.properties[{name}]"), format!("{said_at}.properties[{name}]"));
        match structure.properties.get(name).or(structure.additional()) {
            Some(known) => check_named(known, inner, &at, &said_at, errors),
            None => errors.push(FieldError::required(at, &format!("because it is defined in {said_at}"))),
        }
    }
    if let Some(inner) = said.items() {
        let (at, said_at) = (format!("{at}.items"), format!("{said_at}.items"));
        match structure.items() {
            Some(known) => check_named(known, inner, &at, &said_at, errors),
            None => errors.push(FieldError::required(at, &format!("because it is defined in {said_at}"))),
        }
    }
    for (word, inner) in junctors(said) {
        check_named(structure, inner, at, &format!("{said_at}.{word}"), errors);
    }
}

fn junctors(props: &Props) -> impl Iterator<Item = (String, &Props)> {
    let lists = [("allOf", &props.all_of), ("anyOf", &props.any_of), ("oneOf", &props.one_of)];
    let lists = lists.into_iter().flat_map(|(word, list)| {
        list.iter().enumerate().map(move |(i, inner)| (format!("{word}[{i}]"), inner))
    });
    lists.chain(props.not.as_deref().map(|inner| ("not".to_owned(), inner)))
}
