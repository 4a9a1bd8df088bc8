//! What an informer is set up to follow, and how.

use crate::cluster::{NAMESPACES, config_maps, content_field, pods, widgets};
use kube_informer::{InformerBuilder, Kind, KubeSource, ListWatch, ObjectKey, Origin, Scope, SharedInformer};
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// How one informer is set up.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// `None` is everything, in one piece.
    pub(crate) namespaces: Option<Vec<&'static str>>,
    /// Only objects with this label.
    pub(crate) color: Option<&'static str>,
    pub(crate) streaming: bool,
    pub(crate) page: Option<u32>,
    /// Events a handler may be behind before it gets net effects.
    pub(crate) bound: usize,
    /// Whether its watches are asked to last seconds instead of minutes, so that silence is noticed in seconds.
    pub(crate) brisk: bool,
}

/// How long a server may keep silent, in place of 30 s. It takes 3 s to say that a version lies in its future.
pub(crate) const PATIENCE: Duration = Duration::from_secs(4);
/// How long a brisk watch lasts, in place of five to ten minutes.
pub(crate) const BRISK_WATCH: Duration = Duration::from_secs(3);
/// How long watches may say nothing before the server is asked how far it is, in place of 90 s.
const PROBE_AFTER: Duration = Duration::from_secs(3);

impl Plan {
    pub(crate) fn new(name: impl Into<String>, kind: Kind) -> Self {
        let (namespaces, color, page) = (None, None, None);
        Self { name: name.into(), kind, namespaces, color, streaming: true, page, bound: 1024, brisk: true }
    }

    /// The informers of a world.
    pub(crate) fn all() -> Vec<Self> {
        let paged = |plan: Self, page| Self { streaming: false, page: Some(page), ..plan };
        vec![
            Self::new("configmaps, streaming list", config_maps()),
            paged(Self::new("configmaps, paged list", config_maps()), 7),
            Self {
                namespaces: Some(vec!["a"]),
                bound: 4,
                ..paged(Self::new("configmaps, one namespace", config_maps()), 5)
            },
            Self {
                namespaces: Some(NAMESPACES.to_vec()),
                ..Self::new("configmaps, each namespace by itself", config_maps())
            },
            Self { color: Some("red"), ..Self::new("configmaps, red ones", config_maps()) },
            Self { bound: 4, ..Self::new("widgets, a kind known at run time", widgets()) },
            Self {
                color: Some("green"),
                namespaces: Some(vec!["a-b", "default"]),
                ..paged(Self::new("widgets, green ones of two namespaces", widgets()), 3)
            },
            Self::new("pods", pods()),
            Self { brisk: false, ..Self::new("configmaps, long watches", config_maps()) },
            Self { brisk: false, ..paged(Self::new("widgets, long watches", widgets()), 11) },
        ]
    }

    pub(crate) fn build(&self, client: kube::Client, seed: u64) -> SharedInformer<Value> {
        let scope = match &self.namespaces {
            None => Scope::All,
            Some(names) => Scope::namespaces(names.iter().copied()),
        };
        let origin = Arc::new(Origin::new(self.kind.clone()));
        let mut builder = InformerBuilder::new(Arc::clone(&origin))
            .name(&self.name)
            .scope(scope)
            .streaming_list(self.streaming)
            .handler_bound(self.bound)
            .backoff(Duration::from_millis(50), Duration::from_secs(1))
            .probe_after(PROBE_AFTER)
            .seed(seed);
        if let Some(page) = self.page {
            builder = builder.page_size(page);
        }
        builder.build(|namespace| self.source(client.clone(), &origin, namespace))
    }

    fn source(
        &self,
        client: kube::Client,
        origin: &Arc<Origin>,
        namespace: Option<&str>,
    ) -> Arc<dyn ListWatch> {
        let mut source = KubeSource::new(client, Arc::clone(origin), namespace).patience(PATIENCE);
        if let Some(color) = self.color {
            source = source.labels(&format!("color={color}"));
        }
        if self.brisk {
            source = source.tweak_watch(|options| options.timeout = Some(BRISK_WATCH));
        }
        Arc::new(source)
    }

    /// Whether an object belongs into the cache.
    pub(crate) fn covers(&self, key: &ObjectKey, object: &Value) -> bool {
        let color = &object["metadata"]["labels"]["color"];
        self.covers_namespace(key.namespace().unwrap_or_default())
            && self.color.is_none_or(|wanted| color == wanted)
    }

    pub(crate) fn covers_namespace(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|names| names.contains(&namespace))
    }

    /// The field of its second index.
    pub(crate) fn indexed_field(&self) -> String {
        format!("{}.{}", content_field(&self.kind), self.indexed_child())
    }

    pub(crate) fn indexed_child(&self) -> &'static str {
        if self.kind.plural == "pods" { "nodeName" } else { "color" }
    }
}
