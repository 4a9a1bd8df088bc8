//! A program of kube-rs.

use kube::runtime;
#[path = "../../pod_reflector.rs"]
mod pod_reflector;

use crate::{commands, trim};
use anyhow::Context;
use kube::Client;
use serde_json::json;
use std::io::Write;

/// Runs the commands from standard input.
pub async fn run(client: Client) -> anyhow::Result<()> {
    let mut store = None;
    let mut commands = commands();
    while let Some(line) = commands.recv().await {
        let words: Vec<&str> = line.split_whitespace().collect();
        let response = match words.as_slice() {
            ["start"] => {
                let reader = pod_reflector::follow(client.clone()).await?;
                let objects = reader.len();
                store = Some(reader);
                json!({"objects": objects})
            }
            ["settle"] => {
                trim();
                json!({})
            }
            ["read", how] => pod_reflector::read(store.as_ref().context("not started")?, how),
            _ => json!({"error": format!("unknown command {line:?}")}),
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{response}")?;
        out.flush()?;
    }
    std::process::exit(0)
}
