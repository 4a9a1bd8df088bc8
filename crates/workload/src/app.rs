//! Applications: the properties that the pods of one deployment share.

use fastrand::Rng;

const TEAMS: [&str; 8] = ["shop", "search", "billing", "identity", "media", "logistics", "data", "platform"];
const PARTS: [&str; 14] = [
    "api",
    "web",
    "worker",
    "cache",
    "gateway",
    "indexer",
    "scheduler",
    "importer",
    "exporter",
    "mailer",
    "proxy",
    "ledger",
    "session",
    "reports",
];
const LANGUAGES: [&str; 4] = ["java", "go", "node", "python"];

/// An application: one template, many pods.
#[derive(Debug, Clone)]
pub struct App {
    /// The namespace, named after the team that owns it.
    pub namespace: String,
    /// The name of the deployment.
    pub name: String,
    /// The hash of its pod template, as in the names of replica sets.
    pub template_hash: String,
    /// Programming language, which determines some environment variables.
    pub(crate) language: &'static str,
    pub(crate) version: String,
    pub(crate) port: u16,
    /// Number of environment variables: about a dozen, sometimes many more.
    pub(crate) variables: usize,
    /// Whether its pods have a mesh proxy.
    pub(crate) has_sidecar: bool,
}

impl App {
    /// Generates an application; the number makes its name unique.
    pub fn generate(rng: &mut Rng, number: usize) -> Self {
        let (team, part) = (pick(rng, &TEAMS), pick(rng, &PARTS));
        Self {
            namespace: team.to_owned(),
            name: format!("{team}-{part}-{number}"),
            template_hash: word(rng, 9),
            language: pick(rng, &LANGUAGES),
            version: format!("{}.{}.{}", rng.u8(1..9), rng.u8(0..30), rng.u8(0..12)),
            port: rng.u16(3000..9999),
            variables: if rng.u8(0..10) == 0 { rng.usize(30..60) } else { rng.usize(6..20) },
            has_sidecar: rng.u8(0..3) == 0,
        }
    }

    /// The namespaces of generated applications.
    pub fn namespaces() -> &'static [&'static str] {
        &TEAMS
    }
}

pub(crate) fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.usize(..from.len())]
}

/// A random suffix, from the letters that Kubernetes uses in generated names.
pub(crate) fn word(rng: &mut Rng, len: usize) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    (0..len).map(|_| char::from(pick(rng, LETTERS))).collect()
}

pub(crate) fn hex(rng: &mut Rng, len: usize) -> String {
    (0..len).map(|_| char::from(pick(rng, b"0123456789abcdef"))).collect()
}

/// A time in the first four weeks of 2026.
pub(crate) fn time(rng: &mut Rng) -> String {
    let (day, hour, minute, second) = (rng.u8(1..29), rng.u8(0..24), rng.u8(0..60), rng.u8(0..60));
    format!("2026-01-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
