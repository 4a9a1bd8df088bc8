//! What a reconcile function receives besides its object.

mod writes;

use crate::run::Shared;
use kube_informer::ObjectKey;
use std::{fmt, sync::Arc};

/// The context of one reconcile. Cloning is a reference count.
#[derive(Clone)]
pub struct Context {
    shared: Arc<Shared>,
    key: ObjectKey,
    failures: u32,
}

impl Context {
    pub(crate) fn new(shared: Arc<Shared>, key: ObjectKey, failures: u32) -> Self {
        Self { shared, key, failures }
    }

    /// The key that is reconciled.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The name of the controller.
    pub fn controller(&self) -> &str {
        &self.shared.settings.name
    }

    /// Number of failures of this key in a row before this reconcile.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// The client of the controller: for reads from the server, and for requests that have no method here. Writes with it are
    /// not remembered.
    pub fn client(&self) -> &kube::Client {
        &self.shared.client
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({} {})", self.controller(), self.key)
    }
}
