//! Reads the identity of an object in protobuf.

use super::{Meta, Presence, Scan};
use crate::{Limits, Malformed, Owner, protobuf::framing::open_field};
use kube_informer_types::protobuf::{Fields, Wire};
use std::borrow::Cow;

impl<'a> Scan<'a> {
    /// Reads a complete message. Its kind and version are in the envelope around it.
    ///
    /// The result is that of the object's JSON: protobuf has empty texts and zeros where JSON omits a field.
    pub(crate) fn read_protobuf(message: &'a [u8], limits: &Limits) -> Result<Self, Malformed> {
        let (scan, is_complete) = Self::read_some_protobuf(message, limits);
        match is_complete {
            true => Ok(scan),
            false => {
                let reason = format!("not a protobuf message of {} bytes", message.len());
                Err(Malformed::new(reason).at(scan.resource_version()))
            }
        }
    }

    /// Reads up to the first malformed field. Returns whether there is none.
    pub(crate) fn read_some_protobuf(message: &'a [u8], limits: &Limits) -> (Self, bool) {
        let mut scan = Self { kind: Presence::Present, api_version: Presence::Present, ..Self::default() };
        for field in Fields::new(message) {
            match field {
                // Every kind has its metadata as number 1. If it comes in pieces, they count together.
                Ok((1, Wire::Bytes(bytes))) => {
                    let meta = scan.meta.get_or_insert_default();
                    if !meta.read(bytes, limits, &mut scan.malformed) {
                        return (scan, false);
                    }
                }
                Ok((1, _)) => scan.malformed = true,
                Ok(_) => {}
                Err(_) => {
                    // Of an object that is cut off in its metadata, identity comes first.
                    if let (None, Some(bytes)) = (&scan.meta, open_field(message, 1)) {
                        scan.meta.get_or_insert_default().read(bytes, limits, &mut scan.malformed);
                    }
                    return (scan, false);
                }
            }
        }
        (scan, true)
    }
}

impl<'a> Meta<'a> {
    /// Returns whether the message is well-formed.
    fn read(&mut self, bytes: &'a [u8], limits: &Limits, malformed: &mut bool) -> bool {
        for field in Fields::new(bytes) {
            let Ok((number, wire)) = field else { return false };
            match number {
                1 => self.name = text(wire, malformed),
                3 => self.namespace = text(wire, malformed).filter(|namespace| !namespace.is_empty()),
                5 => self.uid = text(wire, malformed),
                6 => self.resource_version = text(wire, malformed),
                7 => match wire.integer() {
                    Ok(generation) => self.generation = Some(generation).filter(|number| *number != 0),
                    Err(_) => *malformed = true,
                },
                9 => match wire.bytes() {
                    Ok(time) => self.deleting = !time.is_empty(),
                    Err(_) => *malformed = true,
                },
                11 if self.labels.len() <= limits.labels => match entry(wire, malformed) {
                    Some(label) => self.labels.push(label),
                    None => *malformed = true,
                },
                12 => {
                    if let Some((key, value)) = entry(wire, malformed)
                        && key == "k8s.io/initial-events-end"
                    {
                        self.initial_events_end = value == "true";
                    }
                }
                13 if self.controller.is_none() => self.controller = owner(wire, malformed),
                _ => {}
            }
        }
        true
    }
}

fn text<'a>(wire: Wire<'a>, malformed: &mut bool) -> Option<Cow<'a, str>> {
    let text = wire.text().ok();
    *malformed |= text.is_none();
    text.map(Cow::Borrowed)
}

/// An entry of a map of texts.
fn entry<'a>(wire: Wire<'a>, malformed: &mut bool) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
    let (mut key, mut value) = (Cow::Borrowed(""), Cow::Borrowed(""));
    for field in Fields::new(wire.bytes().ok()?) {
        match field.ok()? {
            (1, wire) => key = text(wire, malformed)?,
            (2, wire) => value = text(wire, malformed)?,
            _ => {}
        }
    }
    Some((key, value))
}

/// One owner reference, if it is a controller.
fn owner(wire: Wire<'_>, malformed: &mut bool) -> Option<Owner> {
    let (mut api_version, mut kind, mut name, mut uid, mut controller) = ("", "", "", "", false);
    let Ok(bytes) = wire.bytes() else {
        *malformed = true;
        return None;
    };
    for field in Fields::new(bytes) {
        let part = field.ok().and_then(|(number, wire)| match number {
            1 => wire.text().ok().map(|text| kind = text),
            3 => wire.text().ok().map(|text| name = text),
            4 => wire.text().ok().map(|text| uid = text),
            5 => wire.text().ok().map(|text| api_version = text),
            6 => wire.integer().ok().map(|flag| controller = flag != 0),
            _ => Some(()),
        });
        if part.is_none() {
            *malformed = true;
            return None;
        }
    }
    controller.then(|| Owner {
        api_version: api_version.into(),
        kind: kind.into(),
        name: name.into(),
        uid: uid.into(),
    })
}

#[cfg(test)]
mod tests;
