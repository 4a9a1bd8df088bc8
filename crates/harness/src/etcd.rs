//! An etcd process for tests.

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Limit for starting etcd, and for each operation of a test that waits for it.
pub const ETCD_TIMEOUT: Duration = Duration::from_secs(60);

/// An etcd process that never outlives this one: a shell waits for the end of a pipe to us and then kills it.
#[derive(Debug)]
pub struct Etcd {
    /// The URL for clients.
    pub url: String,
    folder: tempfile::TempDir,
    ports: (u16, u16),
    /// Additional flags of the command line.
    flags: String,
    shell: Child,
}

impl Etcd {
    /// Starts etcd. Returns `None`, and says so on standard error, if it is not installed.
    ///
    /// # Panics
    /// If it is not installed and the environment variable `REQUIRE_ETCD` is set.
    pub fn start() -> Option<Self> {
        Self::start_with("http", "")
    }

    /// Starts etcd with another URL scheme for clients, and additional flags.
    pub fn start_with(scheme: &str, flags: &str) -> Option<Self> {
        if !is_installed() {
            assert!(std::env::var_os("REQUIRE_ETCD").is_none(), "etcd is required and not installed");
            // Not through the captured output of the test: the reader of the result must see what was skipped.
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

    /// Kills it. Acknowledged writes are on its disk.
    pub fn kill(&mut self) {
        drop(self.shell.stdin.take());
        self.shell.wait().expect("the shell ends");
    }

    /// Restarts it with its data, on the same ports.
    pub fn restart(&mut self) {
        self.kill();
        self.shell = launch(self.folder.path(), &self.url, self.ports.1, &self.flags);
        self.wait();
    }

    /// Restarts it without its data, on the same ports.
    pub fn restart_empty(&mut self) {
        self.kill();
        self.folder = folder();
        self.restart();
    }

    fn wait(&self) {
        let deadline = std::time::Instant::now() + ETCD_TIMEOUT;
        while std::net::TcpStream::connect(("127.0.0.1", self.ports.0)).is_err() {
            assert!(std::time::Instant::now() < deadline, "etcd does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A directory in memory if possible: the data need not survive a power failure.
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
