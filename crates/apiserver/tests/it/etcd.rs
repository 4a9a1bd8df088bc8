//! An etcd of our own for the tests, and what only the backend on it promises.

mod faults;
mod server;

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use kube_embedded_apiserver::{EtcdOptions, EtcdStorage};
use tokio::sync::{Mutex, MutexGuard};

/// Longer than anything here may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Compaction is everybody's and revisions are counted, so tests on the shared etcd take turns.
static TURN: Mutex<u32> = Mutex::const_new(0);
static SHARED: OnceLock<Option<Etcd>> = OnceLock::new();

/// An etcd that ends with this process, however that ends: a shell waits for the end of a pipe and then kills it.
pub(crate) struct Etcd {
    pub(crate) url: String,
    folder: tempfile::TempDir,
    ports: (u16, u16),
    shell: Child,
}

/// A test's time with the shared etcd.
pub(crate) struct Turn {
    number: MutexGuard<'static, u32>,
    pub(crate) etcd: &'static Etcd,
}

/// `None` if there is no etcd to be found; says so, and fails where one is required.
pub(crate) async fn turn() -> Option<Turn> {
    let mut number = TURN.lock().await;
    *number += 1;
    let etcd = SHARED.get_or_init(Etcd::start).as_ref()?;
    Some(Turn { number, etcd })
}

impl Turn {
    pub(crate) fn options(&self) -> EtcdOptions {
        EtcdOptions::new([self.etcd.url.clone()]).prefix(format!("/test{}", *self.number))
    }

    /// A store of this test alone.
    pub(crate) async fn store(&self) -> EtcdStorage {
        EtcdStorage::connect(self.options()).await.expect("etcd answers")
    }
}

impl Etcd {
    /// An etcd of its own.
    pub(crate) fn start() -> Option<Self> {
        if !is_installed() {
            assert!(std::env::var_os("REQUIRE_ETCD").is_none(), "etcd is required and not installed");
            #[expect(
                clippy::print_stderr,
                reason = "whoever reads the result should know what it does not cover"
            )]
            {
                eprintln!("SKIPPED: there is no etcd on the PATH (Debian: apt-get install etcd-server)");
            }
            return None;
        }
        let folder = folder();
        let ports = (free_port(), free_port());
        let shell = launch(folder.path(), ports);
        let etcd = Self { url: format!("http://127.0.0.1:{}", ports.0), folder, ports, shell };
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
        self.shell = launch(self.folder.path(), self.ports);
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

fn launch(folder: &Path, (client, peer): (u16, u16)) -> Child {
    let script = format!(
        "etcd --data-dir '{data}' --listen-client-urls http://127.0.0.1:{client} --advertise-client-urls http://127.0.0.1:{client} \
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
