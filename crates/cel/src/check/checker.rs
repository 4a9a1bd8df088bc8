//! The type checker.

use std::collections::HashMap;

use super::declarations::{self, Overload};
use super::unify::{Substitutions, instantiate, most_general};
use crate::declared::Shape;
use crate::syntax::ast::{Comprehension, Entry, Expr, Id, Kind, Literal};
use crate::syntax::source::{Issues, Offset};
use crate::types::Type;

/// The target of an identifier or a call.
#[derive(Debug, Clone)]
pub(crate) enum Reference {
    /// A variable.
    Variable(String),
    /// A type as a value.
    TypeName(String),
    /// The overloads of a function that match; one if the types are known.
    Function { name: String, overloads: Vec<&'static Overload>, drops_target: bool },
}

/// Types and references of all expressions, by id.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    pub(crate) types: Vec<Type>,
    pub(crate) references: HashMap<Id, Reference>,
}

/// Checks the types of an expression with these variables.
pub(crate) fn check(
    root: &Expr,
    positions: &[Offset],
    variables: &[(&str, Type)],
    issues: &mut Issues,
) -> Checked {
    let mut checker = Checker {
        positions,
        scopes: variables.iter().map(|(name, t)| ((*name).to_owned(), t.clone())).collect(),
        substitutions: Substitutions::default(),
        types: vec![None; positions.len()],
        references: HashMap::new(),
        issues,
    };
    checker.check(root);
    let Checker { types, substitutions, references, .. } = checker;
    let types =
        types.into_iter().map(|t| t.map_or(Type::Dyn, |t| substitutions.substitute(&t, true))).collect();
    Checked { types, references }
}

struct Checker<'c> {
    positions: &'c [Offset],
    /// Variables, innermost last.
    scopes: Vec<(String, Type)>,
    substitutions: Substitutions,
    types: Vec<Option<Type>>,
    references: HashMap<Id, Reference>,
    issues: &'c mut Issues,
}

impl Checker<'_> {
    fn check(&mut self, e: &Expr) -> Type {
        let t = match &e.kind {
            Kind::Literal(literal) => literal_type(literal),
            Kind::Ident(name) => self.ident(e.id, name),
            Kind::Select { operand, field, test_only } => self.select(e, operand, field, *test_only),
            Kind::Call { target, function, args } => self.call(e, target.as_deref(), function, args),
            Kind::List { elements, optional } => self.list(elements, optional),
            Kind::Map(entries) => self.map(entries),
            Kind::Struct { name, fields } => {
                // No type of this environment has a literal.
                self.report(e.id, format!("undeclared reference to '{name}' (in container '')"));
                fields.iter().for_each(|field| drop(self.check(&field.value)));
                Type::Error
            }
            Kind::Comprehension(fold) => self.comprehension(fold),
        };
        self.types[e.id] = Some(t.clone());
        t
    }

    fn report(&mut self, id: Id, message: String) {
        self.issues.report(self.positions[id], message);
    }

    fn lookup(&self, name: &str) -> Option<(Type, Reference)> {
        let name = name.strip_prefix('.').unwrap_or(name);
        let variable = self.scopes.iter().rev().find(|(variable, _)| variable == name);
        if let Some((_, t)) = variable {
            return Some((t.clone(), Reference::Variable(name.to_owned())));
        }
        let t = declarations::type_name(name)?;
        Some((Type::Meta(Some(t.into())), Reference::TypeName(name.to_owned())))
    }

    fn ident(&mut self, id: Id, name: &str) -> Type {
        match self.lookup(name) {
            Some((t, reference)) => {
                self.references.insert(id, reference);
                t
            }
            None => {
                self.report(id, format!("undeclared reference to '{name}' (in container '')"));
                Type::Error
            }
        }
    }

    fn select(&mut self, e: &Expr, operand: &Expr, field: &str, test_only: bool) -> Type {
        // A qualified name such as `net.IP` comes before a selection.
        if let Some((t, reference)) =
            e.qualified_name().filter(|_| !test_only).and_then(|name| self.lookup(&name))
        {
            self.references.insert(e.id, reference);
            return t;
        }
        let t = self.select_field(e.id, operand, field, false);
        if test_only { Type::Bool } else { self.substitutions.substitute(&t, false) }
    }

    fn select_field(&mut self, id: Id, operand: &Expr, field: &str, optional: bool) -> Type {
        let t = self.check(operand);
        let t = self.substitutions.substitute(&t, false);
        let (target, is_optional) = match &t {
            Type::Optional(inner) => (inner.as_ref().clone(), true),
            other => (other.clone(), false),
        };
        let result = match &target {
            Type::Map(entry) => entry.1.clone(),
            Type::Object(name, declared) => {
                let found = match &declared.shape {
                    Shape::Object(fields) => fields.get(field),
                    _ => None,
                };
                match found {
                    Some(declared) => declared.static_type(&format!("{name}.{field}")),
                    None => {
                        self.report(id, format!("undefined field '{field}'"));
                        Type::Error
                    }
                }
            }
            Type::Message(name) => {
                self.report(id, format!("unexpected failed resolution of '{name}'"));
                Type::Error
            }
            Type::Variable(_) => {
                self.substitutions.assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            other => {
                if !other.is_dyn_or_error() {
                    self.report(id, format!("type '{other}' does not support field selection"));
                }
                Type::Dyn
            }
        };
        if is_optional || optional { Type::optional(result) } else { result }
    }

    fn call(&mut self, e: &Expr, target: Option<&Expr>, function: &str, args: &[Expr]) -> Type {
        if function == "_?._" {
            return self.optional_select(e, args);
        }
        args.iter().for_each(|arg| drop(self.check(arg)));
        let Some(target) = target else {
            let name = function.strip_prefix('.').unwrap_or(function);
            return match declarations::function(name) {
                Some(overloads) => self.resolve(e, name, overloads, None, args, false),
                None => self.undeclared(e.id, function),
            };
        };
        // Given `a.b()`, either `a.b` is a function or `b` is one with the target `a`.
        if let Some(prefix) = target.qualified_name() {
            let name = format!("{prefix}.{function}");
            let name = name.strip_prefix('.').unwrap_or(&name);
            if let Some(overloads) = declarations::function(name) {
                return self.resolve(e, name, overloads, None, args, true);
            }
        }
        self.check(target);
        match declarations::function(function) {
            Some(overloads) => self.resolve(e, function, overloads, Some(target), args, false),
            None => self.undeclared(e.id, function),
        }
    }

    fn undeclared(&mut self, id: Id, name: &str) -> Type {
        self.report(id, format!("undeclared reference to '{name}' (in container '')"));
        Type::Error
    }

    fn optional_select(&mut self, e: &Expr, args: &[Expr]) -> Type {
        let [operand, Expr { kind: Kind::Literal(Literal::String(field)), .. }] = args else {
            self.report(e.id, "unsupported optional field selection".to_owned());
            return Type::Error;
        };
        let t = self.select_field(e.id, operand, field, true);
        // The argument is no expression of the source, but has a type like one.
        self.types[args[1].id] = Some(Type::String);
        let overloads = Vec::new();
        self.references
            .insert(e.id, Reference::Function { name: "_?._".to_owned(), overloads, drops_target: false });
        self.substitutions.substitute(&t, false)
    }

    fn type_of(&self, e: &Expr) -> Type {
        self.types[e.id].clone().unwrap_or(Type::Error)
    }

    fn resolve(
        &mut self,
        e: &Expr,
        name: &str,
        overloads: &'static [Overload],
        target: Option<&Expr>,
        args: &[Expr],
        drops_target: bool,
    ) -> Type {
        if matches!(name, "_&&_" | "_||_") {
            return self.logical(e, name, &overloads[0], args);
        }
        let mut given: Vec<Type> = target.into_iter().chain(args).map(|arg| self.type_of(arg)).collect();
        let mut matching = Vec::new();
        let mut result: Option<Type> = None;
        for overload in overloads.iter().filter(|overload| overload.is_member == target.is_some()) {
            let (params, returned) = self.instantiate(overload);
            if !self.substitutions.assignable_all(&given, &params) {
                continue;
            }
            matching.push(overload);
            let returned = self.substitutions.substitute(&returned, false);
            result = Some(match result {
                None => returned,
                Some(first) if first.is_dyn() || returned.is_exact(&first) => first,
                Some(_) => Type::Dyn,
            });
        }
        let Some(result) = result else {
            for t in &mut given {
                *t = self.substitutions.substitute(t, true);
            }
            let signature = signature(&given, target.is_some());
            self.report(e.id, format!("found no matching overload for '{name}' applied to '{signature}'"));
            return Type::Error;
        };
        let reference = Reference::Function { name: name.to_owned(), overloads: matching, drops_target };
        self.references.insert(e.id, reference);
        result
    }

    fn instantiate(&mut self, overload: &Overload) -> (Vec<Type>, Type) {
        if !overload.is_generic {
            return (overload.params.clone(), overload.result.clone());
        }
        let params = [('A', self.substitutions.fresh()), ('B', self.substitutions.fresh())];
        let given = overload.params.iter().map(|t| instantiate(t, &params)).collect();
        (given, instantiate(&overload.result, &params))
    }

    fn logical(&mut self, e: &Expr, name: &str, overload: &'static Overload, args: &[Expr]) -> Type {
        let mut result = Type::Bool;
        for arg in args {
            let t = self.type_of(arg);
            if !self.substitutions.assignable(&t, &Type::Bool) {
                self.report(arg.id, format!("expected type 'bool' but found '{t}'"));
                result = Type::Error;
            }
        }
        if matches!(result, Type::Bool) {
            let reference =
                Reference::Function { name: name.to_owned(), overloads: vec![overload], drops_target: false };
            self.references.insert(e.id, reference);
        }
        result
    }

    /// Returns the type of an optional element without `optional_type`.
    fn unwrap_optional(&mut self, e: &Expr, t: Type) -> Type {
        match t {
            Type::Optional(inner) => inner.as_ref().clone(),
            t => {
                if !t.is_dyn() {
                    self.report(e.id, format!("expected type 'optional_type({t})' but found '{t}'"));
                }
                t
            }
        }
    }

    fn list(&mut self, elements: &[Expr], optional: &[bool]) -> Type {
        let mut joined = None;
        for (element, optional) in elements.iter().zip(optional) {
            let mut t = self.check(element);
            if *optional {
                t = self.unwrap_optional(element, t);
            }
            joined = Some(self.join(joined, t));
        }
        Type::list(joined.unwrap_or_else(|| self.substitutions.fresh()))
    }

    fn map(&mut self, entries: &[Entry]) -> Type {
        let (mut key, mut value) = (None, None);
        for entry in entries {
            let t = self.check(&entry.key);
            key = Some(self.join(key, t));
            let mut t = self.check(&entry.value);
            if entry.optional {
                t = self.unwrap_optional(&entry.value, t);
            }
            value = Some(self.join(value, t));
        }
        let key = key.unwrap_or_else(|| self.substitutions.fresh());
        Type::map(key, value.unwrap_or_else(|| self.substitutions.fresh()))
    }

    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.substitutions.assignable(&previous, &current) {
            return most_general(&previous, &current);
        }
        // Reported later, as an error of constants.
        Type::Dyn
    }

    fn mismatch(&mut self, e: &Expr, expected: &Type, found: &Type) {
        self.report(e.id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn comprehension(&mut self, fold: &Comprehension) -> Type {
        let range = self.check(&fold.range);
        let accumulator = self.check(&fold.init);
        let range = self.substitutions.substitute(&range, false);
        let (first, second) = self.variable_types(fold, range);
        let outer = self.scopes.len();
        self.scopes.push((fold.accumulator.clone(), accumulator.clone()));
        let inner = self.scopes.len();
        self.scopes.push((fold.variable.clone(), first));
        if let Some(name) = &fold.second_variable {
            self.scopes.push((name.clone(), second));
        }
        for (part, expected) in [(&fold.condition, Type::Bool), (&fold.step, accumulator)] {
            let t = self.check(part);
            if !self.substitutions.assignable(&expected, &t) {
                self.mismatch(part, &expected, &t);
            }
        }
        self.scopes.truncate(inner);
        let result = self.check(&fold.result);
        self.scopes.truncate(outer);
        self.substitutions.substitute(&result, false)
    }

    fn variable_types(&mut self, fold: &Comprehension, range: Type) -> (Type, Type) {
        let two = fold.second_variable.is_some();
        match &range {
            Type::List(element) if two => (Type::Int, element.as_ref().clone()),
            Type::List(element) => (element.as_ref().clone(), Type::Dyn),
            Type::Map(entry) => (entry.0.clone(), entry.1.clone()),
            Type::Dyn | Type::Error | Type::Variable(_) => {
                self.substitutions.assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.report(fold.range.id, message);
                (Type::Error, Type::Error)
            }
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

fn signature(given: &[Type], has_target: bool) -> String {
    let (target, args) = given.split_at(usize::from(has_target));
    let args: Vec<String> = args.iter().map(Type::to_string).collect();
    let target: String = target.iter().map(|t| format!("{t}.")).collect();
    format!("{target}({})", args.join(", "))
}
