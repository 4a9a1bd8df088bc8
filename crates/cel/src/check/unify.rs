//! Assignability of types, with type variables that are determined on the way.

use crate::types::Type;

/// The known types of type variables.
#[derive(Debug, Default)]
pub(super) struct Substitutions {
    bound: Vec<Option<Type>>,
    /// Variables with their earlier bindings, newest last, to undo an attempt that failed.
    trail: Vec<(usize, Option<Type>)>,
}

impl Substitutions {
    pub(super) fn fresh(&mut self) -> Type {
        self.bound.push(None);
        Type::Variable(self.bound.len() - 1)
    }

    fn find(&self, t: &Type) -> Option<&Type> {
        match t {
            Type::Variable(n) => self.bound.get(*n)?.as_ref(),
            _ => None,
        }
    }

    fn bind(&mut self, variable: usize, to: Type) {
        let old = self.bound[variable].replace(to);
        self.trail.push((variable, old));
    }

    /// Returns whether every type of `from` is assignable to that of `to`. Keeps what that determines only if all are.
    pub(super) fn assignable_all(&mut self, from: &[Type], to: &[Type]) -> bool {
        self.attempt(|s| from.len() == to.len() && from.iter().zip(to).all(|(a, b)| s.assign(a, b)))
    }

    pub(super) fn assignable(&mut self, from: &Type, to: &Type) -> bool {
        self.attempt(|s| s.assign(from, to))
    }

    fn attempt(&mut self, assign: impl FnOnce(&mut Self) -> bool) -> bool {
        let start = self.trail.len();
        let done = assign(self);
        if !done {
            while self.trail.len() > start {
                if let Some((variable, old)) = self.trail.pop() {
                    self.bound[variable] = old;
                }
            }
        }
        self.trail.clear();
        done
    }

    fn assign(&mut self, from: &Type, to: &Type) -> bool {
        if let Type::Variable(variable) = to {
            match self.substitute_variable(from, *variable) {
                Substitution::Valid => return true,
                Substitution::Conflict => return false,
                Substitution::Recursive => {}
            }
        }
        if let Type::Variable(variable) = from {
            return matches!(self.substitute_variable(to, *variable), Substitution::Valid);
        }
        if from.is_dyn_or_error() || to.is_dyn_or_error() {
            return true;
        }
        match (from, to) {
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => self.assign(a, b),
            (Type::Map(a), Type::Map(b)) => self.assign(&a.0, &b.0) && self.assign(&a.1, &b.1),
            (Type::Meta(_), Type::Meta(_)) => true,
            (a, b) => a.is_exact(b),
        }
    }

    /// Tries to make `t` the substitution of a variable, or to reconcile it with the present one.
    fn substitute_variable(&mut self, t: &Type, variable: usize) -> Substitution {
        if matches!(t, Type::Variable(same) if *same == variable) {
            return Substitution::Valid;
        }
        let Some(present) = self.bound[variable].clone() else {
            if self.occurs(variable, t) {
                return Substitution::Recursive;
            }
            self.bind(variable, t.clone());
            return Substitution::Valid;
        };
        if t.is_exact(&present) {
            return Substitution::Valid;
        }
        if !self.assign(t, &present) {
            return Substitution::Conflict;
        }
        let general = most_general(t, &present);
        if !self.occurs(variable, &general) {
            self.bind(variable, general);
        }
        Substitution::Valid
    }

    fn occurs(&self, variable: usize, within: &Type) -> bool {
        match within {
            Type::Variable(n) if *n == variable => true,
            Type::Variable(_) => self.find(within).is_some_and(|bound| self.occurs(variable, bound)),
            Type::List(inner) | Type::Optional(inner) | Type::Meta(Some(inner)) => {
                self.occurs(variable, inner)
            }
            Type::Map(entry) => self.occurs(variable, &entry.0) || self.occurs(variable, &entry.1),
            _ => false,
        }
    }

    /// Replaces variables by their substitutions, and those without one by `dyn` if `to_dyn`.
    pub(super) fn substitute(&self, t: &Type, to_dyn: bool) -> Type {
        if let Some(bound) = self.find(t) {
            return self.substitute(bound, to_dyn);
        }
        match t {
            Type::Variable(_) if to_dyn => Type::Dyn,
            Type::List(inner) => Type::list(self.substitute(inner, to_dyn)),
            Type::Optional(inner) => Type::optional(self.substitute(inner, to_dyn)),
            Type::Map(entry) => {
                Type::map(self.substitute(&entry.0, to_dyn), self.substitute(&entry.1, to_dyn))
            }
            Type::Meta(Some(inner)) => Type::Meta(Some(self.substitute(inner, to_dyn).into())),
            other => other.clone(),
        }
    }
}

enum Substitution {
    Valid,
    /// The variable has another type.
    Conflict,
    /// The type contains the variable.
    Recursive,
}

fn is_nullable(t: &Type) -> bool {
    use Type::{Duration, Message, Null, Object, Opaque, Optional, Timestamp};
    matches!(t, Null | Object(..) | Message(_) | Opaque(_) | Optional(_) | Duration | Timestamp)
}

/// Returns the more general of two types that are assignable.
pub(super) fn most_general(a: &Type, b: &Type) -> Type {
    if is_equal_or_less_specific(a, b) { a.clone() } else { b.clone() }
}

fn is_equal_or_less_specific(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Variable(_), _) => true,
        (_, Type::Dyn | Type::Variable(_)) => false,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
            is_equal_or_less_specific(a, b)
        }
        (Type::Map(a), Type::Map(b)) => {
            is_equal_or_less_specific(&a.0, &b.0) && is_equal_or_less_specific(&a.1, &b.1)
        }
        (Type::Meta(_), Type::Meta(_)) => true,
        (a, b) => a.is_exact(b),
    }
}

/// Replaces the parameters of a declaration by variables.
pub(super) fn instantiate(t: &Type, params: &[(char, Type)]) -> Type {
    match t {
        Type::Param(name) => {
            params.iter().find(|(param, _)| param == name).map_or(Type::Dyn, |(_, v)| v.clone())
        }
        Type::List(inner) => Type::list(instantiate(inner, params)),
        Type::Optional(inner) => Type::optional(instantiate(inner, params)),
        Type::Map(entry) => Type::map(instantiate(&entry.0, params), instantiate(&entry.1, params)),
        Type::Meta(Some(inner)) => Type::Meta(Some(instantiate(inner, params).into())),
        other => other.clone(),
    }
}
