//! Puts all mutants of a file into its text, each behind a switch. No line moves.

use crate::{
    mutant::Mutant,
    sites::{Shape, Site},
};
use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
};

/// A file whose text has some mutants, or other code behind switches.
#[derive(Debug, Default)]
pub struct Instrumented {
    pub text: String,
    /// Where the code of a mutant is in `text`.
    pub own: Vec<(Range<usize>, u32)>,
    /// Where the code of a site is in `text`, with its mutants. A site that contains another one comes before it.
    pub around: Vec<(Range<usize>, Vec<u32>)>,
}

impl Instrumented {
    /// Mutants that cause a compiler error at this range: those whose code is there, otherwise those of the innermost site.
    pub fn blamed(&self, error: &Range<usize>) -> Vec<u32> {
        let touches =
            |range: &Range<usize>| range.start < error.end.max(error.start + 1) && error.start < range.end;
        let own: Vec<u32> = self.own.iter().filter(|(range, _)| touches(range)).map(|(_, id)| *id).collect();
        if !own.is_empty() {
            return own;
        }
        let contains = |range: &Range<usize>| range.start <= error.start && error.end <= range.end;
        self.around
            .iter()
            .rev()
            .find(|(range, _)| contains(range))
            .map(|(_, ids)| ids.clone())
            .unwrap_or_default()
    }
}

/// The mutants of a file, in the order of its sites. Their ids are consecutive.
pub fn mutants(file: &str, source: &str, sites: &[Site], first_id: u32) -> Vec<Mutant> {
    let mut repetitions = BTreeMap::new();
    let all = sites.iter().flat_map(|site| site.mutations.iter().map(move |mutation| (site, mutation)));
    all.zip(first_id..)
        .map(|((site, mutation), id)| {
            let code = source[site.code.clone()].split_whitespace().collect::<Vec<_>>().join(" ");
            let mut mutant = Mutant {
                id,
                file: file.to_owned(),
                line: site.line,
                function: site.function.clone(),
                change: mutation.change.clone(),
                code,
                repetition: 0,
            };
            let repetition = repetitions.entry(mutant.description()).or_insert(0);
            mutant.repetition = *repetition;
            *repetition += 1;
            mutant
        })
        .collect()
}

/// Puts the mutants of the sites into the text, except those that do not compile.
pub fn instrument(source: &str, sites: &[Site], first_id: u32, unviable: &HashSet<u32>) -> Instrumented {
    let mut insertions = Vec::new();
    let mut id = first_id;
    for (order, site) in sites.iter().enumerate() {
        let mut included = Vec::new();
        for mutation in &site.mutations {
            if !unviable.contains(&id) {
                included.push((id, mutation.replacement.as_str()));
            }
            id += 1;
        }
        if !included.is_empty() {
            insertions.extend(insertions_of(&site.shape, order, &included));
        }
    }
    // At one position, inner sites end before outer ones, and outer ones begin before inner ones.
    insertions.sort_by_key(|insertion| {
        let order = insertion.site as isize;
        (insertion.at, if insertion.ends { (0, -order) } else { (1, order) })
    });
    assemble(source, insertions, sites.len())
}

/// Text that is inserted at a position.
struct Insertion {
    at: usize,
    site: usize,
    /// Whether it is the end of its site.
    ends: bool,
    /// Pieces of the text, some of which are code of one mutant.
    pieces: Vec<(Option<u32>, String)>,
}

fn insertions_of(shape: &Shape, site: usize, included: &[(u32, &str)]) -> Vec<Insertion> {
    let begin = |at, pieces| Insertion { at, site, ends: false, pieces };
    let end = |at, text: &str| Insertion { at, site, ends: true, pieces: vec![(None, text.to_owned())] };
    let on = |id: u32| format!("crate::__mutants::on({id})");
    match shape {
        Shape::Expression(range) => {
            let mut pieces = vec![(None, "(".to_owned())];
            for (id, replacement) in included {
                pieces.push((None, format!("if {} {{ ", on(*id))));
                pieces.push((Some(*id), (*replacement).to_owned()));
                pieces.push((None, " } else ".to_owned()));
            }
            pieces.push((None, "{ ".to_owned()));
            vec![begin(range.start, pieces), end(range.end, " })")]
        }
        Shape::Arm(at) => {
            vec![begin(*at, vec![(Some(included[0].0), format!(" if !{}", on(included[0].0)))])]
        }
        Shape::Function(at) => {
            let pieces = included
                .iter()
                .map(|(id, replacement)| (Some(*id), format!(" if {} {{ return {replacement}; }}", on(*id))));
            vec![begin(*at, pieces.collect())]
        }
    }
}

fn assemble(source: &str, insertions: Vec<Insertion>, sites: usize) -> Instrumented {
    let mut result = Instrumented { around: vec![(0..0, Vec::new()); sites], ..Instrumented::default() };
    let mut copied = 0;
    for insertion in insertions {
        result.text.push_str(&source[copied..insertion.at]);
        copied = insertion.at;
        let (range, ids) = &mut result.around[insertion.site];
        if !insertion.ends {
            range.start = result.text.len();
        }
        for (id, piece) in insertion.pieces {
            let start = result.text.len();
            result.text.push_str(&piece);
            if let Some(id) = id {
                ids.push(id);
                result.own.push((start..result.text.len(), id));
            }
        }
        range.end = result.text.len();
    }
    result.text.push_str(&source[copied..]);
    result.around.retain(|(_, ids)| !ids.is_empty());
    result
}
