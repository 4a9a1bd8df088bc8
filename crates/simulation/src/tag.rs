//! A field of the objects of a model, which is malformed in some of them.

/// The value of the field `tag`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tag {
    #[default]
    Absent,
    Text,
    Number,
    Null,
    List,
    /// A text that is not Unicode.
    LoneSurrogate,
    /// A number that no type can represent.
    Overflow,
}

impl Tag {
    /// The tag of an object with this stamp.
    pub(crate) fn of(stamp: u64) -> Self {
        match stamp % 12 {
            0 => Self::Text,
            1 => Self::Number,
            2 => Self::Null,
            3 => Self::List,
            4 => Self::LoneSurrogate,
            5 => Self::Overflow,
            _ => Self::Absent,
        }
    }

    pub(crate) fn json(self) -> Option<&'static str> {
        match self {
            Self::Absent => None,
            Self::Text => Some(r#""text""#),
            Self::Number => Some("7"),
            Self::Null => Some("null"),
            Self::List => Some(r#"["a","b"]"#),
            Self::LoneSurrogate => Some(r#""\ud800""#),
            Self::Overflow => Some("1e999"),
        }
    }

    /// The values in an index over the field; `None` if it cannot be decoded.
    pub(crate) fn values(self) -> Option<Vec<String>> {
        match self {
            Self::Absent | Self::Null => Some(Vec::new()),
            Self::Text => Some(vec!["text".into()]),
            Self::Number => Some(vec!["7".into()]),
            Self::List => Some(vec![r#"["a","b"]"#.into()]),
            Self::LoneSurrogate | Self::Overflow => None,
        }
    }

    /// Whether an object with it cannot be decoded as a whole.
    pub(crate) fn is_malformed(self) -> bool {
        self.values().is_none()
    }
}
