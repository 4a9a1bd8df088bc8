//! The embedded server as a child of this program, and the two ends of the line between them.

use super::writing::{fill, write};
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

/// The embedded server in a process of its own. It ends with its handle.
pub(super) struct Server {
    child: Child,
    input: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    pub(super) address: SocketAddr,
}

impl Server {
    /// Starts this program again, as the server.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.arg("server").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("cannot start the server")?;
        let input = child.stdin.take().context("no standard input")?;
        let answers = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Self { child, input, answers, address };
        let answer = server.ask("address").await?;
        server.address = answer["address"].as_str().context("the server has no address")?.parse()?;
        Ok(server)
    }

    /// Gives a command and waits for the answer.
    pub(super) async fn ask(&mut self, command: &str) -> anyhow::Result<Value> {
        self.tell(command).await?;
        self.answer().await
    }

    /// Gives a command.
    pub(super) async fn tell(&mut self, command: &str) -> anyhow::Result<()> {
        self.input.write_all(format!("{command}\n").as_bytes()).await.context("the server has ended")
    }

    /// Waits for the answer to a command.
    pub(super) async fn answer(&mut self) -> anyhow::Result<Value> {
        let line =
            self.answers.next_line().await?.context("the server has ended; is there memory enough?")?;
        let answer: Value = serde_json::from_str(&line)?;
        match answer["error"].as_str() {
            Some(error) => anyhow::bail!("the server could not do it: {error}"),
            None => Ok(answer),
        }
    }

    /// Its resident memory, in bytes.
    pub(super) fn rss(&self) -> anyhow::Result<u64> {
        crate::resources::rss_of(self.child.id().context("the server has ended")?)
    }
}

/// Serves, and obeys the lines that come in: the other end of the line.
pub async fn serve() -> anyhow::Result<()> {
    // The window is as long as a relist of very many objects takes.
    let mut cache = CacheOptions::default();
    cache.window_min = 102_400;
    let mut limits = ServerLimits::default();
    limits.connections = 4000;
    let server = ApiServer::builder().cache_options(cache).limits(limits).start().await?;
    let mut commands = commands();
    while let Some(line) = commands.recv().await {
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer =
            obey(&server, &words).await.unwrap_or_else(|error| json!({"error": format!("{error:#}")}));
        let mut out = std::io::stdout().lock();
        writeln!(out, "{answer}").and_then(|()| out.flush())?;
    }
    server.shutdown().await;
    Ok(())
}

/// The lines that come in; reading them blocks, so a thread does it.
fn commands() -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if send.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receive
}

async fn obey(server: &ApiServer, words: &[&str]) -> anyhow::Result<Value> {
    let number = |at: usize| -> anyhow::Result<u64> {
        let word = words.get(at).with_context(|| format!("the command lacks argument {at}"))?;
        word.parse().with_context(|| format!("{word:?} is not a number"))
    };
    match words.first().copied() {
        Some("address") => Ok(json!({"address": server.address()})),
        Some("fill") => fill(server, number(1)?, number(2)?).await,
        Some("write") => write(server, number(1)?, number(2)?, number(3)?, number(4)?).await,
        Some("relist") => {
            // Whoever watches misses a write and the memory of it.
            let (faults, kind) = (server.faults(), Some("configmaps"));
            faults.stall_watches(kind, true);
            let written = write(server, 2, 0, number(1)?, number(2)?).await?;
            faults.compact().await?;
            faults.forget_window(kind).await?;
            faults.stall_watches(kind, false);
            Ok(written)
        }
        other => anyhow::bail!("the server has no command {other:?}"),
    }
}
