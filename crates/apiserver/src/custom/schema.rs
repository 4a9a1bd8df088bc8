//! Structural schemas, compiled once when a CRD is installed.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Number, Value};

use super::allowed::Allowed;
use super::pattern::{PatternError, Patterns};
use super::props::{Props, SchemaOrBool};
use crate::schema::ListKind;

/// The types of JSON Schema, except `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonType {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// A compiled schema: the structure of a value, and the checks it must satisfy.
#[derive(Debug, Default)]
pub(crate) struct Structural {
    pub(super) kind: Option<JsonType>,
    pub(super) nullable: bool,
    pub(super) int_or_string: bool,
    /// Fields that are not specified are not pruned.
    pub(super) preserve: bool,
    /// The value is an object with its own type and metadata.
    pub(super) embedded: bool,
    pub(super) default: Option<Value>,
    pub(super) properties: BTreeMap<String, Structural>,
    pub(super) additional: Additional,
    pub(super) items: Option<Box<Structural>>,
    pub(super) list: ListKind,
    /// Server-side apply owns the value as a whole.
    pub(super) atomic: bool,
    pub(super) checks: Checks,
}

/// `additionalProperties`.
#[derive(Debug, Default)]
pub(super) enum Additional {
    /// They are pruned, unless unknown fields are preserved.
    #[default]
    None,
    /// They may have any value.
    Any,
    /// They have this schema.
    Schema(Box<Structural>),
}

/// The checks of a value beyond its structure.
#[derive(Debug, Default)]
pub(super) struct Checks {
    pub(super) required: Vec<String>,
    pub(super) allowed: Allowed,
    pub(super) format: Option<String>,
    pub(super) pattern: Option<(String, Regex)>,
    pub(super) maximum: Option<Bound>,
    pub(super) minimum: Option<Bound>,
    pub(super) multiple_of: Option<Number>,
    pub(super) max_length: Option<u64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) min_items: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) min_properties: Option<u64>,
    pub(super) all_of: Vec<Structural>,
    pub(super) any_of: Vec<Structural>,
    pub(super) one_of: Vec<Structural>,
    pub(super) not: Option<Box<Structural>>,
}

#[derive(Debug)]
pub(super) struct Bound {
    pub(super) value: Number,
    pub(super) exclusive: bool,
}

impl JsonType {
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "object" => Some(Self::Object),
            "array" => Some(Self::Array),
            "string" => Some(Self::String),
            "integer" => Some(Self::Integer),
            "number" => Some(Self::Number),
            "boolean" => Some(Self::Boolean),
            _ => None,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

impl Structural {
    /// Compiles a schema that passed the validation of CRDs.
    pub(super) fn compile(props: &Props, patterns: &mut Patterns) -> Result<Self, PatternError> {
        let mut compile_inner = |props: &Props| Self::compile(props, patterns);
        let properties: Result<_, PatternError> =
            props.properties.iter().map(|(name, p)| Ok((name.clone(), compile_inner(p)?))).collect();
        let properties = properties?;
        let additional = match &props.additional_properties {
            Some(SchemaOrBool::Schema(schema)) => Additional::Schema(Box::new(compile_inner(schema)?)),
            Some(SchemaOrBool::Bool(true)) => Additional::Any,
            Some(SchemaOrBool::Bool(false)) | None => Additional::None,
        };
        let items = props.items().map(&mut compile_inner).transpose()?.map(Box::new);
        Ok(Self {
            kind: JsonType::parse(&props.r#type),
            nullable: props.nullable,
            int_or_string: props.int_or_string,
            preserve: props.preserves(),
            embedded: props.embedded,
            default: props.default.clone(),
            properties,
            additional,
            items,
            list: list_kind(props),
            atomic: props.map_type.as_deref() == Some("atomic"),
            checks: Checks::compile(props, patterns)?,
        })
    }

    /// Returns the schema of a property, specified or additional.
    pub(crate) fn property(&self, name: &str) -> Option<&Structural> {
        self.properties.get(name).or(match &self.additional {
            Additional::Schema(schema) => Some(schema),
            _ => None,
        })
    }

    /// The type, unless values of several are allowed.
    pub(crate) fn type_name(&self) -> Option<&'static str> {
        self.kind.filter(|_| !self.int_or_string).map(JsonType::as_str)
    }

    pub(crate) fn items(&self) -> Option<&Structural> {
        self.items.as_deref()
    }

    pub(crate) fn list_kind(&self) -> &ListKind {
        &self.list
    }

    pub(crate) fn is_atomic(&self) -> bool {
        self.atomic
    }

    pub(crate) fn is_embedded(&self) -> bool {
        self.embedded
    }

    pub(crate) fn default_value(&self) -> Option<&Value> {
        self.default.as_ref()
    }
}

impl Checks {
    fn compile(props: &Props, patterns: &mut Patterns) -> Result<Self, PatternError> {
        let bound =
            |value: &Option<Number>, exclusive: bool| value.clone().map(|value| Bound { value, exclusive });
        let pattern = match props.pattern.as_str() {
            "" => None,
            text => Some((text.to_owned(), patterns.get(text)?)),
        };
        let mut each = |list: &[Props]| -> Result<Vec<Structural>, PatternError> {
            list.iter().map(|p| Structural::compile(p, patterns)).collect()
        };
        Ok(Self {
            required: props.required.clone(),
            allowed: Allowed::new(&props.r#enum),
            format: (!props.format.is_empty()).then(|| props.format.clone()),
            pattern,
            maximum: bound(&props.maximum, props.exclusive_maximum),
            minimum: bound(&props.minimum, props.exclusive_minimum),
            multiple_of: props.multiple_of.clone(),
            max_length: props.max_length,
            min_length: props.min_length,
            max_items: props.max_items,
            min_items: props.min_items,
            max_properties: props.max_properties,
            min_properties: props.min_properties,
            all_of: each(&props.all_of)?,
            any_of: each(&props.any_of)?,
            one_of: each(&props.one_of)?,
            not: match &props.not {
                Some(not) => each(std::slice::from_ref(not))?.pop().map(Box::new),
                None => None,
            },
        })
    }
}

fn list_kind(props: &Props) -> ListKind {
    match props.list_type.as_deref() {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Map(props.list_map_keys.clone()),
        _ => ListKind::Atomic,
    }
}
