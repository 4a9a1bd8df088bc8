//! Objects with random fields, generated from the table.

use super::super::messages::Content;
use super::*;
use crate::{Shape, Type, Zero, types};

/// Schemas of CRDs inside each other, at most.
const SCHEMA_DEPTH: usize = 3;

/// Every kind with a protobuf encoding: `apiVersion` and `kind`.
fn kinds() -> Vec<(String, &'static str)> {
    let api_version = |group: &str, version: &str| match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    let kinds = types().kinds().into_iter().map(|(group, version, kind)| (api_version(group, version), kind));
    kinds.filter(|(api_version, kind)| knows(api_version, kind)).collect()
}

/// Fills objects and says what JSON a server has for them.
struct Generator {
    random: fastrand::Rng,
    /// How many of a hundred fields are present.
    percent: u8,
    /// How many schemas of CRDs are around the current object.
    schemas: usize,
}

impl Generator {
    fn object(&mut self, of: &Type) -> Map<String, Value> {
        let mut object = Map::new();
        for field in of.fields() {
            // Not on the wire: the envelope has them.
            let on_wire = messages().named(of.name).is_some_and(|message| has_field(message, field.name));
            if matches!(field.name, "kind" | "apiVersion") && !on_wire {
                continue;
            }
            if self.random.u8(..100) < self.percent
                && let Some(value) = self.field(of, field)
            {
                let omitted = field.zero == Zero::Omitted && is_zero(&value)
                    || value.is_null() && field.zero != Zero::Written;
                if !omitted {
                    object.insert(field.name.to_owned(), value);
                }
            }
            if field.zero == Zero::Null && !object.contains_key(field.name) {
                object.insert(field.name.to_owned(), Value::Null);
            }
            if field.zero == Zero::Written && !object.contains_key(field.name) {
                object.insert(field.name.to_owned(), self.zero(&field.shape));
            }
        }
        object
    }

    fn field(&mut self, of: &Type, field: &crate::Field) -> Option<Value> {
        if of.name != SCHEMA {
            return self.value(&field.shape);
        }
        let schema = Shape::Struct(SCHEMA, crate::Merge::default());
        match field.name {
            "items" if self.random.bool() => Some(vec![self.value(&schema)?].into()),
            "additionalItems" | "additionalProperties" if self.random.bool() => {
                Some(self.random.bool().into())
            }
            "items" | "additionalItems" | "additionalProperties" => self.value(&schema),
            "dependencies" if self.random.bool() => Some(json!({ "a": ["b", "c"] })),
            "dependencies" => Some(json!({ "a": self.value(&schema)? })),
            _ => self.value(&field.shape),
        }
    }

    fn value(&mut self, shape: &Shape) -> Option<Value> {
        let zero = self.random.u8(..5) == 0;
        Some(match shape {
            Shape::String | Shape::Enum(_) => self.text(zero).into(),
            Shape::Int32 if !zero => self.random.i32(..).into(),
            Shape::Int64 if !zero => self.random.i64(..).into(),
            Shape::Int32 | Shape::Int64 => 0.into(),
            Shape::Number => (f64::from(self.random.i32(..)) / 8.0).into(),
            Shape::Bool => self.random.bool().into(),
            Shape::Bytes => {
                use base64::Engine as _;
                let bytes: Vec<u8> = (0..self.random.usize(..9)).map(|_| self.random.u8(..)).collect();
                base64::engine::general_purpose::STANDARD.encode(bytes).into()
            }
            Shape::Time => format!("20{:02}-03-04T05:06:07Z", self.random.u8(10..99)).into(),
            Shape::MicroTime => {
                format!("20{:02}-03-04T05:06:07.{:06}Z", self.random.u8(10..99), self.random.u32(..1_000_000))
                    .into()
            }
            Shape::Quantity => format!("{}m", self.random.u32(..)).into(),
            Shape::IntOrString if self.random.bool() => self.random.i32(..).into(),
            Shape::IntOrString => self.text(zero).into(),
            Shape::Any | Shape::ObjectOrAny(_) => json!({"any": [self.random.u8(..), null, {"f:x": {}}]}),
            Shape::Struct(name, _) => {
                messages().named(name)?;
                let is_schema = *name == SCHEMA;
                if is_schema && self.schemas == SCHEMA_DEPTH {
                    return None;
                }
                self.schemas += usize::from(is_schema);
                let object = self.object(types().named(name)?);
                self.schemas -= usize::from(is_schema);
                Value::Object(object)
            }
            Shape::Map(inner) => {
                let mut map = Map::new();
                for _ in 0..self.random.usize(1..4) {
                    map.insert(self.text(false), self.value(inner)?);
                }
                Value::Object(map)
            }
            Shape::List(inner, ..) => {
                let items: Option<Vec<Value>> =
                    (0..self.random.usize(1..4)).map(|_| self.value(inner)).collect();
                items?.into()
            }
        })
    }

    fn zero(&mut self, shape: &Shape) -> Value {
        match shape {
            Shape::String | Shape::Enum(_) => "".into(),
            Shape::Int32 | Shape::Int64 | Shape::Number | Shape::IntOrString => 0.into(),
            Shape::Bool => false.into(),
            Shape::Quantity => "0".into(),
            Shape::Struct(name, _) => {
                let percent = std::mem::replace(&mut self.percent, 0);
                let empty = self.object(types().named(name).unwrap());
                self.percent = percent;
                Value::Object(empty)
            }
            _ => Value::Null,
        }
    }

    fn text(&mut self, empty: bool) -> String {
        if empty {
            String::new()
        } else {
            (0..self.random.usize(1..12)).map(|_| self.random.alphanumeric()).collect()
        }
    }
}

/// The name of the type of schemas in CRDs.
const SCHEMA: &str = "apiextensions.v1.JSONSchemaProps";

fn has_field(message: &Message, name: &str) -> bool {
    message.slots().iter().any(|slot| match &slot.content {
        Content::Field(field) => field.name == name,
        Content::Inline(inner) => has_field(inner, name),
    })
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        // Go never omits a struct for being empty.
        Value::Object(_) | Value::Array(_) => false,
    }
}

/// The JSON of a random object, the type of its message and the message.
fn generate(seed: u64) -> (Value, MessageType, Vec<u8>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let kinds = kinds();
    // Even seeds have the kinds in turn, odd ones have pods: the largest kind.
    let (api_version, kind) = match seed % 2 {
        0 => kinds[seed as usize / 2 % kinds.len()].clone(),
        _ => ("v1".to_owned(), "Pod"),
    };
    let api_version = api_version.as_str();
    let percent = [0, 20, 60, 100][random.usize(..if kind == "CustomResourceDefinition" { 3 } else { 4 })];
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let mut generator = Generator { random, percent, schemas: 0 };
    let mut object = generator.object(types().kind(group, version, kind).unwrap());
    object.insert("kind".to_owned(), kind.into());
    object.insert("apiVersion".to_owned(), api_version.into());
    let json = Value::Object(object);
    let body = encode(json.to_string().as_bytes()).unwrap();
    let raw = Envelope::decode(&body).unwrap().raw.to_vec();
    (json, MessageType::of(api_version, kind).unwrap(), raw)
}

fn type_meta(json: &Value) -> (&str, &str) {
    (json["kind"].as_str().unwrap(), json["apiVersion"].as_str().unwrap())
}

#[test]
fn a_message_is_read_as_the_json_of_the_server() {
    for seed in 0..600 {
        let (json, message, bytes) = generate(seed);
        let read: Value = message.decode(&bytes, type_meta(&json)).unwrap();
        assert_eq!(read, json, "seed {seed}");
        let text = message.to_json(&bytes, type_meta(&json)).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), json, "seed {seed}");
        assert_eq!(message.has_unknown_fields(&bytes), Ok(false), "seed {seed}");
    }
}

#[test]
fn typed_values_are_the_same_from_both_encodings() {
    use k8s_openapi::api::{
        apps::v1::Deployment,
        batch::v1::CronJob,
        core::v1::{Node, Pod, Secret, Service},
    };
    /// Whether the type accepts the object; some do not accept the null of a time that is not set.
    fn check<T: DeserializeOwned + PartialEq + fmt::Debug>(
        json: &Value,
        message: MessageType,
        bytes: &[u8],
    ) -> bool {
        let from_json: Option<T> = serde_json::from_value(json.clone()).ok();
        assert_eq!(message.decode::<T>(bytes, type_meta(json)).ok(), from_json);
        from_json.is_some()
    }
    let mut accepted = 0;
    for seed in 0..600 {
        let (json, message, bytes) = generate(seed);
        accepted += usize::from(match json["kind"].as_str().unwrap() {
            "Pod" => check::<Pod>(&json, message, &bytes),
            "Node" => check::<Node>(&json, message, &bytes),
            "Service" => check::<Service>(&json, message, &bytes),
            "Secret" => check::<Secret>(&json, message, &bytes),
            "Deployment" => check::<Deployment>(&json, message, &bytes),
            "CronJob" => check::<CronJob>(&json, message, &bytes),
            _ => false,
        });
    }
    assert!(accepted > 300, "{accepted}");
}

/// The message with its fields in random order, at every depth.
fn shuffled(bytes: &[u8], message: &Message, random: &mut fastrand::Rng) -> Vec<u8> {
    use super::super::fields::{Fields, Wire};
    let mut fields: Vec<(u32, Vec<u8>)> = Vec::new();
    let mut rest = Fields(bytes);
    loop {
        let before = rest.0;
        let Some(Ok((number, wire))) = rest.next() else { break };
        let raw = before[..before.len() - rest.0.len()].to_vec();
        let inner = match message.slot(number) {
            Some(Content::Inline(inner)) => Some(&**inner),
            Some(Content::Field(field)) => field.encoding.message(),
            None => None,
        };
        match (inner, wire) {
            (Some(inner), Wire::Bytes(bytes)) => {
                let mut out = Vec::new();
                write::bytes(&mut out, number, &shuffled(bytes, inner, random));
                fields.push((number, out));
            }
            _ => fields.push((number, raw)),
        }
    }
    // Values of one number keep their order: it is the order of a list.
    let mut order: Vec<u32> = fields.iter().map(|(number, _)| *number).collect();
    random.shuffle(&mut order);
    let mut out = Vec::new();
    for number in order {
        let at = fields.iter().position(|(other, _)| *other == number).unwrap();
        out.extend(fields.remove(at).1);
    }
    out
}

#[test]
fn the_order_of_fields_does_not_matter() {
    let mut random = fastrand::Rng::with_seed(4);
    for seed in 0..200 {
        let (json, message, bytes) = generate(seed);
        let shuffled = shuffled(&bytes, message.message, &mut random);
        let read: Value = message.decode(&shuffled, type_meta(&json)).unwrap();
        assert_eq!(read, json, "seed {seed}");
        assert!(message.to_json(&shuffled, type_meta(&json)).is_ok());
    }
}

#[test]
fn values_that_come_twice_count_as_protobuf_says() {
    let (message, meta) = (MessageType::of("v1", "Pod").unwrap(), ("Pod", "v1"));
    let (mut first, mut second) = (Vec::new(), Vec::new());
    write::text(&mut first, 1, "old");
    write::text(&mut first, 3, "namespace");
    write::text(&mut second, 1, "new");
    let mut pod = Vec::new();
    write::bytes(&mut pod, 1, &first);
    write::bytes(&mut pod, 1, &second);
    let read: Value = message.decode(&pod, meta).unwrap();
    assert_eq!(read["metadata"], json!({"name": "new", "namespace": "namespace"}));
}

#[test]
fn a_field_of_a_newer_server_is_never_dropped_silently() {
    for seed in 0..100 {
        let (json, message, bytes) = generate(seed);
        let (mut at_top, mut inside) = (bytes.clone(), bytes.clone());
        write::text(&mut at_top, 999, "new");
        // Into the metadata, which is field number 1 of every kind that has some.
        let has_metadata = matches!(message.message.slot(1), Some(Content::Field(f)) if f.name == "metadata");
        let mut metadata = Vec::new();
        write::text(&mut metadata, 998, "new");
        write::bytes(&mut inside, if has_metadata { 1 } else { 999 }, &metadata);
        for newer in [at_top, inside] {
            assert_eq!(message.has_unknown_fields(&newer), Ok(true));
            assert_eq!(message.to_json(&newer, type_meta(&json)), Err(ProtobufError::UnknownFields));
            assert!(
                message.decode::<Value>(&newer, type_meta(&json)).is_ok(),
                "the known fields can be read"
            );
        }
    }
}

#[test]
fn damaged_messages_never_panic() {
    let mut random = fastrand::Rng::with_seed(2);
    for seed in 0..2000 {
        let (json, message, mut bytes) = generate(seed % 50);
        for _ in 0..random.usize(1..4) {
            if let Some(at) = (!bytes.is_empty()).then(|| random.usize(..bytes.len())) {
                match random.u8(..3) {
                    0 => bytes[at] = random.u8(..),
                    1 => bytes.truncate(at),
                    _ => bytes.insert(at, random.u8(..)),
                }
            }
        }
        let _ = message.decode::<Value>(&bytes, type_meta(&json));
        let _ = message.to_json(&bytes, type_meta(&json));
        let _ = message.has_unknown_fields(&bytes);
    }
}

/// Schemas of CRDs contain themselves, and so may hostile ones, to any depth.
#[test]
fn schemas_that_are_nested_without_end_are_an_error() {
    let message = MessageType::of("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    let meta = ("CustomResourceDefinition", "apiextensions.k8s.io/v1");
    let nested = |levels: usize| {
        let mut schema = Vec::new();
        for _ in 0..levels {
            // `not` is field number 28.
            let mut outer = Vec::new();
            write::bytes(&mut outer, 28, &schema);
            schema = outer;
        }
        // A CRD has its spec as number 2, that its versions as 7, those a schema as 4, that the schema as 1.
        [1, 4, 7, 2].into_iter().fold(schema, |inner, number| {
            let mut outer = Vec::new();
            write::bytes(&mut outer, number, &inner);
            outer
        })
    };
    assert!(message.decode::<Value>(&nested(100), meta).is_ok());
    assert_eq!(message.has_unknown_fields(&nested(100)), Ok(false));
    for levels in [200, 20_000] {
        let hostile = nested(levels);
        assert_eq!(message.decode::<Value>(&hostile, meta), Err(ProtobufError::TooDeep));
        assert_eq!(message.has_unknown_fields(&hostile), Err(ProtobufError::TooDeep));
        assert!(message.to_json(&hostile, meta).is_err());
    }
}
