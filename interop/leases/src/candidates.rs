//! Processes that take part in the election.

use crate::{Error, TIMEOUT};
use kube_informer_controller::{ElectionError, LeaderElection};
use std::{process::Stdio, time::Duration};
use tokio::{
    process::{Child, Command},
    sync::oneshot,
    task::JoinHandle,
};

/// An elector of client-go.
pub(crate) struct ClientGo(Child);

impl ClientGo {
    pub(crate) fn start(program: &str, url: &str, identity: &str) -> Result<Self, Error> {
        let mut command = Command::new(program);
        command.args([url, identity]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self(command.kill_on_drop(true).spawn()?))
    }

    /// Stops it in order.
    pub(crate) async fn stop(mut self) -> Result<(), Error> {
        drop(self.0.stdin.take());
        let ended = tokio::time::timeout(TIMEOUT, self.0.wait()).await??;
        if ended.success() {
            Ok(())
        } else {
            Err(format!("the elector of client-go ended with {ended}").into())
        }
    }

    pub(crate) async fn kill(mut self) -> Result<(), Error> {
        Ok(self.0.kill().await?)
    }
}

/// Our elector.
pub(crate) struct Ours {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Option<()>, ElectionError>>,
}

impl Ours {
    pub(crate) fn start(client: kube::Client, identity: &str) -> Result<Self, Error> {
        let (stop, stopped) = oneshot::channel::<()>();
        let elector = LeaderElection::new("default", "shared")
            .identity(identity)
            .lease_duration(Duration::from_secs(3))
            .renew_deadline(Duration::from_secs(2))
            .retry_period(Duration::from_millis(500))
            .elector(client)?;
        let work = |_| async move {
            let _ = stopped.await;
        };
        Ok(Self { stop, task: tokio::spawn(elector.run(std::future::pending::<()>(), work)) })
    }

    /// Stops it in order.
    pub(crate) async fn stop(self) -> Result<(), Error> {
        drop(self.stop);
        self.task.await??;
        Ok(())
    }

    pub(crate) async fn kill(self) {
        self.task.abort();
        // The error says that it was aborted.
        let _ = self.task.await;
    }
}
