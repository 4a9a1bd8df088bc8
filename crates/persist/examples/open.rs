//! Measures how long it takes to open a log.
//!
//! ```text
//! cargo run --release -p kube-informer-persist --example open -- DIRECTORY [OBJECTS]... [--encrypted]
//! ```
//!
//! For each number it writes a log of so many objects (identity of 200 bytes, body of 1,100 bytes) in the order of keys,
//! replaces a tenth of them in any order, and opens the log five times. Files are in the page cache.

#![allow(clippy::print_stdout, reason = "it is a program that prints")]

use kube_informer_persist::{BelongsTo, CacheDir, EncryptionKey, Log, Position};
use std::{
    io,
    path::Path,
    time::{Instant, SystemTime},
};

const IDENTITY: usize = 200;
const BODY: usize = 1100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_encrypted = arguments.iter().any(|argument| argument == "--encrypted");
    arguments.retain(|argument| argument != "--encrypted");
    let key = is_encrypted.then(|| EncryptionKey::new([7; 32]));
    let directory = arguments.first().ok_or("name a directory")?;
    let counts: Vec<u64> = match &arguments[1..] {
        [] => vec![150_000, 1_000_000],
        given => given.iter().map(|count| count.parse()).collect::<Result<_, _>>()?,
    };
    for count in counts {
        let path = Path::new(directory).join(format!("measured-{count}"));
        measure(&path, count, key.as_ref())?;
        std::fs::remove_dir_all(path)?;
    }
    Ok(())
}

fn measure(path: &Path, count: u64, key: Option<&EncryptionKey>) -> Result<(), Box<dyn std::error::Error>> {
    let belongs_to = BelongsTo::new().with("resource", "pods");
    let mut random = fastrand::Rng::with_seed(7);
    let started = Instant::now();
    let mut log = CacheDir::open(path)?.open_log("pods", &belongs_to, key)?.log;
    for number in 0..count {
        put(&mut log, number, &mut random);
    }
    commit(&mut log)?;
    println!("{count} objects: written in {} ms", started.elapsed().as_millis());
    for replaced in [0, count / 10] {
        for _ in 0..replaced {
            let number = random.u64(0..count);
            put(&mut log, number, &mut random);
        }
        commit(&mut log)?;
        drop(log);
        let mut opening = Vec::new();
        log = loop {
            let cache = CacheDir::open(path)?;
            let started = Instant::now();
            let opened = cache.open_log("pods", &belongs_to, key)?;
            opening.push(started.elapsed().as_micros() as f64 / 1000.0);
            let restored = opened.restored.ok_or("nothing restored")?;
            assert_eq!(restored.objects.len() as u64, count);
            if opening.len() == 5 {
                read_bodies(&restored)?;
                break opened.log;
            }
        };
        opening.sort_by(f64::total_cmp);
        println!("  {replaced} replaced: opened in {:.1} ms (median of {opening:.1?})", opening[2]);
    }
    Ok(())
}

fn read_bodies(restored: &kube_informer_persist::Restored) -> Result<(), Box<dyn std::error::Error>> {
    let started = Instant::now();
    let mut buffer = Vec::new();
    for object in &restored.objects {
        restored.bodies.read(&object.content, &mut buffer)?;
    }
    println!("  all bodies read and verified one by one in {} ms", started.elapsed().as_millis());
    Ok(())
}

fn commit(log: &mut Log) -> io::Result<()> {
    log.commit(&Position { version: "1".into(), saved_at: SystemTime::now() })
}

fn put(log: &mut Log, number: u64, random: &mut fastrand::Rng) {
    let key =
        format!("namespace-{:04}/deployment-{:06}-5d8c7f9b6d-x{:04}", number / 300, number / 10, number);
    let mut bytes = [0; IDENTITY + BODY];
    random.fill(&mut bytes);
    log.put(&key, &bytes[..IDENTITY], number, &bytes[IDENTITY..]);
}
