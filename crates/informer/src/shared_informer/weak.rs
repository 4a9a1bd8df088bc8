//! A handle that does not keep its informer running.

use super::{Core, SharedInformer};
use std::{
    fmt,
    marker::PhantomData,
    sync::{Arc, Weak},
};

/// A handle on a [`SharedInformer`] that does not keep it running.
///
/// For code that the informer itself owns: its handlers, index functions, error hook and transform. A strong handle there is a
/// reference cycle, which keeps the informer and its tasks for ever unless [`stop`](SharedInformer::stop) is called.
///
/// ```
/// # use kube_informer::{HandlerFuncs, SharedInformer, kind_of, testing::FakeSource};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # let pods = FakeSource::new(kind_of::<k8s_openapi::api::core::v1::Pod>()).informer::<serde_json::Value>(|builder| builder);
/// let weak = pods.downgrade();
/// pods.add_handler(HandlerFuncs::new().on_delete(move |gone| {
///     if let Some(pods) = weak.upgrade() {
///         println!("- {}, {} left", gone.key(), pods.lister().len());
///     }
/// }));
/// # }
/// ```
///
/// To read the cache only, a [`Lister`](crate::Lister) is enough: it does not keep the informer running either.
pub struct WeakInformer<T> {
    core: Weak<Core>,
    of: PhantomData<fn() -> T>,
}

impl<T: 'static> SharedInformer<T> {
    /// A handle that does not keep the informer running.
    pub fn downgrade(&self) -> WeakInformer<T> {
        WeakInformer { core: Arc::downgrade(&self.core), of: PhantomData }
    }
}

impl<T: 'static> WeakInformer<T> {
    /// The informer, unless all its strong handles are dropped.
    pub fn upgrade(&self) -> Option<SharedInformer<T>> {
        self.core.upgrade().map(SharedInformer::from_core)
    }
}

impl<T> Clone for WeakInformer<T> {
    fn clone(&self) -> Self {
        Self { core: Weak::clone(&self.core), of: PhantomData }
    }
}

impl<T> fmt::Debug for WeakInformer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakInformer")
    }
}
