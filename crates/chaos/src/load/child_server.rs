//! The embedded server in a child process, controlled by lines on its standard input and output.

use super::local_writes::{fill, write};
use anyhow::Context;
use kube_embedded_apiserver::watch_cache::CacheOptions;
use kube_embedded_apiserver::{ApiServer, ServerLimits};
use serde_json::{Value, json};
use std::{
    io::{BufRead, Write},
    net::SocketAddr,
    process::Stdio,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::mpsc,
};

/// The embedded server in a child process. Dropping it kills the process.
pub(super) struct ChildServer {
    child: Child,
    input: ChildStdin,
    responses: Lines<BufReader<ChildStdout>>,
    pub(super) address: SocketAddr,
}

impl ChildServer {
    /// Starts this program as the server.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.arg("server").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("cannot start the server")?;
        let input = child.stdin.take().context("no standard input")?;
        let responses = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Self { child, input, responses, address };
        let response = server.execute("address").await?;
        server.address = response["address"].as_str().context("the server sent no address")?.parse()?;
        Ok(server)
    }

    /// Sends a command and waits for the response.
    pub(super) async fn execute(&mut self, command: &str) -> anyhow::Result<Value> {
        self.send(command).await?;
        self.response().await
    }

    /// Sends a command.
    pub(super) async fn send(&mut self, command: &str) -> anyhow::Result<()> {
        self.input.write_all(format!("{command}\n").as_bytes()).await.context("the server has exited")
    }

    /// Waits for the response to a command.
    pub(super) async fn response(&mut self) -> anyhow::Result<Value> {
        let line = self.responses.next_line().await?;
        let line = line.context("the server has exited; check that the machine has enough memory")?;
        let response: Value = serde_json::from_str(&line)?;
        match response["error"].as_str() {
            Some(error) => anyhow::bail!("the command failed in the server: {error}"),
            None => Ok(response),
        }
    }

    /// Its resident memory, in bytes.
    pub(super) fn rss(&self) -> anyhow::Result<u64> {
        crate::resources::rss_of(self.child.id().context("the server has exited")?)
    }
}

/// Runs the server and executes the commands on standard input. This is the main function of the child process.
pub async fn serve() -> anyhow::Result<()> {
    // The watch cache must keep all events that occur during a relist of many objects.
    let mut cache = CacheOptions::default();
    cache.window_min = 102_400;
    let mut limits = ServerLimits::default();
    limits.connections = 4000;
    let server = ApiServer::builder().cache_options(cache).limits(limits).start().await?;
    let mut commands = commands();
    while let Some(line) = commands.recv().await {
        let words: Vec<&str> = line.split_whitespace().collect();
        let response =
            execute(&server, &words).await.unwrap_or_else(|error| json!({"error": format!("{error:#}")}));
        let mut out = std::io::stdout().lock();
        writeln!(out, "{response}").and_then(|()| out.flush())?;
    }
    server.shutdown().await;
    Ok(())
}

/// The lines of standard input. A thread reads them, because that blocks.
fn commands() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

async fn execute(server: &ApiServer, words: &[&str]) -> anyhow::Result<Value> {
    let number = |at: usize| -> anyhow::Result<u64> {
        let word = words.get(at).with_context(|| format!("argument {at} of the command is missing"))?;
        word.parse().with_context(|| format!("{word:?} is not a number"))
    };
    match words.first().copied() {
        Some("address") => Ok(json!({"address": server.address()})),
        Some("fill") => fill(server, number(1)?, number(2)?).await,
        Some("write") => write(server, number(1)?, number(2)?, number(3)?, number(4)?).await,
        Some("relist") => {
            // Forces a relist: the watches miss the writes, and the history of them is removed.
            let (faults, kind) = (server.faults(), Some("configmaps"));
            faults.stall_watches(kind, true);
            let written = write(server, 2, 0, number(1)?, number(2)?).await?;
            faults.compact().await?;
            faults.forget_window(kind).await?;
            faults.stall_watches(kind, false);
            Ok(written)
        }
        other => anyhow::bail!("unknown command {other:?}"),
    }
}
