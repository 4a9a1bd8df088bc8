//! The contract of storage and of reads. Every test runs on the bare store, through the cache, and through the cache with all feature
//! gates disabled. A new backend is another way to create a `World`.

mod bookmarks;
mod cache;
mod guarantees;
mod initial;
mod list;
mod paging;
mod property;
mod slow;
mod threads;
mod update;
mod watch;
pub(crate) mod world;

/// Runs functions over a `World` on every reader.
macro_rules! on_every_reader {
    ($($name:ident),* $(,)?) => {
        on_every_reader!(@ stored, Stored: $($name),*);
        on_every_reader!(@ cached, Cached: $($name),*);
        on_every_reader!(@ no_gates, NoGates: $($name),*);
    };
    (@ $reader:ident, $variant:ident: $($name:ident),*) => {
        mod $reader {
            use crate::contract::world::{Reader, World};
            $(
                #[tokio::test(start_paused = true)]
                async fn $name() {
                    super::$name(World::new(Reader::$variant).await).await;
                }
            )*
        }
    };
}
use on_every_reader;

/// Runs the same functions on etcd, in real time, except those that wait for simulated hours and, on the bare store,
/// those that read a stream without waiting for the network.
#[cfg(feature = "etcd")]
macro_rules! on_etcd {
    ($($reader:ident, $variant:ident: $($name:ident),* $(,)?);* $(;)?) => {
        $(mod $reader {
            use std::sync::Arc;

            use kube_embedded_apiserver::watch_cache::CacheOptions;

            use crate::contract::world::{Reader, World};
            $(
                #[tokio::test]
                async fn $name() {
                    let Some(etcd) = crate::etcd::shared().await else { return };
                    let storage = Arc::new(etcd.store().await);
                    super::$name(World::on(storage, Reader::$variant, CacheOptions::default()).await).await;
                }
            )*
        })*
    };
}
#[cfg(feature = "etcd")]
use on_etcd;
