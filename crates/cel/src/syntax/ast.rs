//! The syntax tree of an expression.

use std::sync::Arc;

/// Identifies one expression of a tree; an index into the tables of positions, types and references.
pub(crate) type Id = usize;

/// The hidden accumulator variable of the macros. Expressions cannot name it.
pub(crate) const ACCUMULATOR: &str = "@result";
/// The older name of the accumulator, which iteration variables must not use either.
pub(crate) const OLD_ACCUMULATOR: &str = "__result__";

/// One expression with the expressions in it.
#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub(crate) id: Id,
    pub(crate) kind: Kind,
}

/// The forms of an expression. Operators are calls of functions such as `_+_`.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Literal(Literal),
    Ident(String),
    Select { operand: Box<Expr>, field: String, test_only: bool },
    Call { target: Option<Box<Expr>>, function: String, args: Vec<Expr> },
    List { elements: Vec<Expr>, optional: Vec<bool> },
    Map(Vec<Entry>),
    Struct { name: String, fields: Vec<Field> },
    Comprehension(Box<Comprehension>),
}

/// A constant in the source.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

/// One entry of a map literal.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// One field of a message literal.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) value: Expr,
}

/// A fold over a list or a map; all macros with iteration variables expand to it.
#[derive(Debug, Clone)]
pub(crate) struct Comprehension {
    pub(crate) range: Expr,
    pub(crate) variable: String,
    pub(crate) second_variable: Option<String>,
    pub(crate) accumulator: String,
    pub(crate) init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

impl Expr {
    /// Returns `a.b.c` for an expression that consists of selections from an identifier.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.clone()),
            Kind::Select { operand, field, test_only: false } => {
                let mut name = operand.qualified_name()?;
                name.push('.');
                name.push_str(field);
                Some(name)
            }
            _ => None,
        }
    }

    /// Calls `visit` with this expression and all expressions in it, in pre-order.
    pub(crate) fn walk<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        visit(self);
        self.children(&mut |child| child.walk(visit));
    }

    /// Calls `visit` with the expressions directly in this one.
    pub(crate) fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        match &self.kind {
            Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select { operand, .. } => visit(operand),
            Kind::Call { target, args, .. } => {
                target.iter().for_each(|target| visit(target));
                args.iter().for_each(visit);
            }
            Kind::List { elements, .. } => elements.iter().for_each(visit),
            Kind::Map(entries) => {
                for entry in entries {
                    visit(&entry.key);
                    visit(&entry.value);
                }
            }
            Kind::Struct { fields, .. } => fields.iter().for_each(|field| visit(&field.value)),
            Kind::Comprehension(fold) => {
                for part in [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result] {
                    visit(part);
                }
            }
        }
    }
}
