//! Objects of a persisted cache as JSON lines.

use crate::terminal::{printable, printable_json};
use kube_informer_persist::{Disk, InspectedLog, Restored, SavedObject};
use kube_informer_wire::{Kind, MediaType, Object, Origin, Packer, Packing, Restorer};
use serde_json::Value;
use std::{
    io::{self, Write},
    sync::Arc,
};

/// Objects that are restored with one packer, which keeps the content of all of them.
const BATCH: usize = 5000;
/// Shared parts of a log with numbers below are dictionaries; the others are paths of indexed fields and the like.
const FIRST_OTHER_PART: u32 = 1 << 31;

/// Objects that are named because they could not be exported; further ones are counted.
const MOST_NAMES: usize = 5;

/// The notes of an export for the user.
#[derive(Debug, Default)]
pub(crate) struct Exported {
    pub(crate) notes: Vec<String>,
    /// How many objects, or whole logs, could not be exported.
    pub(crate) failures: usize,
}

impl Exported {
    fn failed(note: String) -> Self {
        Self { notes: vec![note], failures: 1 }
    }
}

/// Writes the objects of a log, one on each line. Secrets are never written.
pub(crate) fn export<D: Disk>(log: &InspectedLog<D>, out: &mut impl Write) -> io::Result<Exported> {
    let name = printable(if log.name.is_empty() { &log.file } else { &log.name });
    let Some(restored) = &log.restored else {
        let why = log.problem.as_ref().map_or("nothing was committed".to_owned(), ToString::to_string);
        return Ok(Exported { notes: vec![format!("{name}: {why}")], failures: log.problem.iter().count() });
    };
    let Some(kind) = kind(log) else {
        return Ok(Exported::failed(format!("{name}: the header does not name the resource")));
    };
    if kind.is_secret() || (kind.group.is_empty() && kind.plural == "secrets") {
        let note = format!("{name}: {} Secrets are left out", restored.objects.len());
        return Ok(Exported { notes: vec![note], failures: 0 });
    }
    let origin = Arc::new(Origin::new(kind));
    let mut exported = Exported::default();
    for objects in restored.objects.chunks(BATCH) {
        export_batch(restored, objects, &origin, out, &mut exported)?;
    }
    if exported.failures > 0 {
        exported.notes.push(format!("{name}: {} objects could not be exported", exported.failures));
    }
    Ok(exported)
}

fn export_batch<D: Disk>(
    restored: &Restored<D>,
    objects: &[SavedObject],
    origin: &Arc<Origin>,
    out: &mut impl Write,
    exported: &mut Exported,
) -> io::Result<()> {
    let packer = Packer::new(Packing::Packed);
    let mut restorer = Restorer::new(&packer, Arc::clone(origin), Vec::new());
    for (id, bytes) in &restored.dictionaries {
        // A part that cannot be used is an error for the objects that need it.
        let _ = match *id {
            0..FIRST_OTHER_PART => restorer.add_dictionaries(vec![(*id, bytes.clone())]),
            _ => restorer.add_paths(id - FIRST_OTHER_PART, bytes),
        };
    }
    let mut content = Vec::new();
    for saved in objects {
        let key = restored.key(saved);
        let read = restored.bodies.read(&saved.content, &mut content).map_err(|error| error.to_string());
        let line = read.and_then(|()| {
            let content = restorer.content(saved.content.tag, std::mem::take(&mut content));
            let object = content.and_then(|content| restorer.object(key, restored.identity(saved), content));
            line(&object.map_err(|error| error.to_string())?)
        });
        match line {
            Ok(line) => writeln!(out, "{line}")?,
            Err(why) => {
                exported.failures += 1;
                if exported.failures <= MOST_NAMES {
                    exported.notes.push(format!("{}: {why}", printable(key)));
                }
            }
        }
    }
    Ok(())
}

/// The JSON of an object on one line.
fn line(object: &Object<Value>) -> Result<String, String> {
    if object.media_type() == MediaType::Protobuf && object.kind().kind.is_empty() {
        return Err("the header does not name the kind, which content in protobuf needs".to_owned());
    }
    let json = object.json().map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_slice(&json).map_err(|_| "the content is not JSON".to_owned())?;
    // The header says that these are no Secrets. It is not encrypted, and anybody may have written it.
    if value["kind"] == "Secret" {
        return Err("a Secret is left out".to_owned());
    }
    Ok(printable_json(&value.to_string()).into_owned())
}

/// The kind of the objects, from what the log belongs to.
fn kind<D: Disk>(log: &InspectedLog<D>) -> Option<Kind> {
    let mut parts = log.belongs_to.get("resource")?.split('/');
    let (group, version, plural) = (parts.next()?, parts.next()?, parts.next()?);
    // Only content in protobuf needs the kind: JSON has it.
    let kind = log.belongs_to.get("kind").unwrap_or_default();
    parts.next().is_none().then(|| Kind::namespaced(group, version, kind, plural))
}
