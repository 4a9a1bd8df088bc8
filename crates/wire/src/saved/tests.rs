use super::*;
use crate::{FieldPaths, Kind, Limits, Omissions, Origin, Packing};
use kube_informer_segments::{BodySource, OutsideBody, ReadError};
use serde_json::{Value, json};
use std::sync::Arc;

fn origin() -> Arc<Origin> {
    Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods")))
}

fn paths(texts: &[&str]) -> Vec<Option<FieldPath>> {
    texts.iter().map(|text| Some(text.parse().unwrap())).collect()
}

fn pod(i: usize) -> Value {
    let env: Vec<Value> =
        (0..20).map(|n| json!({"name": format!("SETTING_{n}"), "value": (i * n).to_string()})).collect();
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "namespace": "shop", "name": format!("cart-{i}"), "resourceVersion": (100 + i).to_string(),
            "uid": format!("00000000-0000-4000-8000-{i:012x}"), "generation": 3, "labels": {"app": "cart", "n": (i % 5).to_string()},
            "deletionTimestamp": if i.is_multiple_of(7) { json!("2026-01-01T00:00:00Z") } else { Value::Null },
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "cart", "uid": "u", "controller": true}],
        },
        "spec": {"nodeName": format!("node-{}", i % 3), "containers": [{"name": "a", "env": env}]},
    })
}

fn object(value: &Value) -> Object<Value> {
    Object::parse(&origin(), value.to_string().into(), &Limits::default()).unwrap()
}

/// Contents that were saved.
struct Contents(Vec<Vec<u8>>);

impl BodySource for Contents {
    fn read(&self, number: u32, buffer: &mut Vec<u8>) -> Result<(), ReadError> {
        *buffer = self.0[number as usize].clone();
        Ok(())
    }
}

fn contents(restorer: &Restorer<'_>, saved: &[(u64, &[u8])]) -> Result<Vec<RestoredContent>, RestoreError> {
    let bodies: Vec<_> = saved
        .iter()
        .zip(0..)
        .map(|((tag, bytes), number)| OutsideBody { number, tag: *tag, len: bytes.len() as u32 })
        .collect();
    let source = Contents(saved.iter().map(|(_, bytes)| bytes.to_vec()).collect());
    restorer.contents(&(Arc::new(source) as Arc<dyn BodySource>), &bodies)
}

fn restore(restorer: &mut Restorer<'_>, saved: &Saved) -> Result<Object<Value>, RestoreError> {
    let content = restorer.content(saved.tag, saved.content.clone())?;
    restorer.object(&saved.key, &saved.record, content)
}

struct Saved {
    key: String,
    record: Vec<u8>,
    tag: u64,
    content: Vec<u8>,
}

/// Saves objects, and the dictionaries that they need.
fn save(packer: &Packer, objects: &[Object<Value>]) -> (Vec<Saved>, Vec<(u32, Vec<u8>)>) {
    let mut dictionaries: Vec<(u32, Vec<u8>)> = Vec::new();
    let save = |object: &Object<Value>| {
        let (mut record, mut content) = (Vec::new(), Vec::new());
        object.save_record(7, &mut record);
        let saved = packer.save_content(object, &mut content).unwrap();
        if let Some(dictionary) = saved.dictionary
            && !dictionaries.iter().any(|(id, _)| *id == dictionary.id())
        {
            dictionaries.push((dictionary.id(), dictionary.bytes().to_vec()));
        }
        Saved { key: object.key().to_string(), record, tag: saved.tag, content }
    };
    (objects.iter().map(save).collect(), dictionaries)
}

fn assert_same(a: &Object<Value>, b: &Object<Value>) {
    assert_eq!(format!("{a:?}"), format!("{b:?}"));
    assert!(a.is_same(b) && a.resource_version() == b.resource_version());
    assert_eq!((a.labels(), a.controller(), a.generation()), (b.labels(), b.controller(), b.generation()));
    assert_eq!(a.is_deleting(), b.is_deleting());
    assert_eq!((a.has_malformed_identity(), a.omissions()), (b.has_malformed_identity(), b.omissions()));
    assert_eq!(a.content_len(), b.content_len());
    assert!(a.is_content_withheld() || a.is_same_content(b));
}

#[test]
fn objects_come_back_as_they_were_and_the_dictionary_goes_on() {
    let packer = Packer::new(Packing::Packed);
    let fields = FieldPaths::sparse(paths(&["spec.nodeName", "spec.containers[*].name"]));
    let mut objects: Vec<_> = (0..600).map(|i| packer.pack_with(object(&pod(i)), &fields)).collect();
    let omissions = Arc::new(Omissions::fields(["status".parse().unwrap(), "data[a.b/c]".parse().unwrap()]));
    let slim = object(&pod(601)).with_content(pod(601).to_string().into(), &omissions, &Limits::default());
    objects.push(packer.pack(slim.unwrap()));
    objects.push(packer.pack(object(&pod(602)).without_content()));
    let mut odd = pod(603);
    odd["metadata"] = json!({"name": "odd", "uid": "u-1", "resourceVersion": "v-7", "labels": "no"});
    objects.push(packer.pack(object(&odd)));
    let (saved, dictionaries) = save(&packer, &objects);
    assert_eq!(dictionaries.len(), 1, "trained");

    let again = Arc::new(Packer::new(Packing::Packed));
    let restoring = again.restoring();
    let mut restorer = Restorer::new(&again, origin(), paths(&["spec.containers[*].name", "spec.x"]));
    restorer.add_paths(7, &save_paths(&paths(&["spec.nodeName", "spec.containers[*].name"]))).unwrap();
    let all: Vec<_> = saved.iter().map(|saved| (saved.tag, &saved.content[..])).collect();
    assert_eq!(contents(&restorer, &all).err(), Some(RestoreError::Content), "without its dictionary");
    restorer.add_dictionaries(dictionaries.clone()).unwrap();
    let contents = contents(&restorer, &all).unwrap();
    let restored: Vec<_> = saved
        .iter()
        .zip(contents)
        .map(|(saved, content)| restorer.object(&saved.key, &saved.record, content).unwrap())
        .collect();
    for (object, restored) in objects.iter().zip(&restored) {
        assert_same(object, restored);
    }
    assert_eq!(
        restored[0].packed_fields(),
        Some(&[vec![json!("a")]][..]),
        "the wanted one, up to the first unknown"
    );
    assert!(restored[0].labels().is_identical(restored[5].labels()), "shared");
    assert_eq!(packer.live_bytes(), again.live_bytes());
    assert!(again.may_block() && restored.iter().any(|object| !object.is_content_in_memory()));
    drop(restoring);
    while again.compact(64 << 10) {}
    assert!(!again.may_block() && restored.iter().all(Object::is_content_in_memory));
    for (object, restored) in objects.iter().zip(&restored) {
        assert_same(object, restored);
    }

    let next = again.pack(object(&pod(700)));
    let dictionary =
        |packer: &Packer, object| packer.save_content(object, &mut Vec::new()).unwrap().dictionary;
    assert_eq!(
        dictionary(&again, &next).unwrap().id(),
        dictionaries[0].0,
        "new objects use the saved dictionary"
    );
    assert_eq!(again.stats().dictionaries, 0, "none was trained");
}

#[test]
fn content_that_contradicts_its_tag_is_an_error() {
    let packer = Packer::new(Packing::Packed);
    let (saved, _) = save(&packer, &[packer.pack(object(&pod(1)))]);
    let Saved { record, tag, content, .. } = &saved[0];
    let mut restorer = Restorer::new(&packer, origin(), Vec::new());
    assert!(restore(&mut restorer, &saved[0]).is_ok());
    let invalid = [1_u64 << 63 | 9 << 34, 9 << 34, (1 << 28 | 1 << 34) + 1];
    for tag in invalid {
        assert_eq!(restorer.content(tag, content.clone()).err(), Some(RestoreError::Content), "{tag:x}");
    }
    let mut object = |key: &str, record: &[u8]| {
        let content = restorer.content(*tag, content.clone()).unwrap();
        restorer.object(key, record, content).err()
    };
    assert_eq!(object("a/b/c", record), Some(RestoreError::Key));
    for end in 0..record.len() {
        assert_eq!(object("a/b", &record[..end]), Some(RestoreError::Record));
    }
}

#[test]
fn content_that_is_not_what_its_tag_says_is_lost() {
    let packer = Packer::new(Packing::Packed);
    let (saved, _) = save(&packer, &[packer.pack(object(&pod(1)))]);
    let Saved { key, record, content, .. } = &saved[0];
    let mut restorer = Restorer::new(&packer, origin(), Vec::new());
    let patched = saved[0].tag | 1 << 63;
    let source: Arc<dyn BodySource> = Arc::new(Contents(Vec::new()));
    let too_long = OutsideBody { number: 0, tag: patched, len: u32::MAX };
    assert_eq!(restorer.contents(&source, &[too_long]).err(), Some(RestoreError::Content));
    let content = restorer.content(patched, content.clone()).unwrap();
    let restored = restorer.object(key, record, content).unwrap();
    assert!(restored.decode().is_err() && restored.is_content_lost());
}

#[test]
fn content_that_is_not_packed_is_read_at_once() {
    for packing in [Packing::Raw, Packing::Decoded] {
        let packer = Packer::new(packing);
        let before = packer.pack(object(&pod(1)));
        let (saved, _) = save(&packer, std::slice::from_ref(&before));
        let mut restorer = Restorer::new(&packer, origin(), Vec::new());
        let restored = restore(&mut restorer, &saved[0]).unwrap();
        assert!(restored.is_content_in_memory() && !packer.may_block(), "{packing:?}");
        assert_same(&before, &restored);
    }
}

#[test]
fn content_without_its_dictionary_is_not_saved() {
    let packer = Packer::new(Packing::Packed);
    let last = (0..600).map(|i| packer.pack(object(&pod(i)))).last().unwrap();
    assert!(packer.save_content(&last, &mut Vec::new()).unwrap().dictionary.is_some());
    assert!(Packer::new(Packing::Packed).save_content(&last, &mut Vec::new()).is_none());
}

#[test]
fn dictionaries_with_the_same_number_must_be_equal() {
    let packer = Packer::new(Packing::Packed);
    let mut restorer = Restorer::new(&packer, origin(), Vec::new());
    restorer.add_dictionaries(vec![(3, vec![1; 100]), (1, vec![2; 100])]).unwrap();
    restorer.add_dictionaries(vec![(3, vec![1; 100])]).unwrap();
    assert_eq!(restorer.add_dictionaries(vec![(3, vec![9; 100])]), Err(RestoreError::Dictionary));
    assert_eq!(restorer.add_dictionaries(vec![(u32::MAX, vec![9; 100])]), Err(RestoreError::Dictionary));
}
