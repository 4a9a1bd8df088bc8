//! Controllers on streams of the user.

use super::{Controller, Trigger, informer::Errors, owners};
use crate::kube_runtime::{
    reflector::{ObjectRef, Store},
    watcher,
};
use futures_util::{Stream, StreamExt, stream};
use kube::Resource;
use serde::de::DeserializeOwned;
use std::{fmt::Debug, sync::Arc};

impl<K> Controller<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Clone,
    K::Scope: 'static,
{
    /// A controller of the objects of a store, which reconciles those that `trigger` yields. The stream that fills the store has
    /// to be polled elsewhere, if it is not `trigger` itself.
    pub fn for_stream(
        trigger: impl Stream<Item = watcher::Result<K>> + Send + 'static,
        reader: Store<K>,
    ) -> Self
    where
        K::DynamicType: Default,
    {
        Self::for_stream_with(trigger, reader, K::DynamicType::default())
    }

    /// Like [`for_stream`](Self::for_stream), for a type that is known at run time.
    pub fn for_stream_with(
        trigger: impl Stream<Item = watcher::Result<K>> + Send + 'static,
        reader: Store<K>,
        dyntype: K::DynamicType,
    ) -> Self {
        let mut controller = Self::reading(reader, dyntype.clone(), Errors::default());
        let trigger = trigger.map(move |object| {
            object.map(|object| Trigger::Key(ObjectRef::from_obj_with(&object, dyntype.clone()).key()))
        });
        controller.triggers.push(trigger.boxed());
        controller
    }

    /// A controller of the objects of a shared store, which reconciles those that `trigger` yields: a
    /// [subscription](crate::kube_runtime::reflector::ReflectHandle).
    pub fn for_shared_stream(trigger: impl Stream<Item = Arc<K>> + Send + 'static, reader: Store<K>) -> Self
    where
        K::DynamicType: Default,
    {
        Self::for_shared_stream_with(trigger, reader, K::DynamicType::default())
    }

    /// Like [`for_shared_stream`](Self::for_shared_stream), for a type that is known at run time.
    pub fn for_shared_stream_with(
        trigger: impl Stream<Item = Arc<K>> + Send + 'static,
        reader: Store<K>,
        dyntype: K::DynamicType,
    ) -> Self {
        Self::for_stream_with(trigger.map(|object| Ok((*object).clone())), reader, dyntype)
    }

    /// Reconciles the owners of the objects that `trigger` yields.
    pub fn owns_stream<Child: Resource + Send + 'static>(
        mut self,
        trigger: impl Stream<Item = watcher::Result<Child>> + Send + 'static,
    ) -> Self {
        let owner = self.kind.clone();
        let keys = trigger.flat_map(move |child| {
            stream::iter(match child {
                Ok(child) => owners(&child, &owner).into_iter().map(|key| Ok(Trigger::Key(key))).collect(),
                Err(error) => vec![Err(error)],
            })
        });
        self.triggers.push(keys.boxed());
        self
    }

    /// Reconciles the owners of the objects that `trigger` yields: a
    /// [subscription](crate::kube_runtime::reflector::ReflectHandle).
    pub fn owns_shared_stream<Child: Resource + Send + Sync + 'static>(
        mut self,
        trigger: impl Stream<Item = Arc<Child>> + Send + 'static,
    ) -> Self {
        let owner = self.kind.clone();
        let keys = trigger.flat_map(move |child| stream::iter(owners(&*child, &owner)));
        self.triggers.push(keys.map(|key| Ok(Trigger::Key(key))).boxed());
        self
    }

    /// Reconciles the objects that `mapper` returns for those that `trigger` yields.
    pub fn watches_stream<Other, I>(
        mut self,
        trigger: impl Stream<Item = watcher::Result<Other>> + Send + 'static,
        mapper: impl Fn(Other) -> I + Send + Sync + 'static,
    ) -> Self
    where
        Other: Resource + Send + 'static,
        I: IntoIterator<Item = ObjectRef<K>> + 'static,
    {
        let keys = trigger.flat_map(move |other| {
            let keys: Vec<_> = match other {
                Ok(other) => mapper(other).into_iter().map(|one| Ok(Trigger::Key(one.key()))).collect(),
                Err(error) => vec![Err(error)],
            };
            stream::iter(keys)
        });
        self.triggers.push(keys.boxed());
        self
    }

    /// Reconciles the objects that `mapper` returns for those that `trigger` yields: a
    /// [subscription](crate::kube_runtime::reflector::ReflectHandle).
    pub fn watches_shared_stream<Other, I>(
        mut self,
        trigger: impl Stream<Item = Arc<Other>> + Send + 'static,
        mapper: impl Fn(Arc<Other>) -> I + Send + Sync + 'static,
    ) -> Self
    where
        Other: Resource + Send + Sync + 'static,
        I: IntoIterator<Item = ObjectRef<K>> + 'static,
    {
        let keys = trigger.flat_map(move |other| {
            let keys: Vec<_> = mapper(other).into_iter().map(|one| Ok(Trigger::Key(one.key()))).collect();
            stream::iter(keys)
        });
        self.triggers.push(keys.boxed());
        self
    }
}
