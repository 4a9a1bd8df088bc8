//! `kube-informer serve`: the embedded API server as a process.

use crate::{args::ServeOptions, seeding::seed_pods, signals};
use anyhow::{Context, bail};
use kube_embedded_apiserver::ApiServer;
use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

/// Serves until asked to end. The address is printed when the server answers and everything asked for is in it.
pub(crate) async fn run(options: ServeOptions) -> anyhow::Result<()> {
    check_storage(&options.storage)?;
    let mut builder = ApiServer::builder().port(port(options.listen)?);
    if let Some(seed) = options.seed {
        builder = builder.seed(seed);
    }
    // First the file: a name that is taken should not cost anybody a minute of seeding.
    let kubeconfig = options.kubeconfig_out.map(Kubeconfig::create).transpose()?;
    let server = builder.start().await?;
    seed_pods(&server.local().client(), options.seed_pods, options.seed.unwrap_or(1)).await?;
    if let Some(file) = &kubeconfig {
        file.write(&server.kubeconfig())?;
    }
    announce(&server, kubeconfig.as_ref())?;
    signals::ended().await;
    server.shutdown().await;
    Ok(())
}

fn check_storage(storage: &str) -> anyhow::Result<()> {
    match storage {
        "memory" => Ok(()),
        etcd if etcd == "etcd" || etcd.starts_with("etcd=") => {
            bail!(
                "storage on etcd is not built into this program yet; leave --storage out to keep objects in memory"
            )
        }
        other => bail!("there is no storage {other:?}; use --storage memory"),
    }
}

/// The server has no authentication, so it is offered to this machine alone.
fn port(listen: SocketAddr) -> anyhow::Result<u16> {
    if listen.ip() != Ipv4Addr::LOCALHOST {
        bail!(
            "cannot listen on {}: without TLS and tokens, which are not built in yet, the server serves 127.0.0.1 only; use --listen 127.0.0.1:{}",
            listen.ip(),
            listen.port()
        );
    }
    Ok(listen.port())
}

fn announce(server: &ApiServer, kubeconfig: Option<&Kubeconfig>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "serving at {} (objects in memory, this machine only, no authentication)", server.url())?;
    match kubeconfig {
        Some(file) => writeln!(out, "export KUBECONFIG={}", quoted(&file.path))?,
        None => writeln!(out, "kubectl --server={} get namespaces", server.url())?,
    }
    out.flush()
}

/// A path as a shell reads it back.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// A kubeconfig file of our own making; gone with the server it points to.
struct Kubeconfig {
    path: PathBuf,
    file: File,
}

impl Kubeconfig {
    /// A new file that only its owner may read. One that exists is left alone.
    fn create(path: PathBuf) -> anyhow::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                anyhow::anyhow!(
                    "{} exists already and is left as it is; choose another name for --kubeconfig-out",
                    path.display()
                )
            }
            _ => anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
        })?;
        let path = path.canonicalize().unwrap_or(path);
        Ok(Self { path, file })
    }

    fn write(&self, content: &str) -> anyhow::Result<()> {
        (&self.file)
            .write_all(content.as_bytes())
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // Somebody may have removed it already.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_served() {
        assert_eq!(port("127.0.0.1:8001".parse().unwrap()).unwrap(), 8001);
        for address in ["0.0.0.0:8001", "10.0.0.1:8001", "[::]:8001"] {
            let error = port(address.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains("127.0.0.1:8001"), "{error}");
        }
    }

    #[test]
    fn paths_survive_a_shell() {
        assert_eq!(quoted(Path::new("/tmp/a.kubeconfig")), "/tmp/a.kubeconfig");
        assert_eq!(quoted(Path::new("/tmp/it's here")), r"'/tmp/it'\''s here'");
    }
}
