//! `kube-informer serve` as a process that can be killed and paused.

use crate::{
    cluster::Direct,
    door::{Door, Identity},
};
use anyhow::Context;
use std::{net::SocketAddr, path::PathBuf, process::Stdio};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

/// A served process. It ends with its handle.
pub(crate) struct Served {
    setup: Setup,
    child: Child,
    /// Files and sockets it had open before the first client came.
    files: usize,
}

/// What stays the same when the process is replaced.
pub(crate) struct Setup {
    pub(crate) program: PathBuf,
    pub(crate) address: SocketAddr,
    /// As on the command line; none is memory.
    pub(crate) storage: Option<String>,
    /// With one it speaks TLS.
    pub(crate) identity: Option<Identity>,
}

impl Served {
    /// Serves; with so many generated pods, made from a seed.
    pub(crate) async fn start(setup: Setup, pods: u32, seed: u64) -> anyhow::Result<Self> {
        let child = setup.launch(pods, seed).await?;
        let files = open_files(&child)?;
        Ok(Self { setup, child, files })
    }

    pub(crate) fn door(&self) -> Door {
        let address = self.setup.address;
        self.setup.identity.as_ref().map_or_else(|| address.into(), |identity| identity.door(address))
    }

    pub(crate) fn direct(&self) -> anyhow::Result<Direct> {
        Direct::new(self.door())
    }

    /// As kill -9 does.
    pub(crate) async fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("cannot kill the server")
    }

    /// Serves again on the same port; a store in memory begins anew.
    pub(crate) async fn restart(&mut self, pods: u32, seed: u64) -> anyhow::Result<()> {
        self.child = self.setup.launch(pods, seed).await?;
        self.files = self.files.max(open_files(&self.child)?);
        Ok(())
    }

    /// Sends a signal by its name.
    pub(crate) async fn signal(&self, name: &str) -> anyhow::Result<()> {
        let id = self.child.id().context("the server has ended")?.to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status().await?;
        anyhow::ensure!(sent.success(), "cannot send {name} to the server");
        Ok(())
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn ended(&mut self) -> anyhow::Result<()> {
        self.child.wait().await.context("cannot wait for the server")?;
        Ok(())
    }

    /// Whether it has no more files and sockets open than before the first client came.
    pub(crate) fn is_alone(&self) -> anyhow::Result<bool> {
        Ok(open_files(&self.child)? <= self.files)
    }
}

impl Setup {
    async fn launch(&self, pods: u32, seed: u64) -> anyhow::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(["serve", "--listen", &self.address.to_string(), "--finalize-pods"]);
        command.args(["--seed-pods", &pods.to_string(), "--seed", &seed.to_string()]);
        command.args(["--storage", self.storage.as_deref().unwrap_or("memory")]);
        if let Some(identity) = &self.identity {
            command.arg("--tls-cert").arg(identity.certificate()).arg("--tls-key").arg(identity.key());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let program = self.program.display();
        let mut child = command.spawn().with_context(|| {
            let advice = "build it with `cargo build -p kube-informer-cli`, or name it with --program";
            format!("cannot start {program}; {advice}")
        })?;
        let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        while let Some(line) = lines.next_line().await? {
            if line.starts_with("serving at ") {
                // What else it says has nowhere to go, and a closed pipe must not end it.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return Ok(child);
            }
        }
        anyhow::bail!("{program} serve ended before it served; run it by hand and read what it says")
    }
}

fn open_files(child: &Child) -> anyhow::Result<usize> {
    let id = child.id().context("the server has ended")?;
    let files = std::fs::read_dir(format!("/proc/{id}/fd")).context("this needs Linux")?;
    Ok(files.count())
}
