//! `kube-informer serve`: the embedded API server as a process.

mod kubeconfig;
mod parent;
mod storage;

use self::kubeconfig::Kubeconfig;
use crate::{
    args::{ReadyFormat, ServeOptions},
    exit::{self, Failure},
    seeding::{Owners, seed_pods},
    signals,
    terminal::note,
};
use anyhow::Context;
use kube_embedded_apiserver::{ApiServer, ApiServerBuilder, ServerLimits, StartError, Tls, Tokens};
use std::{
    io::{self, Write},
    path::Path,
};

/// Serves until a signal arrives. The address is printed when the server accepts requests and is seeded.
pub(crate) async fn run(options: ServeOptions) -> anyhow::Result<()> {
    // First the file: if it exists already, the error should come before a long seeding.
    let kubeconfig = options.kubeconfig_out.clone();
    let kubeconfig =
        kubeconfig.map(|path| Kubeconfig::create(path, options.kubeconfig_overwrite)).transpose()?;
    let exit_with_parent = options.exit_with_parent;
    let mut signal = std::pin::pin!(async {
        tokio::select! {
            () = signals::listen() => {}
            () = parent::gone(), if exit_with_parent => {}
        }
    });
    let server = tokio::select! {
        biased;
        () = &mut signal => return Ok(()),
        server = start(&options) => server?,
    };
    if let Some(file) = &kubeconfig {
        file.write(&server.kubeconfig())?;
    }
    announce(&server, &options, kubeconfig.as_ref())?;
    signal.await;
    server.shutdown().await;
    Ok(())
}

async fn start(options: &ServeOptions) -> anyhow::Result<ApiServer> {
    let server = builder(options).await?.start().await.map_err(|error| advise(error, options))?;
    let client = server.local().client();
    let collects = options.garbage_collection || options.like_cluster || options.controller_manager;
    let owners = if collects { Owners::Omitted } else { Owners::Named };
    seed_pods(&client, options.seed_pods, options.seed.unwrap_or(1), owners).await?;
    if options.fault_endpoints && options.seed_pods > 0 {
        // The state to return to includes the pods.
        client.request_text(http::Request::post("/snapshots/start").body(Vec::new())?).await?;
    }
    Ok(server)
}

async fn builder(options: &ServeOptions) -> anyhow::Result<ApiServerBuilder> {
    let mut limits = ServerLimits::default();
    limits.connections = options.max_connections;
    limits.watches = options.max_watches;
    let mut builder = ApiServer::builder()
        .listen(options.listen)
        .limits(limits)
        .controller_manager(options.controller_manager)
        .garbage_collection(options.garbage_collection || options.like_cluster)
        .finalize_pods(options.finalize_pods || options.like_cluster)
        .background_controllers(options.like_cluster)
        .quota_usage(!options.no_quota_usage)
        .enable_admission_plugins(options.enable_admission_plugins.iter().cloned())
        .disable_admission_plugins(options.disable_admission_plugins.iter().cloned())
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
    match (server_certificate(options)?, &options.tls_client_ca) {
        (Some(tls), Some(path)) => Ok(Some(tls.client_authority(read(path)?))),
        (None, Some(_)) => Err(exit::error(
            Failure::Other,
            "client certificates need HTTPS",
            "add --tls-self-signed (or --tls-cert and --tls-key), or leave out --tls-client-ca",
        )),
        (tls, None) => Ok(tls),
    }
}

fn server_certificate(options: &ServeOptions) -> anyhow::Result<Option<Tls>> {
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

/// Warns if other users can read the token file: a token gives full access.
fn warn_if_shared(path: &Path) {
    #[cfg(unix)]
    if let Ok(metadata) = path.metadata()
        && std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0
    {
        let path = path.display();
        note(&format!(
            "warning: other users can read {path}, and a token gives full access; run chmod 600 {path}"
        ));
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// Adds advice about the command line.
fn advise(error: StartError, options: &ServeOptions) -> anyhow::Error {
    let port = options.listen.port();
    match &error {
        StartError::Exposed { .. } => exit::error(
            Failure::Other,
            error.to_string(),
            format!(
                "add --tls-self-signed (or --tls-cert and --tls-key) and --token-file, or use --listen 127.0.0.1:{port}"
            ),
        ),
        StartError::FaultsExposed { .. } => exit::error(
            Failure::Other,
            error.to_string(),
            format!("leave out --fault-endpoints, or use --listen 127.0.0.1:{port}"),
        ),
        _ => error.into(),
    }
}

/// The line for the program that started the server: URL, credentials and files.
fn ready_line(server: &ApiServer, kubeconfig: Option<&Kubeconfig>) -> serde_json::Value {
    serde_json::json!({
        "url": server.url(),
        "pid": std::process::id(),
        "kubeconfig": kubeconfig.map(Kubeconfig::path),
        "certificateAuthority": server.certificate_authority(),
        "token": server.token(),
    })
}

fn announce(server: &ApiServer, options: &ServeOptions, kubeconfig: Option<&Kubeconfig>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if options.output == ReadyFormat::Json {
        writeln!(out, "{}", ready_line(server, kubeconfig))?;
        return out.flush();
    }
    let place = if options.storage == "memory" { "memory" } else { "etcd" };
    let reach = if server.address().ip().is_loopback() {
        "this machine only"
    } else {
        "reachable from other machines"
    };
    let access = match &options.token_file {
        Some(_) => "every token gives full access",
        None => "no authentication",
    };
    writeln!(out, "serving at {} (objects in {place}, {reach}, {access})", server.url())?;
    if options.fault_endpoints {
        writeln!(out, "faults at {0}/faults, snapshots at {0}/snapshots", server.url())?;
    }
    match kubeconfig {
        Some(file) => writeln!(out, "{}", file.export())?,
        None if options.token_file.is_some() => {
            writeln!(out, "clients need a token from the file, or a kubeconfig from --kubeconfig-out FILE")?;
        }
        None => writeln!(out, "kubectl --server={} get namespaces", server.url())?,
    }
    out.flush()
}
