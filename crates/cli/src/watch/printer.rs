//! Prints events as lines, JSON or YAML.

use super::{
    changes::{Change, brief, changes},
    masking::Masking,
    skipped::Skipped,
};
use crate::{
    args::{Output, WatchOptions},
    terminal::{printable, printable_json, printable_lines, printable_value},
};
use kube_informer::{Deleted, Event, Kind, Object};
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Write};

/// Changes on one line; further ones are counted.
const MOST_CHANGES: usize = 8;

/// Prints events on standard output.
pub(crate) struct Printer {
    output: Output,
    masking: Masking,
    colours: bool,
    skipped: Skipped,
}

impl Printer {
    pub(crate) fn new(options: &WatchOptions, skipped: Skipped) -> Self {
        Self {
            output: options.output,
            masking: Masking::new(options.show_secrets),
            colours: use_colours(io::stdout().is_terminal()),
            skipped,
        }
    }

    /// Prints one event, and flushes it for the reader of a pipe. An object that cannot be decoded is skipped.
    pub(crate) fn show(&mut self, event: &Event<Value>) -> anyhow::Result<()> {
        let text = match self.text(event) {
            Ok(text) => text,
            Err(error) => {
                self.skipped.record(Some(event.object().key()), &error.to_string());
                return Ok(());
            }
        };
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    fn text(&self, event: &Event<Value>) -> anyhow::Result<String> {
        let object = event.object();
        Ok(match self.output {
            Output::Changes => format!("{} {}\n", self.sign(event), printable(&self.line(event))),
            Output::Name => {
                let name = format!("{}/{}", object.kind(), object.key());
                format!("{} {}\n", self.sign(event), printable(&name))
            }
            Output::Json => {
                let json = json!({"type": word(event), "object": self.masked(object)?}).to_string();
                format!("{}\n", printable_json(&json))
            }
            Output::Yaml => {
                let yaml = serde_saphyr::to_string(&printable_value(self.masked(object)?))?;
                format!("---\n# {}\n{}", word(event), printable_lines(&yaml))
            }
        })
    }

    fn masked(&self, object: &Object<Value>) -> anyhow::Result<Value> {
        Ok(self.masking.masked(object.kind(), &[], &object.view::<Value>()?))
    }

    fn line(&self, event: &Event<Value>) -> String {
        let object = event.object();
        let head = format!("{} {}", object.kind(), object.key());
        let more = match event {
            Event::Added { .. } => String::new(),
            Event::Updated { old, new } if old.is_same_version(new) => "nothing changed (resync)".to_owned(),
            Event::Updated { old, new } => self.difference(old, new),
            Event::Deleted(Deleted::Seen(_)) => String::new(),
            Event::Deleted(Deleted::FinalStateUnknown { .. }) => {
                "the delete was missed; found by a relist".to_owned()
            }
        };
        if more.is_empty() { head } else { format!("{head}  {more}") }
    }

    fn difference(&self, old: &Object<Value>, new: &Object<Value>) -> String {
        let (Ok(before), Ok(after)) = (old.view::<Value>(), new.view::<Value>()) else {
            return "(its content cannot be decoded)".to_owned();
        };
        let found = changes(&before, &after);
        let mut parts: Vec<String> =
            found.iter().take(MOST_CHANGES).map(|one| self.change(new.kind(), one)).collect();
        if found.len() > MOST_CHANGES {
            parts.push(format!("and {} more", found.len() - MOST_CHANGES));
        }
        if parts.is_empty() {
            return format!("version {} → {}", old.resource_version(), new.resource_version());
        }
        parts.join(", ")
    }

    fn change(&self, kind: &Kind, change: &Change<'_>) -> String {
        let fields = change.path.fields();
        let shown = |value: Option<&Value>| {
            brief(value.map(|value| self.masking.masked(kind, &fields, value)).as_ref())
        };
        format!("{}: {} → {}", change.path, shown(change.from), shown(change.to))
    }

    fn sign(&self, event: &Event<Value>) -> String {
        let (sign, colour) = match event {
            Event::Added { .. } => ('+', 32),
            Event::Updated { old, new } if old.is_same_version(new) => ('=', 36),
            Event::Updated { .. } => ('~', 33),
            Event::Deleted(_) => ('-', 31),
        };
        if self.colours { format!("\x1b[{colour}m{sign}\x1b[0m") } else { sign.to_string() }
    }
}

/// Whether to use colours: on a terminal, unless `NO_COLOR` is set.
fn use_colours(is_terminal: bool) -> bool {
    is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn word(event: &Event<Value>) -> &'static str {
    match event {
        Event::Added { initial: true, .. } => "INITIAL",
        Event::Added { .. } => "ADDED",
        Event::Updated { old, new } if old.is_same_version(new) => "RESYNC",
        Event::Updated { .. } => "MODIFIED",
        Event::Deleted(_) => "DELETED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_informer::{Limits, Origin};
    use std::sync::Arc;

    fn printer(output: Output) -> Printer {
        Printer { output, masking: Masking::new(false), colours: false, skipped: Skipped::default() }
    }

    fn secret(version: &str, password: &str) -> Object<Value> {
        let origin = Arc::new(Origin::new(Kind::namespaced("", "v1", "Secret", "secrets")));
        let json = json!({"metadata": {"namespace": "shop", "name": "db", "resourceVersion": version, "uid": "u"},
            "data": {"password": password}});
        Object::parse(&origin, json.to_string().into(), &Limits::default()).unwrap()
    }

    fn printed(output: Output, event: &Event<Value>) -> String {
        printer(output).text(event).unwrap()
    }

    #[test]
    fn a_line_describes_an_event() {
        let (old, new) = (secret("1", "aaaa"), secret("2", "bbbb"));
        let lines = |event| printed(Output::Changes, &event);
        assert_eq!(lines(Event::Added { object: new.clone(), initial: false }), "+ secrets shop/db\n");
        let updated = Event::Updated { old: old.clone(), new: new.clone() };
        assert_eq!(lines(updated), "~ secrets shop/db  data.password: *** → ***\n");
        let resync = Event::Updated { old: new.clone(), new: new.clone() };
        assert_eq!(lines(resync), "= secrets shop/db  nothing changed (resync)\n");
        assert_eq!(lines(Event::Deleted(Deleted::Seen(new.clone()))), "- secrets shop/db\n");
        let missed = Deleted::FinalStateUnknown { key: new.key().clone(), last_known: new };
        assert!(lines(Event::Deleted(missed)).contains("was missed"));
    }

    #[test]
    fn no_output_shows_the_value_of_a_secret() {
        let event = Event::Updated { old: secret("1", "aaaaaaaa"), new: secret("2", "bbbbbbbb") };
        for output in [Output::Changes, Output::Json, Output::Yaml, Output::Name] {
            let text = printed(output, &event);
            assert!(!text.contains("aaaaaaaa") && !text.contains("bbbbbbbb"), "{text}");
            assert!(text.contains("db"), "{text}");
        }
        let shown = Printer { masking: Masking::new(true), ..printer(Output::Changes) };
        assert!(shown.text(&event).unwrap().contains("aaaaaaaa → bbbbbbbb"));
    }
}
