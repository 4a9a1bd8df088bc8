//! The place of a value inside an object.

use std::fmt;

/// A place such as `spec.ports[3].name`, written only when it is shown: a text for every value of an object with long keys would take
/// more than the object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step<'p>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'p> {
    Root,
    Field(&'p str),
    Element(usize),
}

impl<'p> Path<'p> {
    pub(super) const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    pub(super) fn field(&'p self, name: &'p str) -> Self {
        Self { parent: Some(self), step: Step::Field(name) }
    }

    pub(super) fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    pub(super) fn element(&'p self, place: usize) -> Self {
        Self { parent: Some(self), step: Step::Element(place) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) if self.parent.is_none_or(|p| matches!(p.step, Step::Root)) => {
                f.write_str(name)
            }
            Step::Field(name) => write!(f, ".{name}"),
            Step::Element(place) => write!(f, "[{place}]"),
        }
    }
}

impl From<Path<'_>> for String {
    fn from(path: Path<'_>) -> Self {
        path.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_as_messages_write_them() {
        assert_eq!(Path::ROOT.to_string(), "");
        let ports = Path::ROOT.field("spec");
        let ports = ports.field("ports");
        assert_eq!(ports.element(3).field("name").to_string(), "spec.ports[3].name");
    }
}
