//! The settings of an informer under test.

use crate::cluster::{config_maps, content_field, pods, widgets};
use harness::NAMESPACES;
use kube_informer::{InformerBuilder, Kind, KubeSource, ListWatch, ObjectKey, Origin, Scope, SharedInformer};
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// The settings of one informer.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// `None` watches all namespaces with one reflector.
    pub(crate) namespaces: Option<Vec<&'static str>>,
    /// Only objects with this value of the label `color`.
    pub(crate) color: Option<&'static str>,
    pub(crate) streaming: bool,
    pub(crate) page_size: Option<u32>,
    /// Events in the backlog of a handler above which they are coalesced.
    pub(crate) handler_bound: usize,
    /// Whether its watches last seconds instead of minutes, so that it notices a silent connection in seconds.
    pub(crate) short_watches: bool,
}

/// Limit for a response of the server, instead of 30 s. It must exceed the 3 s after which the server rejects a
/// resource version that is too large.
pub(crate) const SILENCE_TIMEOUT: Duration = Duration::from_secs(4);
/// Duration of a short watch, instead of five to ten minutes.
pub(crate) const SHORT_WATCH_TIMEOUT: Duration = Duration::from_secs(3);
/// Silence of all watches after which the informer requests the newest resource version, instead of 90 s.
const PROBE_AFTER: Duration = Duration::from_secs(3);

impl Settings {
    pub(crate) fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
            namespaces: None,
            color: None,
            streaming: true,
            page_size: None,
            handler_bound: 1024,
            short_watches: true,
        }
    }

    /// The settings of all informers of a world.
    pub(crate) fn all() -> Vec<Self> {
        let paged =
            |settings: Self, page_size| Self { streaming: false, page_size: Some(page_size), ..settings };
        vec![
            Self::new("configmaps, streaming list", config_maps()),
            paged(Self::new("configmaps, paged list", config_maps()), 7),
            Self {
                namespaces: Some(vec!["a"]),
                handler_bound: 4,
                ..paged(Self::new("configmaps, one namespace", config_maps()), 5)
            },
            Self {
                namespaces: Some(NAMESPACES.to_vec()),
                ..Self::new("configmaps, one watch per namespace", config_maps())
            },
            Self { color: Some("red"), ..Self::new("configmaps, red", config_maps()) },
            Self { handler_bound: 4, ..Self::new("widgets, a kind known at run time", widgets()) },
            Self {
                color: Some("green"),
                namespaces: Some(vec!["a-b", "default"]),
                ..paged(Self::new("widgets, green, two namespaces", widgets()), 3)
            },
            Self::new("pods", pods()),
            Self { short_watches: false, ..Self::new("configmaps, long watches", config_maps()) },
            Self { short_watches: false, ..paged(Self::new("widgets, long watches", widgets()), 11) },
        ]
    }

    /// The seed decides whether a built-in kind is requested in protobuf or in JSON.
    pub(crate) fn build(&self, client: kube::Client, seed: u64) -> SharedInformer<Value> {
        let json_only = fastrand::Rng::with_seed(seed).bool();
        let scope = match &self.namespaces {
            None => Scope::all(),
            Some(names) => Scope::namespaces(names.iter().copied()).expect("valid names"),
        };
        let origin = Arc::new(Origin::new(self.kind.clone()));
        let mut builder = InformerBuilder::new(Arc::clone(&origin))
            .name(&self.name)
            .scope(scope)
            .streaming_list(self.streaming)
            .handler_bound(self.handler_bound)
            .backoff(Duration::from_millis(50), Duration::from_secs(1))
            .deadlines(|deadlines| {
                deadlines.list_response = SILENCE_TIMEOUT;
                deadlines.list_item = SILENCE_TIMEOUT;
                deadlines.watch_response = SILENCE_TIMEOUT;
                deadlines.watch_end = SILENCE_TIMEOUT;
                deadlines.probe_after = PROBE_AFTER;
            })
            .seed(seed);
        if let Some(page_size) = self.page_size {
            builder = builder.page_size(page_size);
        }
        if self.short_watches {
            builder = builder.tweak_watch(|options| options.timeout = Some(SHORT_WATCH_TIMEOUT));
        }
        builder.build(|namespace| self.source(client.clone(), &origin, namespace, json_only))
    }

    fn source(
        &self,
        client: kube::Client,
        origin: &Arc<Origin>,
        namespace: Option<&str>,
        json_only: bool,
    ) -> Arc<dyn ListWatch> {
        let mut source = KubeSource::new(client, Arc::clone(origin), namespace);
        if json_only {
            source = source.json_only();
        }
        if let Some(color) = self.color {
            source = source.labels(&format!("color={color}").parse().expect("a color is a label value"));
        }
        Arc::new(source)
    }

    /// Returns whether an object belongs in the cache.
    pub(crate) fn covers(&self, key: &ObjectKey, object: &Value) -> bool {
        let color = &object["metadata"]["labels"]["color"];
        self.covers_namespace(key.namespace().unwrap_or_default())
            && self.color.is_none_or(|wanted| color == wanted)
    }

    pub(crate) fn covers_namespace(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|names| names.contains(&namespace))
    }

    /// The field of the second index.
    pub(crate) fn indexed_field(&self) -> String {
        format!("{}.{}", content_field(&self.kind), self.indexed_child())
    }

    pub(crate) fn indexed_child(&self) -> &'static str {
        if self.kind.plural == "pods" { "nodeName" } else { "color" }
    }
}
