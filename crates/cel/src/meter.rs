//! The cost of an evaluation so far.

use std::collections::HashMap;

use regex::Regex;

use crate::limits::{MAX_WORK, PER_CALL_LIMIT};
use crate::pattern::compile_pattern;
use crate::value::{Failure, error};

/// Patterns that are not constant are kept while one evaluation runs.
const MAX_PATTERNS: usize = 32;
/// The work of compiling a pattern, in elements.
const PATTERN_WORK: u64 = 5_000;
/// The work that every evaluation may do, whatever its limit.
const MIN_WORK: u64 = 100_000;

/// The cost of one evaluation in the units of Kubernetes, and the work behind it.
#[derive(Debug)]
pub(crate) struct Meter {
    cost: u64,
    limit: u64,
    /// Elements copied and compared. Kubernetes has no such count; see [`MAX_WORK`].
    work: u64,
    work_limit: u64,
    patterns: HashMap<Box<str>, Regex>,
}

impl Meter {
    pub(crate) fn new(limit: u64) -> Self {
        // A smaller limit also bounds the work; at the limit of Kubernetes this is `MAX_WORK`.
        let work_limit = limit.saturating_mul(MAX_WORK / PER_CALL_LIMIT).clamp(MIN_WORK, MAX_WORK);
        Self { cost: 0, limit, work: 0, work_limit, patterns: HashMap::new() }
    }

    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Adds the cost of one step.
    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), Failure> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(Failure::Exceeded) } else { Ok(()) }
    }

    /// Ends the evaluation if a step of this cost would not be within the limit.
    pub(crate) fn require(&mut self, cost: u64) -> Result<(), Failure> {
        if self.cost.saturating_add(cost) > self.limit { self.charge(cost) } else { Ok(()) }
    }

    /// Counts elements that are copied or compared.
    pub(crate) fn work(&mut self, elements: u64) -> Result<(), Failure> {
        self.work = self.work.saturating_add(elements);
        if self.work > self.work_limit { Err(Failure::Exceeded) } else { Ok(()) }
    }

    /// Makes a constant pattern available to this evaluation.
    pub(crate) fn add_pattern(&mut self, pattern: &str, regex: &Regex) {
        self.patterns.insert(pattern.into(), regex.clone());
    }

    /// Returns a compiled pattern.
    pub(crate) fn regex(&mut self, pattern: &str) -> Result<Regex, Failure> {
        if let Some(regex) = self.patterns.get(pattern) {
            return Ok(regex.clone());
        }
        self.work(PATTERN_WORK + pattern.len() as u64)?;
        match compile_pattern(pattern) {
            Ok(regex) => {
                if self.patterns.len() < MAX_PATTERNS {
                    self.patterns.insert(pattern.into(), regex.clone());
                }
                Ok(regex)
            }
            Err(why) => error(format!("error parsing regexp: {why}: `{pattern}`")),
        }
    }
}
