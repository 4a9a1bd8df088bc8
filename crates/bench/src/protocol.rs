//! The protocol between `compare` and its processes: a line of words per command, a line of JSON per response.

use serde_json::{Value, json};
use std::io::{BufRead, Write};
use tokio::sync::mpsc;

/// The commands on standard input.
pub(crate) fn commands() -> mpsc::Receiver<Vec<String>> {
    let (send, receive) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let words = line.split_whitespace().map(str::to_owned).collect();
            if send.blocking_send(words).is_err() {
                return;
            }
        }
    });
    receive
}

/// Writes the response of a command.
pub(crate) fn respond(result: anyhow::Result<Value>) -> anyhow::Result<()> {
    let value = result.unwrap_or_else(|error| json!({ "error": format!("{error:#}") }));
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}")?;
    Ok(out.flush()?)
}

/// A number in a command.
pub(crate) fn number<T: std::str::FromStr>(words: &[String], at: usize) -> anyhow::Result<T> {
    let word = words.get(at).ok_or_else(|| anyhow::anyhow!("the command lacks argument {at}"))?;
    word.parse().map_err(|_| anyhow::anyhow!("{word:?} is not a number"))
}

/// Nanoseconds since 1970, the same clock for all processes of a machine.
pub(crate) fn unix_nanos() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_nanos() as u64)
}

/// The label with the time of a write.
pub(crate) const SENT_AT: &str = "bench/sent-at";
