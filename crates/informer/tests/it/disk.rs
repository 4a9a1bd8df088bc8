//! Content on disk: memory, secrecy, and disks that fail.

use crate::support::{Errors, pass, secs, source, watched};
use kube_informer::{
    DiskOptions, HandlerFuncs, InformerBuilder, InformerStatus, Kind, Limits, Object, Packing,
    PersistOptions, ReadAsync, SegmentFile, SharedInformer, Stop, Storage, testing::FakeSource,
};
use kube_informer_persist::MemoryDisk;
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    io,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
    thread::{self, ThreadId},
};

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    full_at: Option<usize>,
    fail_reads: bool,
    fail_writes: bool,
    read_by: HashSet<ThreadId>,
}

/// A file in memory that fails on demand. Clones are one file.
#[derive(Clone, Default)]
struct TestFile(Arc<Mutex<State>>);

impl TestFile {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn options(&self) -> DiskOptions {
        let file = self.clone();
        DiskOptions::with_file(move || Ok(Box::new(file.clone()))).cache_bytes(0).buffer_bytes(1 << 20)
    }

    fn on_disk(&self, builder: InformerBuilder) -> InformerBuilder {
        builder.storage(Storage::Disk(self.options()))
    }

    /// Flips a bit in each 512 bytes.
    fn corrupt(&self) {
        self.state().bytes.iter_mut().step_by(512).for_each(|byte| *byte ^= 1);
    }
}

impl SegmentFile for TestFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.state();
        state.read_by.insert(thread::current().id());
        if state.fail_reads {
            return Err(io::Error::other("a bad sector"));
        }
        let rest = state.bytes.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.state();
        if state.fail_writes {
            return Err(io::Error::other("a bad sector"));
        }
        let end = offset as usize + bytes.len();
        if state.full_at.is_some_and(|full| end > full.max(state.bytes.len())) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let len = state.bytes.len().max(end);
        state.bytes.resize(len, 0);
        state.bytes[offset as usize..end].copy_from_slice(bytes);
        Ok(bytes.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.state().bytes.truncate(bytes as usize);
        Ok(())
    }
}

/// An object with content that hardly compresses.
fn noisy(number: u64, version: u64, len: usize) -> Value {
    let mut rng = fastrand::Rng::with_seed(number << 32 | version);
    let text: String = std::iter::repeat_with(|| rng.alphanumeric()).take(len).collect();
    json!({"metadata": {"namespace": "ns", "name": format!("n{number}")}, "data": {"text": text, "version": version.to_string()}})
}

fn number(object: &Object<Value>) -> u64 {
    object.name()[1..].parse().unwrap()
}

fn check_all(informer: &SharedInformer<Value>, count: u64, version: u64, len: usize) {
    let all = informer.lister().list();
    assert_eq!(all.len() as u64, count);
    for object in &all {
        assert!(
            object.decode().unwrap()["data"] == noisy(number(object), version, len)["data"],
            "{object:?}"
        );
    }
}

fn secrets() -> FakeSource {
    FakeSource::new(Kind::namespaced("", "v1", "Secret", "secrets"))
}

#[tokio::test(start_paused = true)]
async fn a_large_secret_takes_little_memory() {
    let (source, file) = (secrets(), TestFile::default());
    for n in 0..200 {
        source.put(noisy(n, 0, 50_000));
    }
    let disk = Storage::Disk(file.options().cache_bytes(64 << 10));
    let (informer, _) = watched(&source, |builder| builder.storage(disk)).await;
    pass(60).await;
    let usage = informer.memory();
    assert!(usage.total() <= 200 * 3000, "{} bytes each: {usage:?}", usage.total() / 200);
    assert!(usage.disk_content > 190 * 35_000 && usage.disk() <= usage.disk_content * 5 / 4, "{usage:?}");
    assert!(usage.cached <= 64 << 10, "{usage:?}");
    assert!(informer.cached_bytes() <= usage.total(), "{} of {usage:?}", informer.cached_bytes());
    check_all(&informer, 200, 0, 50_000);
}

/// A saved cache is as large as the collection: it must not be in memory as a whole before the first of it is written.
#[tokio::test(start_paused = true)]
async fn restoring_keeps_to_the_buffer() {
    let (source, saved) = (secrets(), MemoryDisk::new());
    for n in 0..200 {
        source.put(noisy(n, 0, 50_000));
    }
    for round in 0..2 {
        let file = TestFile::default();
        let options = PersistOptions::on(saved.clone()).cluster_id("test").key([1; 32]).inline();
        let informer = source.informer::<Value>(|builder| file.on_disk(builder).persist(options).unwrap());
        let (at_first, own) = (Arc::new(OnceLock::new()), informer.clone());
        let first = Arc::clone(&at_first);
        informer
            .add_handler(HandlerFuncs::new().on_add(move |_: &Object<Value>, _| _ = first.set(own.memory())));
        informer.start();
        pass(60).await;
        let usage = at_first.get().expect("an initial add");
        assert!(usage.content + usage.garbage + usage.unused <= 2 << 20, "round {round}: {usage:?}");
        check_all(&informer, 200, 0, 50_000);
        assert_eq!(informer.persist_status().to_string(), "saved at version 300");
        informer.stop(Stop::Drop).await;
    }
}

#[tokio::test(start_paused = true)]
async fn plain_content_is_never_in_the_file() {
    let canary = "canary".repeat(2000);
    let (source, file) = (secrets(), TestFile::default());
    let put = |source: &FakeSource| {
        for n in 0..100 {
            source.put(
                json!({"metadata": {"namespace": "ns", "name": format!("n{n}")}, "data": {"text": canary}}),
            );
        }
    };
    put(&source);
    // Raw, because compressed content would not show the words either.
    let (informer, _) = watched(&source, |builder| file.on_disk(builder).packing(Packing::Raw)).await;
    put(&source);
    pass(60).await;
    assert!(informer.memory().disk_content > 500_000, "{:?}", informer.memory());
    assert!(!file.state().bytes.windows(6).any(|window| window == b"canary"));
    for secret in &informer.lister().list() {
        assert_eq!(secret.decode().unwrap()["data"]["text"], canary);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn a_real_file_has_no_name_and_nothing_plain() {
    let source = secrets();
    for n in 0..100 {
        source.put(json!({"metadata": {"namespace": "ns", "name": format!("n{n}")}, "data": {"text": "canary".repeat(2000)}}));
    }
    let disk = |builder: InformerBuilder| builder.storage(Storage::disk()).packing(Packing::Raw);
    let (informer, _) = watched(&source, disk).await;
    pass(60).await;
    assert!(informer.memory().disk() > 500_000, "{:?}", informer.memory());
    let mut found = 0;
    for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
        let path = entry.unwrap().path();
        let Ok(target) = std::fs::read_link(&path) else { continue };
        if target.starts_with(std::env::temp_dir()) && target.to_string_lossy().ends_with("(deleted)") {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(6).any(|window| window == b"canary"));
            found += bytes.len();
        }
    }
    assert!(found >= informer.memory().disk_content, "{found}");
}

#[tokio::test(start_paused = true)]
async fn content_that_is_corrupted_is_fetched_again() {
    let (source, file, errors) = (source(), TestFile::default(), Errors::default());
    for n in 0..100 {
        source.put(noisy(n, 0, 10_000));
    }
    let configure = |builder| errors.hook(file.on_disk(builder)).packing(Packing::Raw);
    let (informer, recorder) = watched(&source, configure).await;
    pass(10).await;
    let held = informer.lister().list();
    let on_disk = |object: &&Object<Value>| !object.is_content_in_memory();
    let victim = held.iter().find(on_disk).unwrap();
    let copy = Object::<Value>::parse(source.origin(), victim.json().unwrap(), &Limits::default()).unwrap();
    assert!(victim.is_same_content(&copy));
    file.corrupt();
    let lost = informer.lister().get(victim.key()).unwrap();
    let error = lost.decode().unwrap_err();
    assert!(error.is_unavailable() && lost.is_content_lost(), "{error}");
    assert!(lost.json().is_err_and(|error| error.is_unavailable()));
    assert!(lost.edit(|_| ()).is_err() && !lost.is_same_content(&copy));
    pass(10).await;
    let again = informer.lister().get(victim.key()).unwrap();
    assert!(again.decode().unwrap()["data"] == noisy(number(&again), 0, 10_000)["data"]);
    let update = format!("~{}@{1}>{1}", victim.name(), victim.resource_version());
    assert!(recorder.take().contains(&update), "the handler may have failed to read it");
    let errors = errors.take();
    assert!(errors.iter().any(|error| error.contains("cannot be read from its file")), "{errors:?}");
    assert!(victim.decode().unwrap_err().is_unavailable(), "a state that only a reader holds is gone");
}

#[tokio::test(start_paused = true)]
async fn lists_for_lost_content_are_a_minute_apart() {
    let (source, file) = (source(), TestFile::default());
    for n in 0..100 {
        source.put(noisy(n, 0, 10_000));
    }
    let (informer, _) = watched(&source, |builder| file.on_disk(builder).packing(Packing::Raw)).await;
    pass(10).await;
    file.state().fail_reads = true;
    let lists = source.requests().len();
    for _ in 0..60 {
        informer.lister().list().iter().for_each(|object| drop(object.decode()));
        pass(10).await;
    }
    let lists = source.requests().len() - lists;
    // Each list and the watch after it.
    assert!((5..=26).contains(&lists), "{lists} requests in ten minutes");
    file.state().fail_reads = false;
    pass(120).await;
    check_all(&informer, 100, 0, 10_000);
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_stops_reading_and_loses_nothing() {
    let (source, file, errors) = (source(), TestFile::default(), Errors::default());
    file.state().full_at = Some(400_000);
    for n in 0..300 {
        source.put(noisy(n, 0, 10_000));
    }
    let informer =
        source.informer::<Value>(|builder| errors.hook(file.on_disk(builder)).packing(Packing::Raw));
    informer.start();
    assert!(informer.synced(secs(300)).await.is_err());
    let status = informer.status();
    assert!(matches!(&status, InformerStatus::Retrying { why, .. } if why.contains("disk")), "{status}");
    let usage = informer.memory();
    assert!(usage.content < 1_200_000, "bounded: {usage:?}");
    assert_eq!(errors.take().iter().filter(|error| error.contains("written to disk")).count(), 1);
    file.state().full_at = None;
    informer.synced(secs(60)).await.unwrap();
    pass(60).await;
    assert!(informer.status().is_live(), "{}", informer.status());
    check_all(&informer, 300, 0, 10_000);

    // The same while watching.
    file.state().fail_writes = true;
    for n in 0..300 {
        source.put(noisy(n, 1, 10_000));
    }
    source.delete("ns/n7");
    pass(300).await;
    assert!(!informer.status().is_live(), "{}", informer.status());
    for object in &informer.lister().list() {
        let version = object.decode().unwrap()["data"]["version"].as_str().unwrap().parse().unwrap();
        assert!(object.decode().unwrap()["data"] == noisy(number(object), version, 10_000)["data"]);
    }
    assert_eq!(
        errors.take().iter().filter(|error| error.contains("written to disk")).count(),
        1,
        "again once"
    );
    file.state().fail_writes = false;
    pass(120).await;
    assert!(informer.status().is_live(), "{}", informer.status());
    assert!(informer.lister().get(&"ns/n7".parse().unwrap()).is_none());
    check_all(&informer, 299, 1, 10_000);
}

#[tokio::test(start_paused = true)]
async fn an_index_forgets_an_object_that_cannot_be_read_any_more() {
    let (source, file) = (source(), TestFile::default());
    for n in 0..100 {
        source.put(noisy(n, n, 10_000));
    }
    let (informer, _) = watched(&source, |builder| file.on_disk(builder).packing(Packing::Raw)).await;
    pass(10).await;
    let by_version = informer.index_field("data.version").unwrap();
    let found = |version: &str| -> Vec<String> {
        let found = informer.lister().by(&by_version, version).unwrap();
        found.iter().map(|object| object.name().to_owned()).collect()
    };
    assert_eq!(found("3"), ["n3"]);
    assert!(!informer.lister().get(&"ns/n3".parse().unwrap()).unwrap().is_content_in_memory());
    file.state().fail_reads = true;
    source.put(noisy(3, 1000, 10_000));
    pass(1).await;
    assert_eq!((found("3"), found("1000")), (vec![], vec!["n3".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn an_async_read_does_not_block_the_runtime() {
    let (source, file) = (source(), TestFile::default());
    for n in 0..100 {
        source.put(noisy(n, 0, 10_000));
    }
    let (informer, _) = watched(&source, |builder| file.on_disk(builder).packing(Packing::Raw)).await;
    pass(10).await;
    let all = informer.lister().list();
    file.state().read_by.clear();
    for object in &all {
        let expected = noisy(number(object), 0, 10_000);
        assert_eq!(object.decode_async().await.unwrap()["data"], expected["data"]);
        assert_eq!(object.view_async::<Value>().await.unwrap()["data"], expected["data"]);
        assert_eq!(object.json_async().await.unwrap(), object.json().unwrap());
    }
    let this = thread::current().id();
    // `json` of above reads in this thread.
    assert!(file.state().read_by.remove(&this) && !file.state().read_by.is_empty());
    for object in &all {
        object.decode_async().await.unwrap();
    }
    assert!(!file.state().read_by.contains(&this));
    file.state().fail_reads = true;
    let lost = all.iter().find(|object| !object.is_content_in_memory()).unwrap();
    assert!(lost.decode_async().await.unwrap_err().is_unavailable());
}
