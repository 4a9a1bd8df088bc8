//! Subresources: the paths below an object.

use crate::verb::Verb;

/// A path below an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subresource {
    Approval,
    Binding,
    EphemeralContainers,
    Eviction,
    Finalize,
    Resize,
    Scale,
    Status,
    Token,
}

impl Subresource {
    const ALL: [Self; 9] = [
        Self::Approval,
        Self::Binding,
        Self::EphemeralContainers,
        Self::Eviction,
        Self::Finalize,
        Self::Resize,
        Self::Scale,
        Self::Status,
        Self::Token,
    ];

    /// The subresource of a path segment.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subresource| subresource.name() == name)
    }

    /// The segment of the path.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Binding => "binding",
            Self::EphemeralContainers => "ephemeralcontainers",
            Self::Eviction => "eviction",
            Self::Finalize => "finalize",
            Self::Resize => "resize",
            Self::Scale => "scale",
            Self::Status => "status",
            Self::Token => "token",
        }
    }

    /// The verbs it has, in the order of discovery.
    pub(crate) fn verbs(self) -> &'static [Verb] {
        match self {
            Self::Binding | Self::Eviction | Self::Token => &[Verb::Create],
            Self::Finalize => &[Verb::Update],
            _ => &[Verb::Get, Verb::Patch, Verb::Update],
        }
    }
}
