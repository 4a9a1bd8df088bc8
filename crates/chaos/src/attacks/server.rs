//! The embedded server in a child process, with default limits and a token.

use anyhow::Context;
use kube_embedded_apiserver::{ApiServer, Tokens};
use std::{net::SocketAddr, process::Stdio};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, ChildStdin, Command},
};

const TOKEN: &str = "attack-suite-token-0123456789";

/// A server process. Dropping it kills the process.
pub(super) struct AttackedServer {
    child: Child,
    /// The server runs until it is closed.
    _input: ChildStdin,
    pub(super) address: SocketAddr,
}

impl AttackedServer {
    pub(super) async fn start() -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.arg("attacked-server").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("cannot start the server")?;
        let input = child.stdin.take().context("no standard input")?;
        let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        let line = lines.next_line().await?.context("the server exited before it was ready")?;
        Ok(Self { child, _input: input, address: line.parse()? })
    }

    pub(super) fn client(&self) -> anyhow::Result<kube::Client> {
        let mut config = kube::Config::new(format!("http://{}", self.address).parse()?);
        config.auth_info.token = Some(TOKEN.to_owned().into());
        Ok(kube::Client::try_from(config)?)
    }

    /// The value of an `Authorization` header.
    pub(super) fn authorization() -> String {
        format!("Bearer {TOKEN}")
    }

    /// Its resident memory, in bytes.
    pub(super) fn rss(&self) -> anyhow::Result<u64> {
        crate::resources::rss_of(self.id()?)
    }

    /// Its peak resident memory, in bytes.
    pub(super) fn peak(&self) -> anyhow::Result<u64> {
        crate::resources::peak_of(self.id()?)
    }

    fn id(&self) -> anyhow::Result<u32> {
        self.child.id().context("the server has exited")
    }
}

/// Runs the server until standard input is closed. This is the main function of the child process.
#[expect(clippy::print_stdout, reason = "the parent process reads the address from it")]
pub async fn serve_attacked() -> anyhow::Result<()> {
    let server = ApiServer::builder().tokens(Tokens::new([TOKEN])?).start().await?;
    println!("{}", server.address());
    let _ = tokio::io::stdin().read(&mut [0]).await;
    server.shutdown().await;
    Ok(())
}
