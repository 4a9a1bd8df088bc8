//! Reading the cache.

use crate::indexer::{Index, IndexMissing, Indexer, Objects, Snapshot};
use kube_informer_wire::{LabelSelector, Labels, Object, ObjectKey, ResourceVersion};
use std::{borrow::Borrow, fmt, marker::PhantomData, sync::Arc};

/// Reads the cache of an informer. Cheap to clone; never talks to the server, never waits for the writer.
///
/// Every call reads one consistent snapshot, in the order in which the server lists objects. Use one
/// [`snapshot`](Self::snapshot) for several reads that must be consistent with each other.
pub struct Lister<T> {
    indexer: Arc<Indexer>,
    of: PhantomData<fn() -> T>,
}

impl<T> Lister<T> {
    pub(crate) fn new(indexer: Arc<Indexer>) -> Self {
        Self { indexer, of: PhantomData }
    }

    /// The current state of the cache. It does not change any more.
    pub fn snapshot(&self) -> CacheSnapshot<T> {
        CacheSnapshot { snapshot: self.indexer.snapshot(), of: PhantomData }
    }

    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<Object<T>> {
        self.indexer.look(|snapshot| snapshot.get(key).map(Object::cast))
    }

    /// All objects: the same as [`snapshot`](Self::snapshot). Nothing is copied, however many there are.
    ///
    /// ```
    /// # use kube_informer::Lister;
    /// # fn example(lister: Lister<serde_json::Value>) {
    /// for pod in &lister.list() {
    ///     println!("{}", pod.name());
    /// }
    /// # }
    /// ```
    pub fn list(&self) -> CacheSnapshot<T> {
        self.snapshot()
    }

    /// The objects of a namespace.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Object<T>> {
        self.snapshot().in_namespace(namespace)
    }

    /// The objects whose labels match a selector.
    ///
    /// ```
    /// # use kube_informer::{LabelSelector, Lister};
    /// # fn example(lister: Lister<serde_json::Value>) -> Result<(), Box<dyn std::error::Error>> {
    /// let front: LabelSelector = "app=cart,tier in (front, edge)".parse()?;
    /// let pods = lister.matching(&front);
    /// # Ok(()) }
    /// ```
    pub fn matching(&self, selector: &LabelSelector) -> Vec<Object<T>> {
        self.snapshot().matching(selector)
    }

    /// The objects that an index files under a value. The value may be borrowed: `by(&by_node, "node-1")`.
    pub fn by<V, Q>(&self, index: &Index<V>, value: &Q) -> Result<Vec<Object<T>>, IndexMissing>
    where
        V: Ord + Borrow<Q> + Send + Sync + 'static,
        Q: Ord + ?Sized,
    {
        self.indexer.look(|snapshot| by(snapshot, index, value))
    }

    /// The distinct values of an index, in order.
    pub fn values<V: Ord + Clone + Send + Sync + 'static>(
        &self,
        index: &Index<V>,
    ) -> Result<Vec<V>, IndexMissing> {
        self.snapshot().values(index)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.indexer.look(Snapshot::len)
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Clone for Lister<T> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.indexer))
    }
}

impl<T> fmt::Debug for Lister<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lister({} objects)", self.len())
    }
}

/// One consistent state of a cache. Cloning is a reference count.
pub struct CacheSnapshot<T> {
    snapshot: Arc<Snapshot>,
    of: PhantomData<fn() -> T>,
}

impl<T> CacheSnapshot<T> {
    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<Object<T>> {
        self.snapshot.get(key).map(Object::cast)
    }

    /// All objects in the server's order, borrowed: clone those that are to be kept.
    pub fn iter(&self) -> CacheIter<'_, T> {
        CacheIter { objects: self.snapshot.objects(), of: PhantomData }
    }

    /// The objects of a namespace.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Object<T>> {
        self.snapshot.namespace(namespace).map(Object::cast).collect()
    }

    /// The objects whose labels match a selector.
    pub fn matching(&self, selector: &LabelSelector) -> Vec<Object<T>> {
        // Neighbouring objects often share their labels, which are then matched once.
        let mut last = None;
        let mut matches = |labels: &Labels| match &last {
            Some((seen, matched)) if labels.is_identical(seen) => *matched,
            _ => {
                let matched = selector.matches(labels);
                last = Some((labels.clone(), matched));
                matched
            }
        };
        self.snapshot.objects().filter(|object| matches(object.labels())).map(Object::cast).collect()
    }

    /// The objects that an index files under a value. The value may be borrowed: `by(&by_node, "node-1")`.
    pub fn by<V, Q>(&self, index: &Index<V>, value: &Q) -> Result<Vec<Object<T>>, IndexMissing>
    where
        V: Ord + Borrow<Q> + Send + Sync + 'static,
        Q: Ord + ?Sized,
    {
        by(&self.snapshot, index, value)
    }

    /// The distinct values of an index, in order.
    pub fn values<V: Ord + Clone + Send + Sync + 'static>(
        &self,
        index: &Index<V>,
    ) -> Result<Vec<V>, IndexMissing> {
        Ok(self.snapshot.index::<V>(index.id)?.values())
    }

    /// Number of objects that an index omits because it cannot read them.
    pub fn omitted_by<V>(&self, index: &Index<V>) -> Result<usize, IndexMissing> {
        self.snapshot.omitted(index.id)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.snapshot.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The version this state shows; `None` before the initial list, and for an informer of several namespaces
    /// (each has its own, see [`namespace_version`](Self::namespace_version)).
    pub fn resource_version(&self) -> Option<ResourceVersion> {
        match self.snapshot.partitions().len() {
            1 => self.snapshot.position(0).cloned(),
            _ => None,
        }
    }

    /// Number of complete lists from which this state was made. As long as it stays the same, the cache received each change of
    /// an object, in order; a list leaves out the changes between the states that it replaces and those that it shows.
    pub fn lists(&self) -> u64 {
        self.snapshot.lists()
    }

    /// The version that objects of a namespace are shown at.
    pub fn namespace_version(&self, namespace: &str) -> Option<ResourceVersion> {
        let partition = self.snapshot.partitions().of_namespace(Some(namespace))?;
        self.snapshot.position(partition).cloned()
    }
}

impl<T> Clone for CacheSnapshot<T> {
    fn clone(&self) -> Self {
        Self { snapshot: Arc::clone(&self.snapshot), of: PhantomData }
    }
}

impl<T> fmt::Debug for CacheSnapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CacheSnapshot({} objects)", self.len())
    }
}

impl<'a, T: 'a> IntoIterator for &'a CacheSnapshot<T> {
    type Item = &'a Object<T>;
    type IntoIter = CacheIter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The objects of a [`CacheSnapshot`], in the server's order.
#[must_use = "iterators do nothing unless consumed"]
pub struct CacheIter<'a, T> {
    objects: Objects<'a>,
    of: PhantomData<fn() -> T>,
}

impl<'a, T: 'a> Iterator for CacheIter<'a, T> {
    type Item = &'a Object<T>;

    fn next(&mut self) -> Option<Self::Item> {
        self.objects.next().map(Object::cast_ref)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.objects.size_hint()
    }
}

impl<'a, T: 'a> DoubleEndedIterator for CacheIter<'a, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.objects.next_back().map(Object::cast_ref)
    }
}

impl<'a, T: 'a> ExactSizeIterator for CacheIter<'a, T> {}

impl<T> fmt::Debug for CacheIter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CacheIter({} objects left)", self.objects.size_hint().0)
    }
}

fn by<T, V, Q>(snapshot: &Snapshot, index: &Index<V>, value: &Q) -> Result<Vec<Object<T>>, IndexMissing>
where
    V: Ord + Borrow<Q> + Send + Sync + 'static,
    Q: Ord + ?Sized,
{
    Ok(snapshot.index::<V>(index.id)?.get(value).map(Object::cast).collect())
}
