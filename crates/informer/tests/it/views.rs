//! Views that are kept: decoded once, read as pointers.

use crate::support::{cached, pass, settle, source, started, watched};
use kube_informer::{Bookmark, HeapSize, Object, Packing, Transform, WatchEvent};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

fn object(name: &str, size: u64) -> Value {
    json!({"metadata": {"namespace": "ns", "name": name}, "data": {"size": size, "text": "x".repeat(300)}})
}

/// A view that counts how often it is decoded.
macro_rules! counted {
    ($view:ident, $decoded:ident) => {
        static $decoded: AtomicUsize = AtomicUsize::new(0);

        #[derive(Debug, HeapSize)]
        struct $view {
            size: u64,
            text: String,
        }

        impl<'de> Deserialize<'de> for $view {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(Deserialize)]
                struct Data {
                    size: u64,
                    text: String,
                }
                #[derive(Deserialize)]
                struct Whole {
                    data: Data,
                }
                $decoded.fetch_add(1, Relaxed);
                let Whole { data } = Whole::deserialize(deserializer)?;
                Ok(Self { size: data.size, text: data.text })
            }
        }
    };
}

#[tokio::test(start_paused = true)]
async fn a_view_is_decoded_once_on_arrival() {
    counted!(Sizes, DECODED);
    let source = source();
    (0..50).for_each(|n| _ = source.put(object(&format!("n{n}"), n)));
    let informer = source.informer::<Value>(|builder| builder);
    let sizes = informer.keep_view::<Sizes>();
    started(&informer).await;
    assert_eq!(DECODED.load(Relaxed), 50);
    let sum = || informer.lister().list().iter().map(|object| sizes.of(object).unwrap().size).sum::<u64>();
    assert_eq!((sum(), sum()), (1225, 1225));
    source.put(object("n3", 100));
    settle().await;
    assert_eq!(sum(), 1225 - 3 + 100);
    assert_eq!(DECODED.load(Relaxed), 51, "only the changed one");
    let first = informer.lister().list().iter().next().unwrap().clone();
    let (a, b) = (sizes.of(&first).unwrap(), sizes.of(&first).unwrap());
    assert!(std::ptr::eq(a, b), "reading is a pointer");
    let usage = informer.memory();
    assert!((50 * 300..50 * 500).contains(&usage.views), "{usage:?}");
}

#[tokio::test(start_paused = true)]
async fn a_view_that_is_added_later_is_filled_in() {
    counted!(Later, DECODED);
    let source = source();
    (0..500).for_each(|n| _ = source.put(object(&format!("n{n}"), n)));
    for packing in [Packing::Packed, Packing::Raw] {
        DECODED.store(0, Relaxed);
        let informer = source.informer::<Value>(|builder| builder.packing(packing));
        started(&informer).await;
        let later = informer.keep_view::<Later>();
        let first = informer.lister().list().iter().next().unwrap().clone();
        assert!(later.of(&first).is_ok(), "decoded on the spot");
        assert_eq!(DECODED.load(Relaxed), 1);
        pass(1).await;
        assert_eq!(DECODED.load(Relaxed), 500, "each once, in the background");
        assert_eq!(
            informer.lister().list().iter().map(|object| later.of(object).unwrap().size).sum::<u64>(),
            124_750
        );
        informer.remove_view(later.clone());
        source.put(object("n0", 7));
        settle().await;
        assert_eq!(DECODED.load(Relaxed), 500, "no longer decoded on arrival");
        source.put(object("n0", 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_view_that_is_added_during_a_list_is_filled_in_after_it() {
    counted!(Meanwhile, DECODED);
    let source = source();
    source.skip_end_bookmark(true);
    (0..50).for_each(|n| _ = source.put(object(&format!("n{n}"), n)));
    let informer = source.informer::<Value>(|builder| builder);
    informer.start();
    settle().await;
    let _meanwhile = informer.keep_view::<Meanwhile>();
    settle().await;
    assert_eq!((cached(&informer).len(), DECODED.load(Relaxed)), (0, 0), "the list has not ended");
    let end = Bookmark { resource_version: source.version().into(), initial_events_end: true };
    source.send(|| WatchEvent::Bookmark(end.clone()));
    pass(1).await;
    assert_eq!((cached(&informer).len(), DECODED.load(Relaxed)), (50, 50), "each once, in the background");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_affects_nothing_else() {
    #[derive(Debug, Deserialize, HeapSize)]
    struct Data {
        size: u64,
    }
    #[derive(Debug, Deserialize, HeapSize)]
    struct Sizes {
        data: Data,
    }
    let source = source();
    let (informer, _) = watched(&source, |builder| builder).await;
    let sizes = informer.keep_view::<Sizes>();
    source.put(object("good", 1));
    let mut bad = object("bad", 2);
    bad["data"]["size"] = "many".into();
    source.put(bad);
    settle().await;
    let size = |name: &str| {
        let object: Object<Value> = informer.lister().get(&format!("ns/{name}").parse().unwrap()).unwrap();
        sizes.of(&object).map(|view| view.data.size).map_err(|error| error.path.clone())
    };
    assert_eq!((size("good"), size("bad")), (Ok(1), Err("data.size".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_view_sees_what_the_transform_leaves() {
    #[derive(Debug, Deserialize, HeapSize)]
    struct Data {
        size: Option<u64>,
        text: Option<String>,
    }
    #[derive(Debug, Deserialize, HeapSize)]
    struct Sizes {
        data: Data,
    }
    let source = source();
    source.put(object("a", 1));
    let transform = Transform::new().drop_field("data.text").unwrap();
    let informer = source.informer::<Value>(|builder| builder.transform(transform.clone()));
    let sizes = informer.keep_view::<Sizes>();
    started(&informer).await;
    let object = informer.lister().list().iter().next().unwrap().clone();
    let view = sizes.of(&object).unwrap();
    assert_eq!((view.data.size, view.data.text.as_deref()), (Some(1), None));
}

#[test]
fn heap_sizes_are_derived() {
    #[derive(HeapSize)]
    struct Generic<T>(T, u8);
    #[derive(HeapSize)]
    enum Choice {
        Nothing,
        Text(String, u32),
        Named { list: Vec<Generic<String>> },
    }
    assert_eq!(Choice::Nothing.heap_size(), 0);
    assert_eq!(Choice::Text("abc".to_owned(), 7).heap_size(), 3);
    let list = vec![Generic("ab".to_owned(), 1)];
    assert_eq!(Choice::Named { list }.heap_size(), 2 + size_of::<Generic<String>>());
}
