//! Results of a run.

use serde_json::{Map, Value, json};

/// The figures of one contender. A missing figure is null, with a reason.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    name: &'static str,
    variant: &'static str,
    figures: Map<String, Value>,
    reasons: Map<String, Value>,
}

impl Figures {
    pub(crate) fn new(name: &'static str, variant: &'static str) -> Self {
        Self { name, variant, figures: Map::new(), reasons: Map::new() }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn variant(&self) -> &'static str {
        self.variant
    }

    pub(crate) fn label(&self) -> String {
        format!("{}/{}", self.name, self.variant)
    }

    pub(crate) fn put(&mut self, figure: &str, value: impl Into<Value>) {
        self.figures.insert(figure.to_owned(), value.into());
    }

    pub(crate) fn missing(&mut self, figures: &[&str], reason: &str) {
        for figure in figures {
            self.figures.insert((*figure).to_owned(), Value::Null);
            self.reasons.insert((*figure).to_owned(), reason.into());
        }
    }

    pub(crate) fn get(&self, figure: &str) -> Option<f64> {
        self.figures.get(figure)?.as_f64()
    }

    pub(crate) fn json(&self) -> Value {
        let mut all = Map::new();
        all.insert("name".into(), self.name.into());
        all.insert("variant".into(), self.variant.into());
        all.extend(self.figures.clone());
        if !self.reasons.is_empty() {
            all.insert("reasons".into(), self.reasons.clone().into());
        }
        all.into()
    }
}

/// All figures of a run.
pub(crate) struct Results {
    pub(crate) pods: usize,
    pub(crate) command: String,
    pub(crate) machine: Value,
    /// Compressibility of the objects of each corpus and kind.
    pub(crate) data: Map<String, Value>,
    pub(crate) contenders: Vec<Figures>,
}

impl Results {
    pub(crate) fn json(&self) -> Value {
        let contenders: Vec<Value> = self.contenders.iter().map(Figures::json).collect();
        json!({"pods": self.pods, "command": self.command, "machine": self.machine, "data": self.data, "contenders": contenders})
    }

    pub(crate) fn find(&self, name: &str, variant: &str) -> Option<&Figures> {
        self.contenders.iter().find(|figures| figures.label() == format!("{name}/{variant}"))
    }
}

/// The machine and its load.
pub(crate) fn machine() -> Value {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let load = read("/proc/loadavg").split_whitespace().next().and_then(|load| load.parse::<f64>().ok());
    json!({
        "cpu": model.map(|(_, model)| model), "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "kernel": read("/proc/sys/kernel/osrelease").trim(), "load_before": load,
        "allocator": "the system's (glibc malloc with its defaults) for both Rust programs, Go's own with its defaults for client-go",
    })
}

/// The median of measured values; NaN without any.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
