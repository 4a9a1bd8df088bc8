//! Measures how long it takes to open a log.
//!
//! ```text
//! cargo run --release -p kube-informer-persist --example open -- DIRECTORY [OBJECTS]... [OPTION]...
//! ```
//!
//! For each number it writes a log of that many objects (identity of 200 bytes, body of 1,100 bytes) in the order of keys,
//! replaces a tenth of them in any order, and opens the log seven times. Files are in the page cache.
//!
//! - `--encrypted`: with a key.
//! - `--commit-each`: one frame for each object, as if each were a change of its own.
//! - `--bodies-in-log`: an identity of 1,300 bytes and no body, as if both were in one file.

#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

use kube_informer_persist::{BelongsTo, CacheDir, EncryptionKey, Log, Position, Restored};
use std::{
    error::Error,
    io,
    path::Path,
    time::{Instant, SystemTime},
};

/// Bytes of the identity and the body of an object.
const OBJECT: usize = 1300;
const IDENTITY: usize = 200;
const OPENINGS: usize = 7;

/// The options of a measurement.
struct Measured {
    key: Option<EncryptionKey>,
    commit_each: bool,
    identity: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let (options, arguments): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let has = |option: &str| options.iter().any(|given| given == option);
    let measured = Measured {
        key: has("--encrypted").then(|| EncryptionKey::new([7; 32])),
        commit_each: has("--commit-each"),
        identity: if has("--bodies-in-log") { OBJECT } else { IDENTITY },
    };
    let directory = arguments.first().ok_or("name a directory")?;
    let counts: Vec<u64> = match &arguments[1..] {
        [] => vec![150_000, 1_000_000],
        given => given.iter().map(|count| count.parse()).collect::<Result<_, _>>()?,
    };
    for count in counts {
        let path = Path::new(directory).join(format!("measured-{count}"));
        measured.run(&path, count)?;
        std::fs::remove_dir_all(path)?;
    }
    Ok(())
}

impl Measured {
    fn run(&self, path: &Path, count: u64) -> Result<(), Box<dyn Error>> {
        let belongs_to = BelongsTo::new().with("resource", "pods");
        let mut random = fastrand::Rng::with_seed(7);
        let started = Instant::now();
        let mut log = CacheDir::open(path)?.open_log("pods", &belongs_to, self.key.as_ref())?.log;
        for number in 0..count {
            self.put(&mut log, number, &mut random)?;
        }
        commit(&mut log)?;
        println!("{count} objects: written in {} ms", started.elapsed().as_millis());
        for replaced in [0, count / 10] {
            for _ in 0..replaced {
                let number = random.u64(0..count);
                self.put(&mut log, number, &mut random)?;
            }
            commit(&mut log)?;
            drop(log);
            let mut times = Vec::new();
            log = loop {
                let cache = CacheDir::open(path)?;
                let started = Instant::now();
                let opened = cache.open_log("pods", &belongs_to, self.key.as_ref())?;
                times.push(started.elapsed().as_micros() as f64 / 1000.0);
                let restored = opened.restored.ok_or("nothing restored")?;
                assert_eq!(restored.objects.len() as u64, count);
                if times.len() == OPENINGS {
                    read_bodies(&restored)?;
                    break opened.log;
                }
            };
            times.sort_by(f64::total_cmp);
            let (least, median) = (times[0], times[OPENINGS / 2]);
            println!(
                "  {replaced} replaced: opened in {median:.1} ms (median of {OPENINGS}; least {least:.1})"
            );
        }
        Ok(())
    }

    fn put(&self, log: &mut Log, number: u64, random: &mut fastrand::Rng) -> io::Result<()> {
        let (namespace, app) = (number / 300, number / 10);
        let key = format!("namespace-{namespace:04}/deployment-{app:06}-5d8c7f9b6d-x{number:07}");
        let mut bytes = [0; OBJECT];
        random.fill(&mut bytes);
        log.put(&key, &bytes[..self.identity], number, &bytes[self.identity..]);
        if self.commit_each { commit(log) } else { Ok(()) }
    }
}

fn read_bodies(restored: &Restored) -> Result<(), Box<dyn Error>> {
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
