//! Estimates of calls.

use super::range::Range;
use super::{Entries, Estimator, Path};
use crate::call_cost::LIST;
use crate::check::Reference;
use crate::syntax::ast::{Expr, Kind, Literal};
use crate::types::Type;

/// The cost of one character, and of one character of a pattern.
const CHARACTER: f64 = 0.1;
const PATTERN_CHARACTER: f64 = 0.25;
/// The pattern of a named format is assumed to have this length.
const FORMAT_PATTERN: f64 = 128.0;
/// The longest name of a format.
const FORMAT_NAME: u64 = 64;

/// The cost of a call without its arguments, and the size of its result if that is known.
struct Estimate {
    cost: Range,
    size: Option<Range>,
}

/// The receiver or an argument of a call.
struct Argument<'c> {
    e: &'c Expr,
    t: &'c Type,
    path: Path,
    size: Option<Range>,
    cost: Range,
}

fn cost(cost: Range) -> Option<Estimate> {
    Some(Estimate { cost, size: None })
}

fn sized(cost: Range, size: Range) -> Option<Estimate> {
    Some(Estimate { cost, size: Some(size) })
}

/// Functions of the Kubernetes libraries that cost one step, whatever their arguments.
const UNIT_COST: &[&str] = &[
    "masked",
    "prefixLength",
    "family",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "format.named",
    "sign",
    "asInteger",
    "isInteger",
    "asApproximateFloat",
    "isGreaterThan",
    "isLessThan",
    "compareTo",
    "add",
    "sub",
    "major",
    "minor",
    "patch",
    "getScheme",
    "getHostname",
    "getHost",
    "getPort",
    "getEscapedPath",
    "getQuery",
];

impl<'c> Estimator<'c> {
    pub(super) fn call(&mut self, e: &'c Expr, target: Option<&'c Expr>, args: &'c [Expr]) -> Range {
        let Some(Reference::Function { name, overloads, drops_target }) = self.checked.references.get(&e.id)
        else {
            return Range::fixed(0);
        };
        if let ("dyn", [arg]) = (name.as_str(), args) {
            let cost = self.cost(arg);
            self.copy_size(e, arg);
            return cost + Range::fixed(1);
        }
        let args: Vec<Argument<'c>> = args.iter().map(|arg| self.argument(arg)).collect();
        let target = target.filter(|_| !drops_target).map(|target| self.argument(target));
        let mut total = Range::none(false);
        let mut size: Option<Range> = None;
        let ids: Vec<&str> = overloads.iter().map(|overload| overload.id).collect();
        // A selection of an optional field is a call of one overload.
        let ids = if ids.is_empty() { vec!["select_optional_field"] } else { ids };
        for id in ids {
            let estimate = self.overload(e, name, id, target.as_ref(), &args);
            total = total.union(estimate.cost);
            size = match (size, estimate.size) {
                (Some(a), Some(b)) => Some(a.union(b)),
                (a, b) => a.or(b),
            };
            if let ("index_list" | "index_map", Some(operand)) = (id, args.first()) {
                size = self.entries_of(operand.e).map(|entries| entries.value);
                let mut path = self.path(operand.e);
                path.push(if id == "index_list" { "@items" } else { "@values" }.to_owned());
                self.paths.insert(e.id, path);
            }
            size = size.or_else(|| self.size(e));
        }
        if let Some(size) = size {
            self.sizes.insert(e.id, size);
        }
        target.map_or(Range::fixed(0), |target| target.cost) + total
    }

    fn argument(&mut self, e: &'c Expr) -> Argument<'c> {
        let cost = self.cost(e);
        Argument { e, t: self.type_of(e), path: self.path(e), size: self.size(e), cost }
    }

    fn overload(
        &mut self,
        e: &'c Expr,
        name: &str,
        id: &str,
        target: Option<&Argument<'c>>,
        args: &[Argument<'c>],
    ) -> Estimate {
        let arguments = args.iter().fold(Range::fixed(0), |sum, arg| sum + arg.cost);
        let library = self.list_function(id, target, args).or_else(|| self.library(name, id, target, args));
        if let Some(estimate) = library {
            return Estimate { cost: estimate.cost + arguments, ..estimate };
        }
        match (id, args) {
            ("logical_or" | "logical_and", [left, right]) => {
                let cost = Range { min: left.cost.min, max: (left.cost + right.cost).max };
                Estimate { cost, size: None }
            }
            ("conditional", [condition, yes, no]) => {
                let entries = self.united_entries(yes.e, no.e);
                self.set_entries(e, entries);
                let cost = condition.cost + yes.cost.union(no.cost);
                Estimate { cost, size: Some(yes.known().union(no.known())) }
            }
            ("add_string" | "add_bytes" | "add_list", [left, right]) => {
                let entries = self.united_entries(left.e, right.e);
                self.set_entries(e, entries);
                let size = left.known() + right.known();
                let own = if id == "add_list" { Range::fixed(1) } else { size.scaled(CHARACTER) };
                Estimate { cost: own + arguments, size: Some(size) }
            }
            _ => {
                let estimate = standard(id, target, args);
                Estimate { cost: estimate.cost + arguments, ..estimate }
            }
        }
    }

    fn united_entries(&self, a: &Expr, b: &Expr) -> Option<Entries> {
        let (a, b) = (self.entries_of(a)?, self.entries_of(b)?);
        Some(Entries { is_list: a.is_list, key: a.key.union(b.key), value: a.value.union(b.value) })
    }

    fn set_entries(&mut self, e: &Expr, entries: Option<Entries>) {
        if let Some(entries) = entries {
            self.entries.insert(e.id, entries);
        }
    }

    /// Functions of lists and sets that make lists or compare all elements.
    fn list_function(
        &self,
        id: &str,
        target: Option<&Argument<'c>>,
        args: &[Argument<'c>],
    ) -> Option<Estimate> {
        let new_list = |factor: f64, size: Range| sized(size.scaled(factor) + Range::fixed(1 + LIST), size);
        let compared = |list: &Argument<'c>| {
            let factor =
                if id.contains("_string_") || id.contains("_bytes_") { 2.0 + CHARACTER } else { 2.0 };
            new_list(factor, list.known() * list.known())
        };
        match (id, target, args) {
            ("list_slice", Some(list), [start, end]) => {
                let size = integer(end, list.known().max).wrapping_sub(integer(start, 0));
                new_list(1.0, Range::fixed(size))
            }
            ("lists_range", None, [n]) => new_list(1.0, Range::fixed(integer(n, u64::MAX))),
            ("list_reverse", Some(list), []) => new_list(1.0, list.known()),
            ("list_flatten", Some(list), []) => new_list(1.0, list.known()),
            ("list_flatten_int", Some(list), [depth]) => {
                new_list(integer(depth, u64::MAX) as f64, list.known())
            }
            ("list_distinct", Some(list), []) => new_list(2.0, list.known() * list.known()),
            (id, Some(list), []) if id.ends_with("_sort") => compared(list),
            (id, Some(_), [keys]) if id.ends_with("_sortByAssociatedKeys") => compared(keys),
            ("list_sets_contains_list" | "list_sets_intersects_list", None, [a, b]) => {
                cost((a.known() * b.known()).scaled(1.0) + Range::fixed(1))
            }
            ("list_sets_equivalent_list", None, [a, b]) => {
                cost((a.known() * b.known()).scaled(2.0) + Range::fixed(1))
            }
            _ => None,
        }
    }

    /// Functions of the libraries of Kubernetes, by name.
    fn library(
        &self,
        name: &str,
        id: &str,
        target: Option<&Argument<'c>>,
        args: &[Argument<'c>],
    ) -> Option<Estimate> {
        let first = args.first();
        let parsed = |factor: f64| first.and_then(|arg| cost(arg.known().scaled(factor)));
        match name {
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                target.and_then(|list| self.traversal(list))
            }
            "url" => first.and_then(|arg| sized(arg.known().scaled(CHARACTER), arg.known())),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                target.and_then(|text| sized(text.known().scaled(CHARACTER), text.known()))
            }
            "replace" => replace(target?, args),
            "split" => {
                let size = target?.known();
                let max = match args.get(1).map(|arg| &arg.e.kind) {
                    Some(Kind::Literal(Literal::Int(n))) => *n as u64,
                    _ => size.max,
                };
                sized(size.scaled(2.0 * CHARACTER), Range { min: 0, max })
            }
            "join" => self.join(target?, first),
            "find" | "findAll" => {
                let size = target?.known();
                let text = (size + Range::fixed(1)).scaled(CHARACTER);
                sized(text * first?.known().scaled(PATTERN_CHARACTER), Range { min: 0, max: size.max })
            }
            "ip" if id == "cidr_ip" => cost(Range::fixed(1)),
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                parsed(CHARACTER)
            }
            "ip.isCanonical" => parsed(2.0 * CHARACTER),
            "containsIP" => network(first?, id == "cidr_contains_ip_string", false),
            "containsCIDR" => network(first?, id == "cidr_contains_cidr_string", true),
            "validate" => {
                let text = first?.known().scaled(CHARACTER);
                cost(text.scaled(FORMAT_PATTERN * PATTERN_CHARACTER))
            }
            name if UNIT_COST.contains(&name) => cost(Range::fixed(1)),
            "_==_" => equality(args),
            _ => None,
        }
    }

    /// One step for each element, and the traversal of texts.
    fn traversal(&self, list: &Argument<'c>) -> Option<Estimate> {
        let size = list.known();
        match element_type(list.t) {
            Some(element) => {
                let mut each = Range::fixed(1);
                if matches!(element, Type::String | Type::Bytes) {
                    each = each + self.element_size(list).scaled(CHARACTER);
                }
                cost(size * each)
            }
            None => cost(size.scaled(CHARACTER)),
        }
    }

    fn element_size(&self, list: &Argument<'c>) -> Range {
        if list.path.is_empty() {
            return Range::UNKNOWN;
        }
        let mut path = list.path.clone();
        path.push("@items".to_owned());
        self.declared_size(&path).unwrap_or(Range::UNKNOWN)
    }

    fn join(&self, list: &Argument<'c>, separator: Option<&Argument<'c>>) -> Option<Estimate> {
        let count = list.known();
        let mut size = Range::fixed(0);
        if element_type(list.t).is_some() {
            size = count * self.element_size(list);
        }
        if let Some(separator) = separator {
            let separators = Range { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
            size = size + separator.known() * separators;
        }
        sized(size.scaled(CHARACTER), size)
    }
}

impl Argument<'_> {
    fn known(&self) -> Range {
        self.size.unwrap_or(Range::UNKNOWN)
    }
}

/// Returns the first parameter of a type.
fn element_type(t: &Type) -> Option<&Type> {
    match t {
        Type::List(element) | Type::Optional(element) => Some(element),
        Type::Map(entry) => Some(&entry.0),
        _ => None,
    }
}

/// Returns the value of an integer literal; a negative one is zero.
fn integer(arg: &Argument<'_>, otherwise: u64) -> u64 {
    match &arg.e.kind {
        Kind::Literal(Literal::Int(n)) => u64::try_from(*n).unwrap_or(0),
        _ => otherwise,
    }
}

fn network(other: &Argument<'_>, parses: bool, masks: bool) -> Option<Estimate> {
    let address = Range { min: 4, max: 16 };
    let mut total = (address + address).scaled(CHARACTER);
    if masks {
        total = total + address.scaled(CHARACTER) + Range::fixed(1);
    }
    if parses {
        total = total + other.known().scaled(CHARACTER);
    }
    cost(total)
}

fn equality(args: &[Argument<'_>]) -> Option<Estimate> {
    let [left, right] = args else { return None };
    if !left.t.is_exact(right.t) {
        return None;
    }
    match left.t {
        Type::Opaque(_) => cost(Range::fixed(1)),
        Type::Message("kubernetes.NamedFormat") => cost(Range { min: 1, max: FORMAT_NAME }.scaled(CHARACTER)),
        Type::Message("kubernetes.URL") => {
            let size = right.size.unwrap_or(Range::fixed(1));
            cost(Range { min: 1, max: size.max }.scaled(CHARACTER))
        }
        Type::Message(_) => cost(Range::fixed(1)),
        _ => None,
    }
}

fn replace(text: &Argument<'_>, args: &[Argument<'_>]) -> Option<Estimate> {
    let [old, new, ..] = args else { return None };
    let (size, old, new) = (text.known(), old.known(), new.known());
    let (mut count, mut kept) = (Range::fixed(0), Range::fixed(0));
    if old.min == 0 {
        // Nothing is replaced around every character.
        count.max = size.max.saturating_add(1);
        kept.max = size.max;
    } else if new.max <= old.min {
        kept.max = size.max;
    } else {
        count.max = (size.max as f64 / old.min as f64).ceil() as u64;
    }
    if old.max == 0 {
        count.min = size.min.saturating_add(1);
        kept.min = size.min;
    } else if old.max <= new.min {
        kept.min = size.min;
    } else {
        count.min = (size.min as f64 / old.max as f64).ceil() as u64;
    }
    sized(size.scaled(2.0 * CHARACTER), count * new + kept)
}

/// The functions of the language, by overload.
fn standard(id: &str, target: Option<&Argument<'_>>, args: &[Argument<'_>]) -> Estimate {
    let known = |at: usize| args.get(at).map_or(Range::UNKNOWN, Argument::known);
    let (cost, size) = match (id, target, args.len()) {
        ("string_format", Some(text), _) => (text.known().scaled(CHARACTER), None),
        ("string_to_bytes", _, 1) => {
            let size = known(0);
            (size.scaled(CHARACTER), Some(Range { min: size.min, max: size.max.wrapping_mul(4) }))
        }
        ("bytes_to_string", _, 1) => {
            let size = known(0);
            (size.scaled(CHARACTER), Some(Range { min: size.min / 4, max: size.max }))
        }
        ("strings_quote", _, 1) => {
            let size = known(0);
            let quoted =
                Range { min: size.min.wrapping_add(2), max: size.max.wrapping_mul(2).wrapping_add(2) };
            (size.scaled(CHARACTER), Some(quoted))
        }
        ("starts_with_string" | "ends_with_string", _, 1) => (known(0).scaled(CHARACTER), None),
        ("in_list", _, 2) => (known(1), None),
        ("matches_string", Some(text), 1) => {
            let text = (text.known() + Range::fixed(1)).scaled(CHARACTER);
            (text * known(0).scaled(PATTERN_CHARACTER), None)
        }
        ("contains_string", Some(text), 1) => {
            (text.known().scaled(CHARACTER) * known(0).scaled(CHARACTER), None)
        }
        (
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes"
            | "equals"
            | "not_equals",
            ..,
        ) => {
            let max = known(0).max.min(known(1).max);
            (Range { min: u64::from(max > 0), max }.scaled(CHARACTER), None)
        }
        _ => (Range::fixed(1), None),
    };
    Estimate { cost, size }
}
