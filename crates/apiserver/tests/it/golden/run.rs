//! Runs one scenario, with its own name suffix and variables.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::exchange::{head, read, send};
use super::matcher::{Mismatch, check_assertion, compare, matches};
use super::stream::{Reading, Stream};
use super::value::{Variables, substitute};

/// The most attempts of a request that gets `Retry-After`.
const ATTEMPTS: usize = 8;
/// Letters of a suffix: no vowels, so that it forms no words.
const LETTERS: &[u8] = b"bcdfghjkmnpqrstvwxz";

struct Run {
    address: SocketAddr,
    variables: Variables,
    streams: BTreeMap<String, Stream>,
}

/// Replays a scenario. The error describes the step and the difference.
pub(crate) async fn run(address: SocketAddr, scenario: &Value, seed: u64) -> Result<(), Mismatch> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let letters: String = (0..4).map(|_| char::from(LETTERS[rng.usize(..LETTERS.len())])).collect();
    let suffix = format!("{letters}{:04}", rng.u32(0..10_000));
    let variables = Variables::from([
        ("sfx".to_owned(), json!(suffix)),
        ("ns".to_owned(), json!(format!("gc-{suffix}"))),
    ]);
    let mut run = Run { address, variables, streams: BTreeMap::new() };
    if let Some(namespaces) = scenario.get("namespaces") {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "${each}"}});
        let create = json!({"foreach": namespaces, "request": {"method": "POST", "path": "/api/v1/namespaces", "json": body}});
        run.step(&create).await.map_err(|e| format!("step 0: {e}"))?;
    }
    for (i, step) in scenario["steps"].as_array().into_iter().flatten().enumerate() {
        run.step(step).await.map_err(|e| format!("step {}: {e}", i + 1))?;
    }
    Ok(())
}

impl Run {
    async fn step(&mut self, step: &Value) -> Result<(), Mismatch> {
        let once = vec![Value::Null];
        let values = step.get("foreach").map(|each| substitute(each, &self.variables)).transpose()?;
        let values = values.and_then(|v| v.as_array().cloned()).unwrap_or(once);
        for each in values {
            let deadline =
                Instant::now() + Duration::from_secs_f64(step["within"].as_f64().unwrap_or_default());
            loop {
                let mut variables = self.variables.clone();
                variables.insert("each".to_owned(), each.clone());
                match self.attempt(step, &mut variables).await {
                    Ok(()) => {
                        self.variables = variables;
                        break;
                    }
                    Err(mismatch) if Instant::now() >= deadline => return Err(mismatch),
                    Err(_) => sleep(Duration::from_millis(100)).await,
                }
            }
        }
        Ok(())
    }

    async fn attempt(&mut self, step: &Value, variables: &mut Variables) -> Result<(), Mismatch> {
        let nothing = Map::new();
        let expect = step.get("expect").and_then(Value::as_object).unwrap_or(&nothing);
        let mut got = Map::new();
        if let Some(request) = step.get("request") {
            let retry = expect.get("status") != Some(&json!(429));
            got = self.exchange(&substitute(request, variables)?, retry).await?;
            if !expect.contains_key("status") {
                compare_status(&json!({"$oneOf": [200, 201, 202]}), &got, variables)?;
            }
        }
        if let Some(how) = step.get("read") {
            let events = self.read(how, expect).await?;
            got.insert("events".into(), Value::Array(events));
        }
        for (part, want) in expect {
            match part.as_str() {
                "status" => compare_status(want, &got, variables)?,
                "headers" => {
                    let lower =
                        want.as_object().into_iter().flatten().map(|(k, v)| (k.to_lowercase(), v.clone()));
                    compare(&Value::Object(lower.collect()), &got["headers"], variables, "headers", true)?;
                }
                part => {
                    let found = got.get(part).cloned().unwrap_or_else(|| json!("<nothing>"));
                    compare(want, &found, variables, part, false)?;
                }
            }
        }
        let mut assertions = step["assert"].as_array().into_iter().flatten().filter_map(Value::as_str);
        assertions.try_for_each(|line| check_assertion(line, variables))
    }

    /// Sends one request. With `retry`, retries after 429 like a client.
    async fn exchange(&mut self, request: &Value, retry: bool) -> Result<Map<String, Value>, Mismatch> {
        let mut response = send(self.address, request).await?;
        for _ in 1..ATTEMPTS {
            if !(retry && response.status() == 429 && response.headers().contains_key("retry-after")) {
                break;
            }
            sleep(Duration::from_secs(1)).await;
            response = send(self.address, request).await?;
        }
        match request.get("stream").and_then(Value::as_str) {
            Some(stream) if response.status() == 200 => {
                let got = head(&response);
                self.streams.insert(stream.to_owned(), Stream::open(response));
                Ok(got)
            }
            _ => read(response).await,
        }
    }

    async fn read(&mut self, how: &Value, expect: &Map<String, Value>) -> Result<Vec<Value>, Mismatch> {
        let expected = expect.get("events").and_then(Value::as_array).map_or(0, Vec::len);
        let reading = Reading {
            count: how["count"].as_u64().map_or(expected, |n| n as usize),
            seconds: how["seconds"].as_f64().unwrap_or(6.0),
            end: how["end"].as_str(),
            quiet: how["quiet"].as_f64().unwrap_or(0.5),
            ignore: how["ignore"].as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
        };
        let name = how["stream"].as_str().unwrap_or_default();
        let stream = self.streams.get_mut(name).ok_or_else(|| format!("no stream {name} is open"))?;
        stream.read(&reading).await
    }
}

fn compare_status(want: &Value, got: &Map<String, Value>, variables: &mut Variables) -> Result<(), Mismatch> {
    if matches(want, &got["status"], variables, false) {
        return Ok(());
    }
    let body = got.get("body").or(got.get("text")).cloned().unwrap_or_default();
    Err(format!("status: expected {want} got {} {body:.600}", got["status"]))
}
