//! Compares our reading and writing of protobuf with the encoders of Kubernetes, for every kind in the table.
//!
//! `encodings PROGRAM [COUNT [SEED]]` runs PROGRAM, the Go program beside this one, which prints COUNT objects of every
//! kind in both encodings. For each object
//!
//! 1. protobuf of Kubernetes, as JSON, is its JSON, field for field;
//! 2. no field counts as unknown;
//! 3. our protobuf of its JSON, as JSON, is the same again.
#![allow(clippy::print_stdout, reason = "a program that reports")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_informer_types::protobuf::{self, Envelope, MessageType};
use kube_informer_types::types;
use serde::Deserialize;
use serde_json::Value;

/// One object in both encodings.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pair {
    api_version: String,
    kind: String,
    json: Value,
    protobuf: String,
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (program, count, seed) = match &arguments[..] {
        [program] => (program, "40", "1"),
        [program, count] => (program, count.as_str(), "1"),
        [program, count, seed] => (program, count.as_str(), seed.as_str()),
        _ => bail!("usage: encodings PROGRAM [COUNT [SEED]]"),
    };
    let mut child = Command::new(program).args([count, seed]).stdout(Stdio::piped()).spawn()?;
    let mut compared: BTreeMap<String, usize> = BTreeMap::new();
    // The first failure of each kind.
    let mut failed: BTreeMap<String, String> = BTreeMap::new();
    for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
        let pair: Pair = serde_json::from_str(&line?)?;
        let name = format!("{} {}", pair.api_version, pair.kind);
        if let Some(message) = MessageType::of(&pair.api_version, &pair.kind) {
            if let Err(error) = compare(&pair, message) {
                failed.entry(name.clone()).or_insert_with(|| format!("{error:#}: {}", pair.json));
            }
            *compared.entry(name).or_default() += 1;
        }
    }
    ensure!(child.wait()?.success(), "{program} failed");
    for (name, error) in &failed {
        println!("{name}: {error}");
    }
    ensure!(failed.is_empty(), "{} kinds differ", failed.len());
    for (group, version, kind) in types().kinds() {
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let name = format!("{api_version} {kind}");
        let missing = protobuf::knows(&api_version, kind) && !compared.contains_key(&name);
        ensure!(!missing, "{program} has no objects of {name}");
    }
    println!(
        "{} objects of {} kinds are the same in both encodings",
        compared.values().sum::<usize>(),
        compared.len()
    );
    Ok(())
}

fn compare(pair: &Pair, message: MessageType) -> anyhow::Result<()> {
    let type_meta = (pair.kind.as_str(), pair.api_version.as_str());
    let body = STANDARD.decode(&pair.protobuf)?;
    let theirs = Envelope::decode(&body)?;
    ensure!((theirs.kind, theirs.api_version) == type_meta, "the envelope has another type");
    ensure!(!message.has_unknown_fields(theirs.raw)?, "a field is not in the table");
    same("protobuf of Kubernetes", &message.to_json(theirs.raw, type_meta)?, &pair.json)?;
    let decoded: Value = message.decode(theirs.raw, type_meta)?;
    ensure!(decoded == pair.json, "the decoded value differs from the text");
    let ours = protobuf::encode(pair.json.to_string().as_bytes())?;
    same("our protobuf", &message.to_json(Envelope::decode(&ours)?.raw, type_meta)?, &pair.json)
}

fn same(what: &str, found: &[u8], wanted: &Value) -> anyhow::Result<()> {
    let found: Value = serde_json::from_slice(found)?;
    if let Some(path) = difference(&found, wanted) {
        bail!("{what} differs from the JSON at {path}");
    }
    Ok(())
}

/// The path of the first difference, with both values.
fn difference(found: &Value, wanted: &Value) -> Option<String> {
    match (found, wanted) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys());
            let of = |map: &serde_json::Map<String, Value>, key| map.get(key).cloned();
            for key in keys {
                match (of(a, key), of(b, key)) {
                    (Some(a), Some(b)) => {
                        if let Some(inner) = difference(&a, &b) {
                            return Some(format!(".{key}{inner}"));
                        }
                    }
                    (a, b) => return Some(format!(".{key}: {a:?} instead of {b:?}")),
                }
            }
            None
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => (0..)
            .zip(a.iter().zip(b))
            .find_map(|(at, (a, b))| difference(a, b).map(|inner| format!("[{at}]{inner}"))),
        (a, b) => (a != b).then(|| format!(": {a} instead of {b}")),
    }
}
