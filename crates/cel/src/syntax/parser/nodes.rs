//! Expressions of a tree, within the limits of depth and size.

use super::super::ast::{Entry, Expr, Field, Id, Kind};
use super::super::source::Offset;
use super::{Abort, Parse, Parser};
use crate::limits::{MAX_DEPTH, MAX_NODES};

impl Parser<'_> {
    /// Makes an expression at a place, within the limits of depth and size.
    pub(in crate::syntax) fn node(&mut self, at: Offset, kind: Kind) -> Parse<Expr> {
        let id: Id = self.positions.len();
        if id >= MAX_NODES {
            self.issues.report(
                None,
                format!("expression size exceeds limit after macro expansion: limit {MAX_NODES}"),
            );
            return Err(Abort);
        }
        let expr = Expr { id, kind };
        let mut depth = 0;
        expr.children(&mut |child| depth = depth.max(self.depths[child.id]));
        if depth >= MAX_DEPTH {
            return Err(self.too_deep());
        }
        self.positions.push(at);
        self.depths.push(depth + 1);
        Ok(expr)
    }

    /// Copies an expression with new ids.
    pub(in crate::syntax) fn copy(&mut self, expr: &Expr) -> Parse<Expr> {
        let at = self.positions[expr.id];
        let boxed = |parser: &mut Self, e: &Expr| parser.copy(e).map(Box::new);
        let all =
            |parser: &mut Self, es: &[Expr]| es.iter().map(|e| parser.copy(e)).collect::<Parse<Vec<_>>>();
        let kind = match &expr.kind {
            Kind::Literal(_) | Kind::Ident(_) => expr.kind.clone(),
            Kind::Select { operand, field, test_only } => {
                Kind::Select { operand: boxed(self, operand)?, field: field.clone(), test_only: *test_only }
            }
            Kind::Call { target, function, args } => {
                let target = target.as_deref().map(|target| boxed(self, target)).transpose()?;
                Kind::Call { target, function: function.clone(), args: all(self, args)? }
            }
            Kind::List { elements, optional } => {
                Kind::List { elements: all(self, elements)?, optional: optional.clone() }
            }
            Kind::Map(entries) => Kind::Map(
                entries
                    .iter()
                    .map(|e| {
                        Ok(Entry {
                            key: self.copy(&e.key)?,
                            value: self.copy(&e.value)?,
                            optional: e.optional,
                        })
                    })
                    .collect::<Parse<_>>()?,
            ),
            Kind::Struct { name, fields } => Kind::Struct {
                name: name.clone(),
                fields: fields
                    .iter()
                    .map(|f| Ok(Field { value: self.copy(&f.value)? }))
                    .collect::<Parse<_>>()?,
            },
            Kind::Comprehension(fold) => {
                let mut copy = fold.as_ref().clone();
                for part in
                    [&mut copy.range, &mut copy.init, &mut copy.condition, &mut copy.step, &mut copy.result]
                {
                    *part = self.copy(part)?;
                }
                Kind::Comprehension(Box::new(copy))
            }
        };
        self.node(at, kind)
    }

    pub(in crate::syntax) fn position(&self, expr: &Expr) -> Offset {
        self.positions[expr.id]
    }

    pub(super) fn too_deep(&mut self) -> Abort {
        self.issues.report(None, format!("expression recursion limit exceeded: {MAX_DEPTH}"));
        Abort
    }
}
