//! A server process and a shell whose kubectl connects to it.

use crate::Error;
use std::{
    env, fs,
    io::{BufRead, BufReader},
    os::unix::fs::symlink,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};
use tempfile::TempDir;

/// Limit for one command, in seconds.
const TIMEOUT: &str = "60";

/// `kube-informer serve` on a free port, and the working directory of commands.
pub(crate) struct Server {
    directory: TempDir,
    serve: Child,
    /// Kept open, because the server may print to it.
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn start(kube_informer: &Path, kubectl: &Path, manifests: &Path) -> Result<Self, Error> {
        let directory = TempDir::new()?;
        let programs = directory.path().join("bin");
        fs::create_dir(&programs)?;
        symlink(kubectl, programs.join("kubectl"))?;
        symlink(manifests, directory.path().join("manifests"))?;
        let mut serve = Command::new(kube_informer)
            .args(["serve", "--garbage-collection", "--finalize-pods", "--kubeconfig-out"])
            .arg(directory.path().join("config"))
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        // Its first line is its address, printed when it is ready.
        let mut stdout = BufReader::new(serve.stdout.take().ok_or("no standard output")?);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        if line.is_empty() {
            return Err("the server exited before it was ready".into());
        }
        Ok(Self { directory, serve, _stdout: stdout })
    }

    /// Runs a command. Returns its output, of both streams, and its exit code.
    pub(crate) fn shell(&self, command: &str) -> Result<(String, i32), Error> {
        let directory = self.directory.path();
        let path = env::join_paths(
            [directory.join("bin")]
                .into_iter()
                .chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())),
        )?;
        let output = Command::new("timeout")
            .args([TIMEOUT, "bash", "-c", &format!("exec 2>&1; {command}")])
            .current_dir(directory)
            .env("PATH", path)
            .env("HOME", directory)
            .env("KUBECONFIG", directory.join("config"))
            .env("KUBECTL_EXTERNAL_DIFF", "diff -u -N")
            .stdin(Stdio::null())
            .output()?;
        Ok((String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code().unwrap_or(-1)))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that it has already exited.
        let _ = self.serve.kill();
        let _ = self.serve.wait();
    }
}
