//! Protobuf of every kind of the table of types.

use crate::{halves, text};
use kube_embedded_apiserver::fuzzing;
use kube_informer_types::protobuf::{Envelope, MessageType, ProtobufError, knows};
use kube_informer_types::{Shape, Type, types};
use serde_json::{Map, Value, json};

/// Objects inside each other, at most.
const MAX_DEPTH: usize = 12;

/// A line that names a kind, and bytes that are read twice: as a message of that kind, and as choices from which an object of the kind is
/// made, encoded and damaged.
pub fn protobuf_kinds(data: &[u8]) {
    let Some((head, rest)) = halves(data) else { return };
    let (api_version, kind) = kind_of(head);
    let message = MessageType::of(&api_version, kind).expect("a kind of the table");
    check_message(&api_version, kind, message, rest);
    let object = made(&api_version, kind, rest);
    let body = fuzzing::encode_protobuf(&object).expect("a typed object encodes");
    fuzzing::decode_protobuf(&body).expect("an encoded object decodes");
    let raw = Envelope::decode(&body).expect("an envelope").raw;
    check_message(&api_version, kind, message, raw);
    for damaged in damaged(raw, rest) {
        check_message(&api_version, kind, message, &damaged);
    }
}

/// A message is an error or a value; both readers agree, and a value that is encoded again is the same value.
fn check_message(api_version: &str, kind: &str, message: MessageType, raw: &[u8]) {
    let decoded = message.decode::<Value>(raw, (kind, api_version));
    let json = message.to_json(raw, (kind, api_version));
    let unknown = message.has_unknown_fields(raw);
    let object = match decoded {
        Ok(object) => object,
        Err(_) => return assert!(json.is_err(), "one reader accepts what the other refuses"),
    };
    match json {
        Ok(json) => assert_eq!(serde_json::from_slice::<Value>(&json).ok().as_ref(), Some(&object)),
        // A search that cannot end says so, and does not say that there is none.
        Err(error) => assert!(error == ProtobufError::UnknownFields && unknown != Ok(false), "{error}"),
    }
    let body = fuzzing::encode_protobuf(&object).expect("a decoded object encodes");
    let again = fuzzing::decode_protobuf(&body).expect("an encoded object decodes");
    assert_eq!(again, object);
}

/// The kind that a line names, or else one that depends on the line.
fn kind_of(head: &[u8]) -> (String, &'static str) {
    let api_version = |group: &str, version: &str| match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    let all: Vec<(String, &'static str)> = types()
        .kinds()
        .into_iter()
        .map(|(group, version, kind)| (api_version(group, version), kind))
        .collect();
    let all: Vec<_> = all.into_iter().filter(|(api_version, kind)| knows(api_version, kind)).collect();
    let named = text(head).and_then(|text| text.split_once(' '));
    let found = named.and_then(|(version, name)| all.iter().find(|(v, k)| v == version && *k == name));
    let sum = head.iter().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    found.unwrap_or(&all[sum % all.len()]).clone()
}

/// Bytes as choices; zeros when they are used up, so that every object is finite.
struct Choices<'d>(&'d [u8]);

impl Choices<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn text(&mut self) -> String {
        let length = usize::from(self.next() % 8);
        (0..length).map(|_| char::from(self.next() % 95 + 32)).collect()
    }
}

fn made(api_version: &str, kind: &str, choices: &[u8]) -> Value {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let of = types().kind(group, version, kind).expect("a kind of the table");
    let mut object = fields(of, &mut Choices(choices), 0);
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Value::Object(object)
}

fn fields(of: &Type, choices: &mut Choices<'_>, depth: usize) -> Map<String, Value> {
    let mut object = Map::new();
    for field in of.fields().iter().filter(|field| !["apiVersion", "kind"].contains(&field.name)) {
        if depth < MAX_DEPTH
            && choices.next() % 3 == 1
            && let Some(value) = value(&field.shape, choices, depth + 1)
        {
            object.insert(field.name.to_owned(), value);
        }
    }
    object
}

fn value(shape: &Shape, choices: &mut Choices<'_>, depth: usize) -> Option<Value> {
    Some(match shape {
        Shape::String | Shape::Enum(_) => choices.text().into(),
        Shape::Int32 => i32::from_le_bytes([choices.next(), choices.next(), 0, choices.next()]).into(),
        Shape::Int64 => (i64::from(choices.next()) << (choices.next() % 56)).into(),
        Shape::Number => (f64::from(choices.next()) / 8.0).into(),
        Shape::Bool => (choices.next() % 2 == 1).into(),
        Shape::Bytes => ["", "AA==", "/+8A"][usize::from(choices.next() % 3)].into(),
        Shape::Time => format!("20{:02}-03-04T05:06:07Z", choices.next() % 90 + 10).into(),
        Shape::MicroTime => {
            format!("2026-03-04T05:06:07.{:06}Z", u32::from(choices.next()) * 1000 + 1).into()
        }
        Shape::Quantity => format!("{}m", choices.next()).into(),
        Shape::IntOrString if choices.next().is_multiple_of(2) => i64::from(choices.next()).into(),
        Shape::IntOrString => choices.text().into(),
        Shape::Any | Shape::ObjectOrAny(_) => json!({"any": [choices.next(), null]}),
        Shape::Struct(name, _) => Value::Object(fields(types().named(name)?, choices, depth)),
        Shape::Map(inner) => json!({choices.text(): value(inner, choices, depth)?}),
        Shape::List(inner, ..) => {
            let items: Option<Vec<Value>> =
                (0..choices.next() % 3).map(|_| value(inner, choices, depth)).collect();
            items?.into()
        }
    })
}

/// The message cut off, with a changed byte, and with a length that is too large, at places that the choices name.
fn damaged(raw: &[u8], choices: &[u8]) -> Vec<Vec<u8>> {
    let mut choices = Choices(choices);
    let mut place = || usize::from(choices.next()) * 256 + usize::from(choices.next());
    let (first, second, third) = (place(), place(), place());
    if raw.is_empty() {
        return Vec::new();
    }
    let mut changed = raw.to_vec();
    changed[second % raw.len()] ^= 1 << (first % 8);
    let mut long = raw.to_vec();
    long.splice(third % raw.len()..=third % raw.len(), [0xff, 0xff, 0xff, 0xff, 0x0f]);
    vec![raw[..first % raw.len()].to_vec(), changed, long]
}
