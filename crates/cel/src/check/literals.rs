//! Checks of constants: durations, timestamps, patterns, formats, and lists and maps with different types of elements.

use super::{Checked, Reference};
use crate::functions::{Clause, Formatting, format_text, native};
use crate::limits::PER_CALL_LIMIT;
use crate::meter::Meter;
use crate::pattern::compile_pattern;
use crate::syntax::ast::{Expr, Id, Kind, Literal};
use crate::syntax::source::{Issues, Offset};
use crate::types::Type;
use crate::value::Value;

/// Reports constants with errors in an expression whose types are right.
pub(crate) fn check_literals(root: &Expr, positions: &[Offset], checked: &Checked, issues: &mut Issues) {
    let mut report = |id: Id, message: String| issues.report(positions[id], message);
    root.walk(&mut |e| {
        if let Kind::Call { target, function, args } = &e.kind {
            check_call(e, target.as_deref(), function, args, checked, &mut report);
        }
    });
    same_types(root, checked, &mut report);
}

type Report<'r> = &'r mut dyn FnMut(Id, String);

fn check_call(
    e: &Expr,
    target: Option<&Expr>,
    function: &str,
    args: &[Expr],
    checked: &Checked,
    report: Report<'_>,
) {
    let name = match checked.references.get(&e.id) {
        Some(Reference::Function { name, .. }) => name.as_str(),
        _ => function,
    };
    match (name, args.first()) {
        ("duration" | "timestamp", Some(arg)) => {
            if let Kind::Literal(literal) = &arg.kind
                && !converts(name, literal)
            {
                report(arg.id, format!("invalid {name} argument"));
            }
        }
        ("matches", Some(arg)) => {
            if let Kind::Literal(Literal::String(pattern)) = &arg.kind
                && compile_pattern(pattern).is_err()
            {
                report(arg.id, "invalid matches argument".to_owned());
            }
        }
        ("format", Some(Expr { kind: Kind::List { elements, .. }, .. })) => {
            if let Some(Kind::Literal(Literal::String(text))) = target.map(|target| &target.kind) {
                check_format(e.id, text, elements, checked, report);
            }
        }
        _ => {}
    }
}

fn converts(function: &str, literal: &Literal) -> bool {
    let value = match literal {
        Literal::String(text) => Value::string(text.as_ref()),
        Literal::Int(n) => Value::Int(*n),
        _ => return true,
    };
    native(function).is_some_and(|native| native(&mut Meter::new(PER_CALL_LIMIT), "", &[value]).is_ok())
}

/// Reports elements of another type than the first, except in the arguments of `format`.
fn same_types(e: &Expr, checked: &Checked, report: Report<'_>) {
    let type_of = |e: &Expr, optional: bool| match (&checked.types[e.id], optional) {
        (Type::Optional(inner), true) => inner.as_ref().clone(),
        (t, _) => t.clone(),
    };
    match &e.kind {
        Kind::Call { function, .. } if function == "format" => return,
        Kind::List { elements, optional } => {
            let mut all = elements.iter().zip(optional).map(|(e, optional)| (e.id, type_of(e, *optional)));
            if let Some((_, first)) = all.next()
                && let Some((id, other)) = all.find(|(_, other)| !first.is_exact(other))
            {
                report(id, format!("expected type '{first}' but found '{other}'"));
            }
        }
        Kind::Map(entries) => {
            if let Some(first) = entries.first() {
                let (key, value) = (type_of(&first.key, false), type_of(&first.value, first.optional));
                for entry in &entries[1..] {
                    for (e, expected, optional) in
                        [(&entry.key, &key, false), (&entry.value, &value, entry.optional)]
                    {
                        let found = type_of(e, optional);
                        if !expected.is_exact(&found) {
                            report(e.id, format!("expected type '{expected}' but found '{found}'"));
                        }
                    }
                }
            }
        }
        _ => {}
    }
    e.children(&mut |child| same_types(child, checked, report));
}

fn check_format(call: Id, text: &str, elements: &[Expr], checked: &Checked, report: Report<'_>) {
    let mut checker = FormatChecker { call, elements, checked };
    match format_text(text, &mut checker) {
        Err((id, why)) => report(id, why),
        Ok((_, used)) if used < elements.len() => {
            let given = elements.len();
            report(
                call,
                format!("too many arguments supplied to string.format (expected {used}, got {given})"),
            );
        }
        Ok(_) => {}
    }
}

/// Checks the types of arguments in place of printing them.
struct FormatChecker<'c> {
    call: Id,
    elements: &'c [Expr],
    checked: &'c Checked,
}

impl FormatChecker<'_> {
    fn is_one_of(&self, id: Id, accepts: fn(&Type) -> bool) -> bool {
        let t = &self.checked.types[id];
        t.is_dyn() || accepts(t)
    }

    /// Returns the first expression that cannot be printed as a string.
    fn unprintable(&self, e: &Expr) -> Option<Id> {
        use Type::{Bool, Bytes, Double, Duration, Int, List, Map, Null, String, Timestamp, Uint};
        let printable = |t: &Type| {
            matches!(
                t,
                List(_)
                    | Map(_)
                    | Int
                    | Uint
                    | Double
                    | Bool
                    | String
                    | Timestamp
                    | Bytes
                    | Duration
                    | Type::Meta(_)
                    | Null
            )
        };
        if !self.is_one_of(e.id, printable) {
            return Some(e.id);
        }
        match &e.kind {
            Kind::List { elements, .. } => elements.iter().find_map(|e| self.unprintable(e)),
            Kind::Map(entries) => entries
                .iter()
                .find_map(|entry| self.unprintable(&entry.key).or_else(|| self.unprintable(&entry.value))),
            _ => None,
        }
    }
}

impl Formatting for FormatChecker<'_> {
    type Error = (Id, String);

    fn argument(&mut self, clause: Clause, index: usize, _: &mut String) -> Result<(), Self::Error> {
        let arg = &self.elements[index];
        let bad = match clause {
            Clause::String => self.unprintable(arg),
            clause => {
                let accepts: fn(&Type) -> bool = match clause {
                    Clause::Fixed(_) | Clause::Scientific(_) => |t| matches!(t, Type::Double | Type::String),
                    Clause::Binary => |t| matches!(t, Type::Int | Type::Uint | Type::Bool),
                    Clause::Hex { .. } => {
                        |t| matches!(t, Type::Int | Type::Uint | Type::String | Type::Bytes)
                    }
                    _ => |t| matches!(t, Type::Int | Type::Uint),
                };
                (!self.is_one_of(arg.id, accepts)).then_some(arg.id)
            }
        };
        match bad {
            Some(id) => Err((id, clause.mismatch(self.checked.types[id].name()))),
            None => Ok(()),
        }
    }

    fn check_index(&mut self, _: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    fn invalid(&mut self, why: String) -> Self::Error {
        (self.call, why)
    }

    fn size(&self) -> usize {
        self.elements.len()
    }
}
