//! Tables of the contents of the caches.

use super::Watched;
use crate::table::{bytes, table};
use std::{
    collections::BTreeSet,
    io::{self, Write},
    time::Duration,
};

/// Rows of an index table; further ones are counted.
const MOST_ROWS: usize = 50;

/// Prints one row for each kind.
pub(crate) fn print(watched: &[Watched], took: Duration) -> io::Result<()> {
    let head = ["KIND", "OBJECTS", "NAMESPACES", "CACHED", "VERSION"].map(str::to_owned).to_vec();
    let rows = watched.iter().map(row);
    let mut out = io::stdout().lock();
    out.write_all(table([head].into_iter().chain(rows).collect()).as_bytes())?;
    writeln!(out, "synced in {took:.2?}")?;
    out.flush()
}

fn row(one: &Watched) -> Vec<String> {
    let snapshot = one.informer.lister().snapshot();
    let namespaces: BTreeSet<String> =
        snapshot.iter().filter_map(|object| object.namespace().map(str::to_owned)).collect();
    vec![
        one.kind.to_string(),
        snapshot.len().to_string(),
        if one.kind.namespaced { namespaces.len().to_string() } else { "-".to_owned() },
        bytes(one.informer.cached_bytes()),
        snapshot.resource_version().map_or("-".to_owned(), |version| version.to_string()),
    ]
}

/// Prints the values of each index, with the number of objects that have them.
pub(crate) fn print_indexes(watched: &[Watched]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for one in watched {
        for (field, index) in &one.indexes {
            let snapshot = one.informer.lister().snapshot();
            let mut counts: Vec<(usize, String)> = snapshot
                .values(index)
                .map_err(io::Error::other)?
                .into_iter()
                .map(|value| Ok((snapshot.by(index, &value).map_err(io::Error::other)?.len(), value)))
                .collect::<io::Result<_>>()?;
            counts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
            let more = counts.len().saturating_sub(MOST_ROWS);
            let rows =
                counts.into_iter().take(MOST_ROWS).map(|(count, value)| vec![value, count.to_string()]);
            let head = vec![field.to_uppercase(), one.kind.plural.to_uppercase()];
            out.write_all(table([head].into_iter().chain(rows).collect()).as_bytes())?;
            if more > 0 {
                writeln!(out, "and {more} more")?;
            }
        }
    }
    out.flush()
}
