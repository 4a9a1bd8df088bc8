//! `kube-informer cache inspect`: prints what is in a directory of persisted caches.

mod export;
mod report;
#[cfg(test)]
mod tests;

use crate::{
    args::{InspectFormat, InspectOptions},
    exit::{Failure, error},
    terminal::note,
    watch::is_closed,
};
use anyhow::Context;
use kube_informer_persist::{EncryptionKey, InspectedLog};
use report::Report;
use std::{
    fs,
    io::{self, Write},
    path::Path,
    time::SystemTime,
};

/// Prints a directory. A reader that closes the pipe has read enough.
pub(crate) fn inspect(options: &InspectOptions) -> anyhow::Result<()> {
    match print(options) {
        Err(error) if error.downcast_ref::<io::Error>().is_some_and(is_closed) => Ok(()),
        printed => printed,
    }
}

fn print(options: &InspectOptions) -> anyhow::Result<()> {
    let key = options.key_file.as_deref().map(read_key).transpose()?;
    let directory = options.directory.display();
    let logs = kube_informer_persist::inspect(&options.directory, key.as_ref())
        .with_context(|| format!("cannot read cache directory {directory}"))?;
    if logs.is_empty() {
        note(&format!("{directory} has no persisted caches"));
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    if options.export {
        return export(&logs, &mut out);
    }
    let now = SystemTime::now();
    let reports = logs.iter().map(|log| Report::new(log, options.verify, now));
    let reports = reports.collect::<io::Result<Vec<Report>>>().context("cannot read contents")?;
    match options.output {
        InspectFormat::Table => out.write_all(report::tables(&reports).as_bytes())?,
        InspectFormat::Json => writeln!(out, "{}", report::json(&reports))?,
    }
    out.flush()?;
    match reports.iter().filter(|report| options.verify && !report.is_verified()).count() {
        0 => Ok(()),
        count => {
            Err(error(Failure::Other, format!("{count} of {} caches are not intact", reports.len()), ""))
        }
    }
}

fn export(logs: &[InspectedLog], out: &mut impl Write) -> anyhow::Result<()> {
    let mut failures = 0;
    for log in logs {
        let exported = export::export(log, out)?;
        exported.notes.iter().for_each(|line| note(line));
        failures += exported.failures;
    }
    out.flush()?;
    match failures {
        0 => Ok(()),
        count => Err(error(Failure::Other, format!("{count} objects or caches could not be exported"), "")),
    }
}

fn read_key(file: &Path) -> anyhow::Result<EncryptionKey> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let advice = "The file has the 32 bytes of the key, or 64 hexadecimal digits";
    let malformed = || error(Failure::Other, format!("{} is not a key", file.display()), advice);
    parse_key(&bytes).map(EncryptionKey::new).ok_or_else(malformed)
}

fn parse_key(bytes: &[u8]) -> Option<[u8; 32]> {
    if let Ok(key) = bytes.try_into() {
        return Some(key);
    }
    let digits = str::from_utf8(bytes).ok()?.trim();
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut key = [0; 32];
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(key)
}
