//! `kube-informer serve` as a process that can be killed and paused.

use crate::{
    cluster::DirectClient,
    endpoint::{Endpoint, TlsIdentity},
};
use anyhow::Context;
use std::{net::SocketAddr, path::PathBuf, process::Stdio};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

/// A server process. Dropping it kills the process.
pub(crate) struct ServerProcess {
    config: ServerConfig,
    child: Child,
    /// Open files and sockets before the first client connected.
    files_without_clients: usize,
}

/// The config of a server, which stays the same when its process is replaced.
pub(crate) struct ServerConfig {
    pub(crate) program: PathBuf,
    pub(crate) address: SocketAddr,
    /// The value of `--storage`. `None` is memory.
    pub(crate) storage: Option<String>,
    /// `None` is plain HTTP.
    pub(crate) identity: Option<TlsIdentity>,
}

impl ServerProcess {
    /// Starts a server with this many pods, generated from a seed.
    pub(crate) async fn start(config: ServerConfig, pods: u32, seed: u64) -> anyhow::Result<Self> {
        let child = config.launch(pods, seed).await?;
        let files_without_clients = open_files(&child)?;
        Ok(Self { config, child, files_without_clients })
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        let address = self.config.address;
        self.config.identity.as_ref().map_or_else(|| address.into(), |identity| identity.endpoint(address))
    }

    pub(crate) fn direct_client(&self) -> anyhow::Result<DirectClient> {
        DirectClient::new(self.endpoint())
    }

    /// Sends SIGKILL and waits for the end of the process.
    pub(crate) async fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("cannot kill the server")
    }

    /// Starts the process again on the same port. Storage in memory starts empty.
    pub(crate) async fn restart(&mut self, pods: u32, seed: u64) -> anyhow::Result<()> {
        self.child = self.config.launch(pods, seed).await?;
        self.files_without_clients = self.files_without_clients.max(open_files(&self.child)?);
        Ok(())
    }

    /// Sends a signal, given by its name.
    pub(crate) async fn signal(&self, name: &str) -> anyhow::Result<()> {
        let id = self.child.id().context("the server is not running")?.to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status().await?;
        anyhow::ensure!(sent.success(), "cannot send {name} to the server");
        Ok(())
    }

    /// Waits for the end of the process.
    pub(crate) async fn wait(&mut self) -> anyhow::Result<()> {
        self.child.wait().await.context("cannot wait for the server")?;
        Ok(())
    }

    /// Returns whether it has closed all files and sockets that it opened for clients.
    pub(crate) fn has_released_clients(&self) -> anyhow::Result<bool> {
        Ok(open_files(&self.child)? <= self.files_without_clients)
    }
}

impl ServerConfig {
    async fn launch(&self, pods: u32, seed: u64) -> anyhow::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(["serve", "--listen", &self.address.to_string(), "--finalize-pods"]);
        command.args(["--seed-pods", &pods.to_string(), "--seed", &seed.to_string()]);
        command.args(["--storage", self.storage.as_deref().unwrap_or("memory")]);
        if let Some(identity) = &self.identity {
            command
                .arg("--tls-cert")
                .arg(identity.certificate_file())
                .arg("--tls-key")
                .arg(identity.key_file());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let program = self.program.display();
        let mut child = command.spawn().with_context(|| {
            let advice = "build it with `cargo build -p kube-informer-cli`, or give its path with --program";
            format!("cannot start {program}; {advice}")
        })?;
        let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        while let Some(line) = lines.next_line().await? {
            if line.starts_with("serving at ") {
                // Discard further output: a closed pipe would kill the server.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return Ok(child);
            }
        }
        anyhow::bail!("`{program} serve` exited before it was ready; run it by hand to see its output")
    }
}

fn open_files(child: &Child) -> anyhow::Result<usize> {
    let id = child.id().context("the server is not running")?;
    let files =
        std::fs::read_dir(format!("/proc/{id}/fd")).context("cannot read /proc; this program needs Linux")?;
    Ok(files.count())
}
