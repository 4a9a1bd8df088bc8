//! The contract of storage and of reads. Every test runs on the bare store, through the cache, and through the cache with the classic
//! delegation rule. A new backend is a new way to make a `World`.

mod bookmarks;
mod cache;
mod initial;
mod laws;
mod list;
mod paging;
mod property;
mod slow;
mod threads;
mod update;
mod watch;
mod world;

/// Runs functions over a `World` on every reader.
macro_rules! on_every_reader {
    ($($name:ident),* $(,)?) => {
        on_every_reader!(@ stored, Stored: $($name),*);
        on_every_reader!(@ cached, Cached: $($name),*);
        on_every_reader!(@ classic, Classic: $($name),*);
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
