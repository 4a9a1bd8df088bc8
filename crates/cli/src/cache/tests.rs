//! Inspection of caches that were written as informers write them.

use super::{
    export::{Exported, export},
    parse_key,
    report::{self, Report},
};
use kube_informer_persist::{
    BelongsTo, CacheDir, EncryptionKey, InspectedLog, Log, MemoryDisk, Position, inspect_on,
};
use kube_informer_wire::{FieldPath, FieldPaths, Kind, Limits, Object, Origin, Packer, Packing, save_paths};
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// Escape sequences, line breaks and a mark of the text direction.
const HOSTILE: &str = "x\x1b[2J\r\n\u{9b}31m\u{202e}";

fn saved_at() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

fn belongs_to(resource: &str, kind: &str) -> BelongsTo {
    BelongsTo::new().with("cluster", "1f6b").with("resource", resource).with("kind", kind)
}

fn log(
    disk: &MemoryDisk,
    name: &str,
    belongs_to: &BelongsTo,
    key: Option<&EncryptionKey>,
) -> Log<MemoryDisk> {
    CacheDir::on(disk.clone()).expect("not locked").open_log(name, belongs_to, key).expect("opens").log
}

fn commit(log: &mut Log<MemoryDisk>) {
    log.commit(&Position { version: "4711".into(), saved_at: saved_at() }).expect("commits");
}

fn only(disk: &MemoryDisk, key: Option<&EncryptionKey>) -> InspectedLog<MemoryDisk> {
    let mut logs = inspect_on(disk, key).expect("readable");
    assert_eq!(logs.len(), 1);
    logs.remove(0)
}

fn config_map(number: usize) -> Value {
    let data: Value = (0..30).map(|n| (format!("setting-{n}"), json!((n * number).to_string()))).collect();
    json!({"kind": "ConfigMap", "apiVersion": "v1", "data": data, "metadata":
        {"namespace": "shop", "name": format!("m-{number:04}"), "uid": format!("u-{number}"), "resourceVersion": number.to_string()}})
}

/// Saves objects of a kind, with fields of an index.
fn save(disk: &MemoryDisk, kind: &Kind, objects: &[Value]) {
    let (group, version, plural) = (&kind.group, &kind.version, &kind.plural);
    let resource = format!("{group}/{version}/{plural}");
    let mut log = log(disk, plural, &belongs_to(&resource, &kind.kind), None);
    let (origin, packer) = (Arc::new(Origin::new(kind.clone())), Packer::new(Packing::Packed));
    let path: FieldPath = "metadata.name".parse().expect("a path");
    let fields = FieldPaths::sparse([Some(path.clone())]);
    log.dictionary(1 << 31 | 3, &save_paths(&[Some(path)]));
    log.dictionary(u32::MAX, b"uid of kube-system");
    let (mut dictionaries, mut record, mut content) = (HashSet::new(), Vec::new(), Vec::new());
    for value in objects {
        let object = Object::parse(&origin, value.to_string().into(), &Limits::default()).expect("an object");
        let object = packer.pack_with(object, &fields);
        let saved = packer.save_content(&object, &mut content).expect("packed");
        if let Some(dictionary) = saved.dictionary
            && dictionaries.insert(dictionary.id())
        {
            log.dictionary(dictionary.id(), dictionary.bytes());
        }
        record.clear();
        object.save_record(3, &mut record);
        log.put(object.key().as_str(), &record, saved.tag, &content);
    }
    commit(&mut log);
}

/// The printed lines as values, and the notes.
fn exported(log: &InspectedLog<MemoryDisk>) -> (Vec<Value>, Exported) {
    let mut out = Vec::new();
    let exported = export(log, &mut out).expect("memory can be written to");
    let lines = str::from_utf8(&out).expect("text").lines();
    (lines.map(|line| serde_json::from_str(line).expect("JSON")).collect(), exported)
}

#[test]
fn objects_are_exported_as_the_server_sent_them() {
    let disk = MemoryDisk::new();
    let objects: Vec<Value> = (0..600).map(config_map).collect();
    save(&disk, &Kind::namespaced("", "v1", "ConfigMap", "configmaps"), &objects);
    let log = only(&disk, None);
    let dictionaries = &log.restored.as_ref().expect("restored").dictionaries;
    assert!(dictionaries.iter().any(|(id, _)| *id < 1 << 31), "content is packed with a dictionary");
    let (lines, Exported { notes, failures }) = exported(&log);
    assert_eq!((lines, notes, failures), (objects, vec![], 0));
}

#[test]
fn content_in_protobuf_is_exported_as_json() {
    let origin = Arc::new(Origin::new(Kind::namespaced("", "v1", "ConfigMap", "configmaps")));
    let json = json!({"metadata": {"namespace": "shop", "name": "m"}}).to_string();
    let object = Object::<Value>::parse(&origin, json.into(), &Limits::default()).expect("an object");
    let mut record = Vec::new();
    object.save_record(0, &mut record);
    // metadata: name (1) and namespace (3); data: one entry.
    let content = b"\x0a\x09\x0a\x01m\x1a\x04shop\x12\x06\x0a\x01k\x12\x01v";
    let stored_protobuf = 1 << 33 | content.len() as u64;
    let saved_for = |belongs_to: BelongsTo| {
        let disk = MemoryDisk::new();
        let mut log = log(&disk, "configmaps", &belongs_to, None);
        log.put("shop/m", &record, stored_protobuf, content);
        commit(&mut log);
        drop(log);
        exported(&only(&disk, None))
    };
    let (lines, Exported { notes, failures }) = saved_for(belongs_to("/v1/configmaps", "ConfigMap"));
    assert_eq!((notes, failures), (Vec::<String>::new(), 0));
    assert_eq!((&lines[0]["kind"], &lines[0]["data"]), (&json!("ConfigMap"), &json!({"k": "v"})));
    assert_eq!(lines[0]["metadata"]["namespace"], "shop");

    let (lines, Exported { notes, failures }) =
        saved_for(BelongsTo::new().with("resource", "/v1/configmaps"));
    assert_eq!((lines.len(), failures), (0, 1));
    assert_eq!(notes[0], "shop/m: the header does not name the kind, which content in protobuf needs");
}

#[test]
fn secrets_are_never_exported() {
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "data": {"password": "aHVudGVyMg=="},
        "metadata": {"namespace": "shop", "name": "db", "uid": "u", "resourceVersion": "1"}});
    let disk = MemoryDisk::new();
    save(&disk, &Kind::namespaced("", "v1", "Secret", "secrets"), std::slice::from_ref(&secret));
    let (lines, Exported { notes, failures }) = exported(&only(&disk, None));
    assert_eq!((lines.len(), notes, failures), (0, vec!["secrets: 1 Secrets are left out".to_owned()], 0));

    // A header that does not tell the truth.
    let disk = MemoryDisk::new();
    save(&disk, &Kind::namespaced("", "v1", "ConfigMap", "configmaps"), &[secret]);
    let (lines, Exported { notes, failures }) = exported(&only(&disk, None));
    assert_eq!((lines.len(), failures), (0, 1));
    assert!(!notes.join(" ").contains("aHVudGVyMg"), "{notes:?}");
}

#[test]
fn objects_that_cannot_be_exported_are_counted() {
    let disk = MemoryDisk::new();
    let objects: Vec<Value> = (0..20).map(config_map).collect();
    save(&disk, &Kind::namespaced("", "v1", "ConfigMap", "configmaps"), &objects);
    let mut files = disk.files();
    let bodies = files.get_mut("configmaps.1.bodies").expect("bodies");
    bodies.iter_mut().for_each(|byte| *byte ^= 1);
    let log = only(&MemoryDisk::with_files(files), None);
    let (lines, Exported { notes, failures }) = exported(&log);
    assert_eq!((lines.len(), failures, notes.len()), (0, 20, 6));
    assert_eq!(notes[0], "shop/m-0000: the saved content is damaged");
    assert_eq!(notes[5], "configmaps: 20 objects could not be exported");

    let report = Report::new(&log, true, saved_at()).expect("readable");
    assert!(!report.is_verified());
    let tables = report::tables(&[report]);
    assert!(tables.contains("20 contents damaged: shop/m-0000, "), "{tables}");
}

#[test]
fn a_table_and_json_describe_a_cache() {
    let disk = MemoryDisk::new();
    save(&disk, &Kind::namespaced("", "v1", "ConfigMap", "configmaps"), &[config_map(1), config_map(2)]);
    let log = only(&disk, None);
    let report = Report::new(&log, true, saved_at() + Duration::from_secs(90)).expect("readable");
    assert!(report.is_verified());
    let json: Value = serde_json::from_str(&report::json(&[report])).expect("JSON");
    let cache = &json["caches"][0];
    assert_eq!((&cache["name"], &cache["generation"]), (&json!("configmaps"), &json!(1)));
    assert_eq!(cache["belongsTo"]["resource"], "/v1/configmaps");
    assert_eq!(cache["garbageBytes"], log.garbage_bytes());
    let saved = json!({"version": "4711", "savedAtUnixSeconds": 1_800_000_000, "ageSeconds": 90, "objects": 2,
        "droppedBytes": 0, "damaged": []});
    assert_eq!(cache["saved"], saved);

    let report = |now| Report::new(&log, false, now).expect("readable");
    let tables = report::tables(&[report(saved_at() + Duration::from_secs(90))]);
    let row = tables.lines().nth(1).expect("a row");
    assert!(row.starts_with("configmaps  2        4711     90s ago  "), "{row}");
    assert!(row.ends_with("  no         log intact"), "{row}");
    assert!(tables.contains("\nconfigmaps  resource    /v1/configmaps\n"), "{tables}");
    assert!(report::tables(&[report(SystemTime::UNIX_EPOCH)]).contains("  in the future  "));
}

#[test]
fn a_cache_that_would_be_discarded_says_why() {
    let disk = MemoryDisk::new();
    let (pods, key) = (belongs_to("/v1/pods", "Pod"), EncryptionKey::new([7; 32]));
    commit(&mut log(&disk, "pods", &pods, Some(&key)));
    let log = only(&disk, None);
    let report = Report::new(&log, true, saved_at()).expect("readable");
    assert!(!report.is_verified());
    let tables = report::tables(&[report]);
    assert!(
        tables.contains("would be discarded: the saved state is encrypted, and no key was given"),
        "{tables}"
    );
    assert_eq!(exported(&log).1.failures, 1);
    assert_eq!(exported(&only(&disk, Some(&key))).1.failures, 0);
}

#[test]
fn nothing_in_a_cache_reaches_the_terminal_as_a_control_character() {
    let disk = MemoryDisk::new();
    let belongs_to = belongs_to("/v1/pods", "Pod").with(HOSTILE, HOSTILE);
    let mut log = log(&disk, HOSTILE, &belongs_to, None);
    log.put(HOSTILE, b"", 0, b"damaged below");
    log.commit(&Position { version: HOSTILE.into(), saved_at: saved_at() }).expect("commits");
    drop(log);
    let mut files = disk.files();
    let (_, bodies) = files.iter_mut().find(|(name, _)| name.ends_with(".bodies")).expect("bodies");
    bodies[0] ^= 1;
    let log = only(&MemoryDisk::with_files(files), None);
    let report = Report::new(&log, true, saved_at()).expect("readable");
    let (tables, json) = (report::tables(std::slice::from_ref(&report)), report::json(&[report]));
    let (_, Exported { notes, .. }) = exported(&log);
    let is_safe = |text: &str| !text.contains(|c: char| c != '\n' && c.is_control() || c == '\u{202e}');
    assert!(is_safe(&tables) && is_safe(&json) && !json.contains('\n'), "{tables:?} {json:?}");
    assert!(notes.iter().all(|note| is_safe(note) && !note.contains('\n')), "{notes:?}");
    assert_eq!(tables.lines().count(), 2 + 1 + 1 + 4, "no line is forged: {tables}");
}

#[test]
fn a_key_is_bytes_or_digits() {
    let key: [u8; 32] = std::array::from_fn(|at| at as u8 + 150);
    let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(parse_key(&key), Some(key));
    assert_eq!(parse_key(format!("{digits}\n").as_bytes()), Some(key));
    for bad in [&digits[1..], &digits.replace('9', "+"), "", "ä"] {
        assert_eq!(parse_key(bad.as_bytes()), None, "{bad}");
    }
}
