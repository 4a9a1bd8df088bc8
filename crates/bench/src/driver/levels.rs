//! What packing costs and yields at each level of compression.

use super::{Driver, replay};
use crate::args::{DriverOptions, LevelOptions};
use anyhow::Context;
use http_body_util::BodyExt;
use std::{hint::black_box, time::Instant};
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::{CParameter, DictAttachPref},
};

/// Bytes of the dictionary, as in an informer.
const DICTIONARY: usize = 32 << 10;
/// Objects that the dictionary is trained on. They are not measured.
const SAMPLES: usize = 200;
/// Rounds over all objects, of which the fastest counts.
const ROUNDS: usize = 5;
/// The levels. Those below zero are zstd's fast ones.
const LEVELS: [i32; 10] = [-7, -5, -3, -1, 1, 2, 3, 6, 9, 12];
/// Levels that are also measured without matches of fewer bytes than this.
const LONGER_MATCHES: ([i32; 4], u32) = ([3, 6, 9, 12], 5);

/// Prints a table for both encodings and both corpora.
pub(crate) async fn run(options: &LevelOptions) -> anyhow::Result<()> {
    println!(
        "| pods | encoding | level | bytes | packed | pack, µs | unpack, µs |\n|---|---|---:|---:|---:|---:|---:|"
    );
    for corpus in ["realistic", "stubborn"] {
        let server = DriverOptions { server: None, kubeconfig: None, seed: 1 };
        let mut driver = Driver::start(server).await?;
        driver.seed_pods(corpus, options.pods + SAMPLES).await?;
        for media_type in [replay::JSON, replay::PROTOBUF] {
            let mut objects = Vec::new();
            for (namespace, name) in &driver.pods {
                let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
                objects.push(driver.fetch(&path, media_type).await?.collect().await?.to_bytes().to_vec());
            }
            let (samples, measured) = objects.split_at(SAMPLES);
            let dictionary = zstd::dict::from_samples(samples, DICTIONARY)?;
            let encoding = media_type.rsplit(['/', '.']).next().unwrap_or_default();
            let (levels, min_match) = LONGER_MATCHES;
            let longer = levels.map(|level| (level, Some(min_match)));
            for (level, min_match) in LEVELS.map(|level| (level, None)).into_iter().chain(longer) {
                let row = measure(measured, &dictionary, level, min_match)?;
                let matches = min_match.map(|min| format!(", matches from {min} bytes")).unwrap_or_default();
                println!("| {corpus} | {encoding} | {level}{matches} | {row} |");
            }
        }
    }
    Ok(())
}

/// The cells of a row: bytes of an object before and after, and microseconds for both directions.
fn measure(
    objects: &[Vec<u8>],
    dictionary: &[u8],
    level: i32,
    min_match: Option<u32>,
) -> anyhow::Result<String> {
    let mut compressor = Compressor::with_dictionary(level, dictionary)?;
    compressor.set_parameter(CParameter::ForceAttachDict(DictAttachPref::ForceAttach))?;
    compressor.set_parameter(CParameter::ContentSizeFlag(false))?;
    compressor.set_parameter(CParameter::DictIdFlag(false))?;
    if let Some(min_match) = min_match {
        compressor.set_parameter(CParameter::MinMatch(min_match))?;
    }
    let mut decompressor = Decompressor::with_dictionary(dictionary)?;
    let (mut pack, mut unpack, mut packed) = (f64::INFINITY, f64::INFINITY, Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        packed = objects.iter().map(|object| compressor.compress(object)).collect::<Result<_, _>>()?;
        pack = pack.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        for (object, packed) in objects.iter().zip(&packed) {
            black_box(decompressor.decompress(packed, object.len())?);
        }
        unpack = unpack.min(start.elapsed().as_secs_f64());
    }
    let count = objects.len();
    let mean =
        |all: &[Vec<u8>]| all.iter().map(Vec::len).sum::<usize>().checked_div(count).context("no objects");
    let micros = |seconds: f64| seconds * 1e6 / count as f64;
    Ok(format!("{} | {} | {:.1} | {:.1}", mean(objects)?, mean(&packed)?, micros(pack), micros(unpack)))
}
