//! `kube-informer watch`: prints the changes of any kinds of objects.

mod changes;
mod health;
mod kinds;
mod masking;
mod printer;
mod progress;
mod skipped;
mod summary;

use crate::{
    args::{Output, WatchOptions},
    cluster::{Cluster, request_failed},
    signals,
    terminal::note,
};
use anyhow::bail;
use futures_util::{StreamExt, stream};
use kinds::Catalogue;
use kube_informer::{
    Event, EventStream, Index, InformerFactory, Kind, Scope, ScopeError, SharedInformer, informer_client,
};
use masking::Masking;
use printer::Printer;
use serde_json::Value;
use skipped::Skipped;
use std::{io, time::Instant};

/// A kind that is watched.
pub(crate) struct Watched {
    pub(crate) kind: Kind,
    pub(crate) informer: SharedInformer<Value>,
    /// The fields of `--index`, with their indexes.
    pub(crate) indexes: Vec<(String, Index<String>)>,
}

/// Syncs, then prints every change until a signal arrives.
pub(crate) async fn run(options: WatchOptions) -> anyhow::Result<()> {
    let cluster = match options.embedded {
        true => Cluster::embedded(options.seed_pods).await?,
        false => Cluster::configured(options.context.clone()).await?,
    };
    let url = cluster.url();
    let client = informer_client(cluster.config.clone())?;
    let catalogue = Catalogue::discover(&client).await.map_err(|error| request_failed(error, &url))?;
    let kinds: Vec<Kind> = options.kinds.iter().map(|name| catalogue.find(name)).collect::<Result<_, _>>()?;
    let skipped = Skipped::default();
    let factory = factory(client, &options, &skipped);
    let scope = scope(&options, &cluster)?;
    let watched: Vec<Watched> =
        kinds.into_iter().map(|kind| watched(&factory, kind, &scope, &options)).collect::<Result<_, _>>()?;
    let started = Instant::now();
    let result = tokio::select! {
        result = follow(&factory, &watched, &options, &skipped, started, &url) => result,
        () = signals::received() => Ok(()),
    };
    factory.shutdown().await;
    cluster.shutdown().await;
    skipped.report_now().iter().for_each(|line| note(line));
    if result.is_ok() && !options.once && !options.index.is_empty() {
        ignore_if_closed(summary::print_indexes(&watched))?;
    }
    match result {
        Err(error) if error.downcast_ref::<io::Error>().is_some_and(is_closed) => Ok(()),
        other => other,
    }
}

fn factory(client: kube::Client, options: &WatchOptions, skipped: &Skipped) -> InformerFactory {
    let skipped = skipped.clone();
    let builder = InformerFactory::builder(client).on_error(move |error| skipped.record_error(error));
    match options.resync {
        Some(period) => builder.resync(period).build(),
        None => builder.build(),
    }
}

fn scope(options: &WatchOptions, cluster: &Cluster) -> anyhow::Result<Scope> {
    let scope = match options.namespace.as_slice() {
        // All namespaces of an embedded cluster belong to its user.
        [] if options.all_namespaces || options.embedded => Ok(Scope::all()),
        [] => Scope::namespace(&cluster.config.default_namespace),
        names => Scope::namespaces(names.iter().cloned()),
    };
    scope.map_err(|error| match error {
        ScopeError::EmptyName => {
            anyhow::anyhow!("the name of a namespace is empty; --all-namespaces watches all of them")
        }
        error => error.into(),
    })
}

fn watched(
    factory: &InformerFactory,
    kind: Kind,
    scope: &Scope,
    options: &WatchOptions,
) -> anyhow::Result<Watched> {
    let scope = if kind.namespaced { scope.clone() } else { Scope::all() };
    let informer: SharedInformer<Value> = factory.of_kind(kind.clone(), |defaults| {
        defaults
            .scope(scope)
            .label_selector(options.selector.clone().unwrap_or_default())
            .field_selector(options.field_selector.clone().unwrap_or_default())
    });
    let index = |path: &String| {
        if Masking::new(options.show_secrets).hides(&kind, &path.parse()?) {
            bail!("{path} of {kind} may contain secrets; add --show-secrets to use it as an index");
        }
        Ok((path.clone(), informer.index_field(path)?))
    };
    let indexes = options.index.iter().map(index).collect::<anyhow::Result<_>>()?;
    Ok(Watched { kind, informer, indexes })
}

async fn follow(
    factory: &InformerFactory,
    watched: &[Watched],
    options: &WatchOptions,
    skipped: &Skipped,
    started: Instant,
    url: &str,
) -> anyhow::Result<()> {
    // Before the start, so that no event is missed and those of the initial list are marked.
    let events: Vec<EventStream<Value>> = match options.once {
        true => Vec::new(),
        false => watched.iter().map(|one| one.informer.events()).collect(),
    };
    factory.start();
    progress::synced(watched, options.sync_timeout).await?;
    if options.once {
        summary::print(watched, started.elapsed())?;
        return Ok(summary::print_indexes(watched)?);
    }
    for one in watched {
        let (count, took) = (one.informer.lister().len(), started.elapsed());
        note(&format!("synced {count} {} from {url} in {took:.2?}; changes follow, Ctrl-C ends", one.kind));
    }
    summary::print_indexes(watched)?;
    let mut printer = Printer::new(options, skipped.clone());
    let mut events = stream::select_all(events.into_iter().map(StreamExt::boxed));
    let health = health::report(watched, skipped);
    let shown = async {
        while let Some(event) = events.next().await {
            if options.output == Output::Changes && matches!(event, Event::Added { initial: true, .. }) {
                continue;
            }
            printer.show(&event)?;
        }
        Ok::<(), anyhow::Error>(())
    };
    tokio::select! {
        result = shown => result,
        () = health => Ok(()),
    }
}

/// Whether the reader of a pipe has closed it, as `head` does. That is not a failure.
pub(crate) fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

fn ignore_if_closed(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if is_closed(&error) { Ok(()) } else { Err(error) })
}
