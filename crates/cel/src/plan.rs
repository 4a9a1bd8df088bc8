//! Programs: checked expressions in the form in which they are evaluated.
//!
//! The form decides about the cost of variables, selections and constants, which is that of kube-apiserver: a chain such as `self.a[0].b`
//! is one attribute with qualifiers, and what is constant is evaluated once.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use regex::Regex;

use crate::call_cost::CallCost;
use crate::check::{Checked, Reference};
use crate::functions::{Native, is_conversion, native, pattern_argument};
use crate::limits::PER_CALL_LIMIT;
use crate::meter::Meter;
use crate::pattern::compile_pattern;
use crate::syntax::ast::{Comprehension, Entry, Expr, Kind, Literal};
use crate::value::{Failure, Key, List, Map, Value};

/// A step of a program.
#[derive(Debug)]
pub(crate) enum Node {
    Const(Value<'static>),
    Attribute(Box<Attribute>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Equal {
        args: Box<[Node; 2]>,
        negated: bool,
    },
    NotStrictlyFalse(Box<Node>),
    Call(Box<Call>),
    InSet(Box<(Node, Set)>),
    List(Vec<(Node, bool)>),
    Map(Vec<(Node, Node, bool)>),
    Fold(Box<Fold>),
    /// The first optional value, or the second if it is none; `unwrap` returns the value of the first.
    OptionalOr {
        args: Box<[Node; 2]>,
        unwrap: bool,
    },
}

/// A value with selections from it.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) base: Base,
    pub(crate) qualifiers: Vec<Qualifier>,
    /// Whether the attribute is a presence test of its last qualifier.
    pub(crate) test_only: bool,
}

/// Where an attribute starts.
#[derive(Debug)]
pub(crate) enum Base {
    Variable(usize),
    Node(Node),
    Conditional { condition: Node, yes: Node, no: Node },
}

/// A selection by a key or an index.
#[derive(Debug)]
pub(crate) struct Qualifier {
    pub(crate) key: Node,
    pub(crate) optional: bool,
}

/// A call of a function.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: String,
    pub(crate) overload: &'static str,
    pub(crate) native: Native,
    pub(crate) args: Vec<Node>,
    pub(crate) cost: CallCost,
    /// Whether all arguments are evaluated even if one fails.
    pub(crate) eager: bool,
    /// Whether the first argument is the accumulator of the innermost fold, which the result replaces.
    pub(crate) accumulates: bool,
}

/// A fold over a list or a map.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) range: Node,
    pub(crate) variable: usize,
    pub(crate) second_variable: Option<usize>,
    pub(crate) accumulator: usize,
    pub(crate) init: Node,
    pub(crate) condition: Node,
    pub(crate) step: Node,
    pub(crate) result: Node,
}

/// Constants of a list that `in` looks up.
#[derive(Debug, Default)]
pub(crate) struct Set {
    keys: BTreeSet<Key>,
    fractions: BTreeSet<u64>,
}

/// A program.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) root: Node,
    /// The number of variables.
    pub(crate) slots: usize,
    pub(crate) patterns: HashMap<String, Regex>,
}

/// Makes the program of a checked expression, or returns the error of a constant in it.
pub(crate) fn plan(root: &Expr, checked: &Checked, variables: &[&str]) -> Result<Plan, Arc<str>> {
    let scopes = variables.iter().enumerate().map(|(slot, name)| ((*name).to_owned(), slot)).collect();
    let mut planner = Planner { checked, scopes, slots: variables.len(), patterns: HashMap::new() };
    let root = planner.node(root)?;
    Ok(Plan { root, slots: planner.slots, patterns: planner.patterns })
}

struct Planner<'c> {
    checked: &'c Checked,
    scopes: Vec<(String, usize)>,
    slots: usize,
    patterns: HashMap<String, Regex>,
}

type Planned = Result<Node, Arc<str>>;

impl Planner<'_> {
    fn node(&mut self, e: &Expr) -> Planned {
        match self.checked.references.get(&e.id) {
            Some(Reference::Variable(name)) => return Ok(self.variable(name)),
            Some(Reference::TypeName(name)) => return Ok(Node::Const(Value::Type(type_value(name).into()))),
            _ => {}
        }
        match &e.kind {
            Kind::Literal(literal) => Ok(Node::Const(constant(literal))),
            Kind::Select { operand, field, test_only } => {
                let mut attribute = self.attribute(operand)?;
                let key = Node::Const(Value::string(field.as_str()));
                attribute.qualifiers.push(Qualifier { key, optional: false });
                attribute.test_only = *test_only;
                Ok(Node::Attribute(attribute))
            }
            Kind::Call { target, args, .. } => self.call(e, target.as_deref(), args),
            Kind::List { elements, optional } => self.list(elements, optional),
            Kind::Map(entries) => self.map(entries),
            Kind::Comprehension(fold) => self.fold(fold),
            Kind::Ident(name) => Err(format!("no such attribute(s): {name}").into()),
            Kind::Struct { name, .. } => Err(format!("unknown type: {name}").into()),
        }
    }

    fn variable(&self, name: &str) -> Node {
        let slot =
            self.scopes.iter().rev().find(|(variable, _)| variable == name).map_or(0, |(_, slot)| *slot);
        let attribute = Attribute { base: Base::Variable(slot), qualifiers: Vec::new(), test_only: false };
        Node::Attribute(Box::new(attribute))
    }

    /// Returns the attribute of an operand, to which qualifiers can be added.
    fn attribute(&mut self, operand: &Expr) -> Result<Box<Attribute>, Arc<str>> {
        Ok(match self.node(operand)? {
            Node::Attribute(attribute) if !attribute.test_only => attribute,
            node => Box::new(Attribute { base: Base::Node(node), qualifiers: Vec::new(), test_only: false }),
        })
    }

    fn call(&mut self, e: &Expr, target: Option<&Expr>, args: &[Expr]) -> Planned {
        let Some(Reference::Function { name, overloads, drops_target }) = self.checked.references.get(&e.id)
        else {
            return Err("no such overload".into());
        };
        let target = target.filter(|_| !drops_target);
        if let ("_[_]" | "_[?_]" | "_?._", [operand, key]) = (name.as_str(), args) {
            let mut attribute = self.attribute(operand)?;
            let key = self.node(key)?;
            attribute.qualifiers.push(Qualifier { key, optional: name != "_[_]" });
            return Ok(Node::Attribute(attribute));
        }
        let mut planned = Vec::with_capacity(args.len() + 1);
        for arg in target.into_iter().chain(args) {
            planned.push(self.node(arg)?);
        }
        let overload = match overloads.as_slice() {
            [only] => only.id,
            _ => "",
        };
        match name.as_str() {
            "_?_:_" => {
                let [condition, yes, no] = exactly(planned)?;
                let base = Base::Conditional { condition, yes, no };
                Ok(Node::Attribute(Box::new(Attribute { base, qualifiers: Vec::new(), test_only: false })))
            }
            "_&&_" => exactly(planned).map(|args| Node::And(Box::new(args))),
            "_||_" => exactly(planned).map(|args| Node::Or(Box::new(args))),
            "_==_" => exactly(planned).map(|args| Node::Equal { args: Box::new(args), negated: false }),
            "_!=_" => exactly(planned).map(|args| Node::Equal { args: Box::new(args), negated: true }),
            "or" => exactly(planned).map(|args| Node::OptionalOr { args: Box::new(args), unwrap: false }),
            "orValue" => exactly(planned).map(|args| Node::OptionalOr { args: Box::new(args), unwrap: true }),
            "@not_strictly_false" => {
                let [arg] = exactly(planned)?;
                Ok(Node::NotStrictlyFalse(Box::new(arg)))
            }
            "@in" if overload == "in_list" => Ok(self.membership(planned)),
            name => self.function(name, overload, planned),
        }
    }

    fn function(&mut self, name: &str, overload: &'static str, args: Vec<Node>) -> Planned {
        let Some(native) = native(name) else { return Err(format!("no such overload: {name}()").into()) };
        if let [Node::Const(value)] = args.as_slice()
            && is_conversion(name)
        {
            return match native(&mut Meter::new(PER_CALL_LIMIT), overload, std::slice::from_ref(value)) {
                Ok(value) => Ok(Node::Const(value)),
                Err(Failure::Error(why)) => Err(why),
                Err(Failure::Exceeded) => Err("operation cancelled: actual cost limit exceeded".into()),
            };
        }
        let pattern = pattern_argument(name).and_then(|at| args.get(at));
        let constant_pattern = match pattern {
            Some(Node::Const(Value::String(pattern))) => Some(pattern.to_string()),
            _ => None,
        };
        let optimized = constant_pattern.is_some();
        if let Some(pattern) = constant_pattern {
            let regex = compile_pattern(&pattern)
                .map_err(|why| format!("error parsing regexp: {why}: `{pattern}`"))?;
            self.patterns.insert(pattern, regex);
        }
        let eager = !overload.is_empty() && args.len() <= 2 && overload != "string_format" && !optimized;
        let cost = CallCost::of(name, overload);
        Ok(Node::Call(Box::new(Call {
            function: name.to_owned(),
            overload,
            native,
            args,
            cost,
            eager,
            accumulates: false,
        })))
    }

    /// `in` a list of constants is a lookup, without a cost of its own.
    fn membership(&mut self, mut args: Vec<Node>) -> Node {
        if let Some(Node::Const(Value::List(list))) = args.get(1) {
            if list.len() == 0 {
                return Node::Const(Value::Bool(false));
            }
            if let Some(set) = Set::of(list) {
                return Node::InSet(Box::new((args.swap_remove(0), set)));
            }
        }
        self.function("@in", "in_list", args).unwrap_or(Node::Const(Value::Bool(false)))
    }

    fn list(&mut self, elements: &[Expr], optional: &[bool]) -> Planned {
        let mut planned = Vec::with_capacity(elements.len());
        for (element, optional) in elements.iter().zip(optional) {
            planned.push((self.node(element)?, *optional));
        }
        let constants = |(node, optional): &(Node, bool)| match node {
            Node::Const(value) if !optional => Some(value.clone()),
            _ => None,
        };
        let constants: Option<Vec<Value<'static>>> = planned.iter().map(constants).collect();
        Ok(constants.map_or(Node::List(planned), |values| Node::Const(Value::list(values))))
    }

    fn map(&mut self, entries: &[Entry]) -> Planned {
        let mut planned = Vec::with_capacity(entries.len());
        for entry in entries {
            planned.push((self.node(&entry.key)?, self.node(&entry.value)?, entry.optional));
        }
        let constants = |(key, value, optional): &(Node, Node, bool)| match (key, value) {
            (Node::Const(key), Node::Const(value)) if !optional => Some((key.clone(), value.clone())),
            _ => None,
        };
        let constants: Option<Vec<_>> = planned.iter().map(constants).collect();
        match constants.map(Map::of_entries) {
            Some(Ok(map)) => Ok(Node::Const(Value::Map(map))),
            Some(Err(Failure::Error(why))) => Err(why),
            _ => Ok(Node::Map(planned)),
        }
    }

    fn slot(&mut self, name: &str) -> usize {
        self.scopes.push((name.to_owned(), self.slots));
        self.slots += 1;
        self.slots - 1
    }

    fn fold(&mut self, fold: &Comprehension) -> Planned {
        let range = self.node(&fold.range)?;
        let init = self.node(&fold.init)?;
        let outer = self.scopes.len();
        let accumulator = self.slot(&fold.accumulator);
        let inner = self.scopes.len();
        let variable = self.slot(&fold.variable);
        let second_variable = fold.second_variable.as_ref().map(|name| self.slot(name));
        let condition = self.node(&fold.condition)?;
        let mut step = self.node(&fold.step)?;
        mark_accumulation(&mut step, accumulator);
        self.scopes.truncate(inner);
        let result = self.node(&fold.result)?;
        self.scopes.truncate(outer);
        let fold = Fold { range, variable, second_variable, accumulator, init, condition, step, result };
        Ok(Node::Fold(Box::new(fold)))
    }
}

/// Marks the call that adds to the accumulator, directly or where a filter holds.
fn mark_accumulation(step: &mut Node, accumulator: usize) {
    match step {
        Node::Call(call) if matches!(call.function.as_str(), "_+_" | "cel.@mapInsert") => {
            call.accumulates = matches!(call.args.first(), Some(Node::Attribute(attribute))
                if matches!(attribute.base, Base::Variable(slot) if slot == accumulator) && attribute.qualifiers.is_empty());
        }
        Node::Attribute(attribute) => {
            if let Base::Conditional { yes, .. } = &mut attribute.base {
                mark_accumulation(yes, accumulator);
            }
        }
        _ => {}
    }
}

fn exactly<const N: usize>(args: Vec<Node>) -> Result<[Node; N], Arc<str>> {
    args.try_into().map_err(|_| Arc::from("no such overload"))
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(b) => Value::Bool(*b),
        Literal::Int(n) => Value::Int(*n),
        Literal::Uint(n) => Value::Uint(*n),
        Literal::Double(d) => Value::Double(*d),
        Literal::String(text) => Value::string(Arc::clone(text)),
        Literal::Bytes(bytes) => Value::Bytes(Arc::clone(bytes)),
    }
}

/// The name of a type as `type()` returns it.
fn type_value(name: &str) -> &str {
    match name {
        "duration" => "google.protobuf.Duration",
        "timestamp" => "google.protobuf.Timestamp",
        other => other,
    }
}

impl Set {
    /// Returns the set of a list if all elements are simple.
    fn of(list: &List<'static>) -> Option<Self> {
        let mut set = Self::default();
        for item in list.iter() {
            match item.ok()? {
                Value::Double(d) if Key::of(&Value::Double(d)).is_none() => {
                    set.fractions.insert(d.to_bits());
                }
                value @ (Value::Bool(_)
                | Value::Int(_)
                | Value::Uint(_)
                | Value::Double(_)
                | Value::String(_)) => {
                    set.keys.insert(Key::of(&value)?);
                }
                _ => return None,
            }
        }
        Some(set)
    }

    pub(crate) fn contains(&self, value: &Value<'_>) -> bool {
        if let Value::Double(d) = value
            && self.fractions.contains(&d.to_bits())
        {
            return true;
        }
        Key::of(value).is_some_and(|key| {
            self.keys.contains(&key) || key.other().is_some_and(|key| self.keys.contains(&key))
        })
    }
}
