//! The cost that an expression may have at most, from the sizes that its schema allows.
//!
//! kube-apiserver rejects a CRD whose rules could cost too much, so that the estimate is part of the API: it is computed step by step as
//! there.

mod calls;
mod range;

use std::collections::HashMap;

use crate::call_cost::{LIST, MAP};
use crate::check::{Checked, Reference};
use crate::declared::Declared;
use crate::syntax::ast::{Comprehension, Expr, Id, Kind, Literal, OLD_ACCUMULATOR};
use crate::types::Type;

use range::Range;

/// Returns the least and the largest cost of a checked expression.
pub(crate) fn estimate(root: &Expr, checked: &Checked, declared: &Declared) -> (u64, u64) {
    let mut estimator = Estimator {
        checked,
        declared,
        paths: HashMap::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
        locals: HashMap::new(),
    };
    let cost = estimator.cost(root);
    (cost.min, cost.max)
}

/// A path through the declared types: a variable, then fields, `@items`, `@keys` and `@values`. Empty if it is not known.
type Path = Vec<String>;

/// The sizes of the entries of a list or a map.
#[derive(Debug, Clone, Copy)]
struct Entries {
    is_list: bool,
    key: Range,
    value: Range,
}

/// A variable that a macro declares.
#[derive(Debug)]
struct Local {
    path: Path,
    size: Option<Range>,
    entries: Option<Entries>,
}

struct Estimator<'c> {
    checked: &'c Checked,
    declared: &'c Declared,
    paths: HashMap<Id, Path>,
    sizes: HashMap<Id, Range>,
    entries: HashMap<Id, Entries>,
    locals: HashMap<String, Vec<Local>>,
}

impl<'c> Estimator<'c> {
    fn cost(&mut self, e: &'c Expr) -> Range {
        match &e.kind {
            Kind::Literal(_) => Range::fixed(0),
            Kind::Ident(name) => {
                let path = self.local(name).map_or_else(|| vec![name.clone()], |local| local.path.clone());
                self.paths.insert(e.id, path);
                Range::fixed(1)
            }
            Kind::Select { operand, field, test_only } => self.select(e, operand, field, *test_only),
            Kind::Call { target, args, .. } => self.call(e, target.as_deref(), args),
            Kind::List { elements, .. } => {
                let mut cost = Range::fixed(0);
                let mut size = Range::none(elements.is_empty());
                for element in elements {
                    cost = cost + self.cost(element);
                    size = size.union(self.size_or_unknown(element));
                }
                self.entries.insert(e.id, Entries { is_list: true, key: Range::fixed(1), value: size });
                cost + Range::fixed(LIST)
            }
            Kind::Map(entries) => {
                let mut cost = Range::fixed(0);
                let (mut key, mut value) = (Range::none(entries.is_empty()), Range::none(entries.is_empty()));
                for entry in entries {
                    cost = cost + self.cost(&entry.key) + self.cost(&entry.value);
                    key = key.union(self.size_or_unknown(&entry.key));
                    value = value.union(self.size_or_unknown(&entry.value));
                }
                self.entries.insert(e.id, Entries { is_list: false, key, value });
                cost + Range::fixed(MAP)
            }
            Kind::Struct { .. } => Range::fixed(0),
            Kind::Comprehension(fold) if is_binding(fold) => self.binding(e, fold),
            Kind::Comprehension(fold) => self.comprehension(e, fold),
        }
    }

    fn select(&mut self, e: &'c Expr, operand: &'c Expr, field: &str, test_only: bool) -> Range {
        if let Some(Reference::Variable(name) | Reference::TypeName(name)) =
            self.checked.references.get(&e.id)
        {
            self.paths.insert(e.id, vec![name.clone()]);
            return Range::fixed(1);
        }
        let cost = self.cost(operand);
        if test_only {
            return cost;
        }
        let has_cost = matches!(self.type_of(operand), Type::Map(_) | Type::Object(..) | Type::Message(_));
        let mut path = self.path(operand);
        path.push(field.to_owned());
        self.paths.insert(e.id, path);
        cost + Range::fixed(u64::from(has_cost))
    }

    fn comprehension(&mut self, e: &'c Expr, fold: &'c Comprehension) -> Range {
        let cost = self.cost(&fold.range) + self.cost(&fold.init);
        self.push_binding(&fold.accumulator, &fold.init);
        self.push_variables(fold);
        let iteration = self.cost(&fold.condition) + self.cost(&fold.step);
        self.pop(&fold.variable);
        if let Some(name) = &fold.second_variable {
            self.pop(name);
        }
        let cost = cost + self.cost(&fold.result);
        self.pop(&fold.accumulator);
        let count = self.size_or_unknown(&fold.range);
        match &fold.init.kind {
            Kind::Literal(_) => {
                if let Some(size) = self.size(&fold.init) {
                    self.sizes.insert(e.id, size);
                }
            }
            Kind::List { .. } | Kind::Map(_) => {
                self.sizes.insert(e.id, count);
                if let Some(entries) = self.entries_of(&fold.step) {
                    self.entries.insert(e.id, entries);
                }
            }
            _ => {}
        }
        cost + count * iteration
    }

    fn push_variables(&mut self, fold: &'c Comprehension) {
        let entries = self.entries_of(&fold.range);
        let is_list =
            entries.map_or_else(|| matches!(self.type_of(&fold.range), Type::List(_)), |e| e.is_list);
        let path = self.path(&fold.range);
        let mut push = |name: &str, step: &str, size: Option<Range>| {
            let mut path = path.clone();
            path.push(step.to_owned());
            self.locals.entry(name.to_owned()).or_default().push(Local { path, size, entries: None });
        };
        let (key, value) = (entries.map(|e| e.key), entries.map(|e| e.value));
        match &fold.second_variable {
            Some(second) => {
                push(&fold.variable, if is_list { "@indices" } else { "@keys" }, key);
                push(second, if is_list { "@items" } else { "@values" }, value);
            }
            None if is_list => push(&fold.variable, "@items", value),
            None => push(&fold.variable, "@keys", key),
        }
    }

    /// A fold over nothing, which binds a variable.
    fn binding(&mut self, e: &'c Expr, fold: &'c Comprehension) -> Range {
        let cost = self.cost(&fold.range) + self.cost(&fold.init);
        self.push_binding(&fold.accumulator, &fold.init);
        let cost = cost + self.cost(&fold.result);
        self.pop(&fold.accumulator);
        self.copy_size(e, &fold.result);
        cost
    }

    fn push_binding(&mut self, name: &str, e: &'c Expr) {
        let local = Local { path: self.path(e), entries: self.entries_of(e), size: self.size(e) };
        self.locals.entry(name.to_owned()).or_default().push(local);
    }

    fn pop(&mut self, name: &str) {
        if let Some(stack) = self.locals.get_mut(name) {
            stack.pop();
        }
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.get(name)?.last()
    }

    fn type_of(&self, e: &Expr) -> &'c Type {
        &self.checked.types[e.id]
    }

    fn path(&self, e: &Expr) -> Path {
        if let Kind::Ident(name) = &e.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&e.id).cloned().unwrap_or_default()
    }

    fn copy_size(&mut self, to: &Expr, from: &'c Expr) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(to.id, size);
        }
        if let Some(entries) = self.entries_of(from) {
            self.entries.insert(to.id, entries);
        }
    }

    fn size_or_unknown(&mut self, e: &'c Expr) -> Range {
        self.size(e).unwrap_or(Range::UNKNOWN)
    }

    /// Returns the size of the value of an expression, as far as it is known.
    fn size(&mut self, e: &'c Expr) -> Option<Range> {
        if let Some(size) = self.sizes.get(&e.id) {
            return Some(*size);
        }
        if let Some(size) = literal_size(e) {
            return Some(Range::fixed(size));
        }
        if let Some(size) = self.declared_size(&self.path(e)) {
            self.sizes.insert(e.id, size);
            return Some(size);
        }
        if self.type_of(e).is_scalar() {
            return Some(Range::fixed(1));
        }
        match &e.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn declared_size(&self, path: &[String]) -> Option<Range> {
        // The first step is a variable, of which there is only one type.
        let max = self.declared.max_size_at(path.get(1..)?)?;
        Some(Range { min: 0, max })
    }

    fn entries_of(&self, e: &Expr) -> Option<Entries> {
        if let Some(entries) = self.entries.get(&e.id) {
            return Some(*entries);
        }
        match &e.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.entries),
            _ => None,
        }
    }
}

fn is_binding(fold: &Comprehension) -> bool {
    matches!(&fold.range.kind, Kind::List { elements, .. } if elements.is_empty())
        && matches!(fold.condition.kind, Kind::Literal(Literal::Bool(false)))
        && fold.accumulator != OLD_ACCUMULATOR
}

fn literal_size(e: &Expr) -> Option<u64> {
    Some(match &e.kind {
        Kind::Literal(Literal::String(text)) => text.chars().count() as u64,
        Kind::Literal(Literal::Bytes(bytes)) => bytes.len() as u64,
        Kind::Literal(_) => 1,
        Kind::List { elements, .. } => elements.len() as u64,
        Kind::Map(entries) => entries.len() as u64,
        _ => return None,
    })
}
