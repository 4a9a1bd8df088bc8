//! Prints the results.

use crate::{
    equivalent::Equivalent,
    mutant::Mutant,
    results::{Outcome, Results},
};
use std::collections::BTreeMap;

pub struct Report<'a> {
    pub selected: &'a [&'a Mutant],
    pub is_viable: &'a dyn Fn(&Mutant) -> bool,
    pub results: &'a Results,
    pub equivalent: &'a Equivalent,
    /// Entries of the list of equivalent mutants that are no mutant.
    pub unknown: Vec<&'a str>,
}

/// Columns of the table of totals.
const COLUMNS: [&str; 8] =
    ["mutants", "caught", "timeout", "simulation", "missed", "not reached", "equivalent", "unviable"];

impl Report<'_> {
    /// Returns whether every mutant is caught or equivalent, and every entry of the list is right.
    pub fn print(&self) -> bool {
        let mut totals = BTreeMap::<&str, BTreeMap<&str, usize>>::new();
        let (mut missed, mut wrong) =
            (Vec::new(), self.unknown.iter().map(|entry| format!("no mutant: {entry}")).collect::<Vec<_>>());
        for mutant in self.selected {
            let is_listed = self.equivalent.contains(mutant);
            let outcome = self.results.get(mutant).map(|verdict| verdict.outcome);
            let column = match outcome {
                _ if !(self.is_viable)(mutant) => "unviable",
                _ if is_listed => "equivalent",
                Some(outcome) => outcome.name(),
                None => continue,
            };
            for of in [mutant.package(), "all"] {
                let totals = totals.entry(of).or_default();
                *totals.entry("mutants").or_default() += 1;
                *totals.entry(column).or_default() += 1;
            }
            match outcome {
                Some(outcome) if is_listed && !outcome.is_missed() => {
                    wrong.push(format!("{}: {mutant}", outcome.name()))
                }
                Some(outcome @ (Outcome::Missed | Outcome::NotReached)) if !is_listed => {
                    missed.push(format!("{}: {mutant}", outcome.name()));
                }
                _ => {}
            }
        }
        print_table(&totals);
        print_section("Missed", &missed);
        print_section("Wrong entries of tools/mutants/equivalent.txt", &wrong);
        missed.is_empty() && wrong.is_empty()
    }
}

fn print_table(totals: &BTreeMap<&str, BTreeMap<&str, usize>>) {
    println!("| crate | {} |", COLUMNS.join(" | "));
    println!("|---|{}", "---:|".repeat(COLUMNS.len()));
    for (of, totals) in totals {
        let numbers = COLUMNS.map(|column| totals.get(column).map_or(String::new(), ToString::to_string));
        println!("| {of} | {} |", numbers.join(" | "));
    }
}

fn print_section(title: &str, lines: &[String]) {
    if !lines.is_empty() {
        println!("\n{title}:");
        lines.iter().for_each(|line| println!("  {line}"));
    }
}
