//! `kube-informer serve`: the embedded API server as a process.

mod kubeconfig;
mod storage;

use self::kubeconfig::Kubeconfig;
use crate::{args::ServeOptions, seeding::seed_pods, signals};
use anyhow::Context;
use kube_embedded_apiserver::{ApiServer, ApiServerBuilder, ServerLimits, StartError, Tls, Tokens};
use std::{
    io::{self, Write},
    path::Path,
};

/// Serves until asked to end. The address is printed when the server answers and everything asked for is in it.
pub(crate) async fn run(options: ServeOptions) -> anyhow::Result<()> {
    // First the file: a name that is taken should not cost anybody a minute of seeding.
    let kubeconfig = options.kubeconfig_out.clone().map(Kubeconfig::create).transpose()?;
    let mut ended = std::pin::pin!(signals::listen());
    let server = tokio::select! {
        biased;
        () = &mut ended => return Ok(()),
        server = start(&options) => server?,
    };
    if let Some(file) = &kubeconfig {
        file.write(&server.kubeconfig())?;
    }
    announce(&server, &options, kubeconfig.as_ref())?;
    ended.await;
    server.shutdown().await;
    Ok(())
}

async fn start(options: &ServeOptions) -> anyhow::Result<ApiServer> {
    let server = builder(options).await?.start().await.map_err(|error| advise(error, options))?;
    seed_pods(&server.local().client(), options.seed_pods, options.seed.unwrap_or(1)).await?;
    Ok(server)
}

async fn builder(options: &ServeOptions) -> anyhow::Result<ApiServerBuilder> {
    let mut limits = ServerLimits::default();
    limits.connections = options.max_connections;
    limits.watches = options.max_watches;
    let mut builder = ApiServer::builder()
        .listen(options.listen)
        .limits(limits)
        .garbage_collection(options.garbage_collection)
        .finalize_pods(options.finalize_pods)
        .fault_endpoints(options.fault_endpoints);
    if let Some(name) = &options.hostname {
        builder = builder.host_name(name);
    }
    if let Some(seed) = options.seed {
        builder = builder.seed(seed);
    }
    if let Some(tls) = tls(options)? {
        builder = builder.tls(tls);
    }
    if let Some(path) = &options.token_file {
        warn_if_shared(path);
        builder = builder.tokens(Tokens::from_file(path)?);
    }
    if let Some(storage) = storage::open(&options.storage, &options.etcd).await? {
        builder = builder.storage(storage);
    }
    Ok(builder)
}

fn tls(options: &ServeOptions) -> anyhow::Result<Option<Tls>> {
    if options.tls_self_signed {
        return Ok(Some(Tls::self_signed()));
    }
    let (Some(certificate), Some(key)) = (&options.tls_cert, &options.tls_key) else { return Ok(None) };
    let tls = Tls::from_files(certificate, key)?;
    Ok(Some(match &options.tls_ca {
        Some(path) => tls.authority(read(path)?),
        None => tls,
    }))
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// A token is full access, so its file is nobody else's.
fn warn_if_shared(path: &Path) {
    #[cfg(unix)]
    if let Ok(metadata) = path.metadata()
        && std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0
    {
        eprintln!("warning: others can read {}; a token is full access: chmod 600 {0}", path.display());
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// What to do about it on this command line.
fn advise(error: StartError, options: &ServeOptions) -> anyhow::Error {
    let port = options.listen.port();
    match &error {
        StartError::Exposed { .. } => anyhow::anyhow!(
            "{error}\nadd --tls-self-signed (or --tls-cert and --tls-key) and --token-file, or use --listen 127.0.0.1:{port}"
        ),
        StartError::FaultsExposed { .. } => {
            anyhow::anyhow!("{error}\nleave out --fault-endpoints, or use --listen 127.0.0.1:{port}")
        }
        _ => error.into(),
    }
}

fn announce(server: &ApiServer, options: &ServeOptions, kubeconfig: Option<&Kubeconfig>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let place = if options.storage == "memory" { "memory" } else { "etcd" };
    let reach = if server.address().ip().is_loopback() { "this machine only" } else { "other machines too" };
    let access = match &options.token_file {
        Some(_) => "every token is full access",
        None => "no authentication",
    };
    writeln!(out, "serving at {} (objects in {place}, {reach}, {access})", server.url())?;
    if options.fault_endpoints {
        writeln!(out, "faults at {}/faults", server.url())?;
    }
    match kubeconfig {
        Some(file) => writeln!(out, "{}", file.export())?,
        None if options.token_file.is_some() => {
            writeln!(out, "give clients a token of the file, or use --kubeconfig-out FILE")?;
        }
        None => writeln!(out, "kubectl --server={} get namespaces", server.url())?,
    }
    out.flush()
}
