//! An etcd of our own, for tests.

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longer than anything with it may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An etcd that ends with this process, however that ends: a shell waits for the end of a pipe and then kills it.
pub(crate) struct Etcd {
    pub(crate) url: String,
    folder: tempfile::TempDir,
    ports: (u16, u16),
    /// What else it is told on its command line.
    flags: String,
    shell: Child,
}

impl Etcd {
    /// An etcd of its own.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with("http", "")
    }

    /// One that clients talk to by this scheme, with more flags.
    pub(crate) fn start_with(scheme: &str, flags: &str) -> Option<Self> {
        if !is_installed() {
            assert!(std::env::var_os("REQUIRE_ETCD").is_none(), "etcd is required and not installed");
            // Past the capture of the test harness: whoever reads the result should know what it does not cover.
            let text = "SKIPPED: there is no etcd on the PATH (Debian: apt-get install etcd-server)";
            let _ = writeln!(std::io::stderr(), "{text}");
            return None;
        }
        let folder = folder();
        let ports = (free_port(), free_port());
        let url = format!("{scheme}://127.0.0.1:{}", ports.0);
        let shell = launch(folder.path(), &url, ports.1, flags);
        let etcd = Self { url, folder, ports, flags: flags.to_owned(), shell };
        etcd.wait();
        Some(etcd)
    }

    /// Stops it as a power failure would. What it was told is on its disk.
    pub(crate) fn kill(&mut self) {
        drop(self.shell.stdin.take());
        self.shell.wait().expect("the shell ends");
    }

    /// Starts it again, where it was.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.shell = launch(self.folder.path(), &self.url, self.ports.1, &self.flags);
        self.wait();
    }

    /// Starts it again without anything it knew.
    pub(crate) fn restart_empty(&mut self) {
        self.kill();
        self.folder = folder();
        self.restart();
    }

    fn wait(&self) {
        let deadline = std::time::Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", self.ports.0)).is_err() {
            assert!(std::time::Instant::now() < deadline, "etcd does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}

/// In memory where that is possible: nobody needs this data after a power failure.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}

fn is_installed() -> bool {
    Command::new("etcd").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

fn launch(folder: &Path, url: &str, peer: u16, flags: &str) -> Child {
    let script = format!(
        "etcd --data-dir '{data}' --listen-client-urls {url} --advertise-client-urls {url} {flags} \
         --listen-peer-urls http://127.0.0.1:{peer} --initial-advertise-peer-urls http://127.0.0.1:{peer} \
         --initial-cluster default=http://127.0.0.1:{peer} --heartbeat-interval 20 --election-timeout 200 >'{data}.log' 2>&1 & \
         cat >/dev/null; kill -9 $!; wait $! 2>/dev/null; true",
        data = folder.join("data").display()
    );
    Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell")
}
