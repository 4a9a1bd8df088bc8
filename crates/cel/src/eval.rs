//! Evaluation of programs.

use crate::call_cost::{CallCost, LIST, MAP};
use crate::meter::Meter;
use crate::plan::{Attribute, Base, Call, Fold, Node, Plan, Qualifier};
use crate::value::{Eval, Failure, Items, Map, Value, error};

/// The value of a variable.
#[derive(Debug, Clone)]
enum Slot<'a> {
    Unset,
    /// An accumulator whose initial value was not needed yet.
    Lazy,
    Set(Eval<'a>),
}

/// Evaluates a program; returns the result and its cost.
pub(crate) fn evaluate<'a>(plan: &Plan, variables: Vec<Option<Eval<'a>>>, limit: u64) -> (Eval<'a>, u64) {
    let mut slots = vec![Slot::Unset; plan.slots];
    for (slot, value) in slots.iter_mut().zip(variables) {
        if let Some(value) = value {
            *slot = Slot::Set(value);
        }
    }
    let mut meter = Meter::new(limit);
    plan.patterns.iter().for_each(|(pattern, regex)| meter.add_pattern(pattern, regex));
    let mut evaluator = Evaluator { slots, folds: Vec::new(), meter };
    let result = evaluator.node(&plan.root);
    let cost = evaluator.meter.cost();
    let exceeded = matches!(result, Err(Failure::Exceeded));
    (result, if exceeded { cost.max(limit.saturating_add(1)) } else { cost })
}

struct Evaluator<'p, 'a> {
    slots: Vec<Slot<'a>>,
    /// The folds around the current step, innermost last.
    folds: Vec<&'p Fold>,
    meter: Meter,
}

impl<'p, 'a> Evaluator<'p, 'a> {
    fn node(&mut self, node: &'p Node) -> Eval<'a> {
        match node {
            Node::Const(value) => Ok(value.clone()),
            Node::Attribute(attribute) => self.attribute(attribute),
            Node::And(args) => self.logical(args, false),
            Node::Or(args) => self.logical(args, true),
            Node::Equal { args, negated } => self.equal(args, *negated),
            Node::NotStrictlyFalse(arg) => self.not_strictly_false(arg),
            Node::Call(call) => self.call(call),
            Node::InSet(inner) => {
                let value = self.node(&inner.0)?;
                Ok(Value::Bool(inner.1.contains(&value)))
            }
            Node::List(elements) => {
                let list = self.list(elements);
                self.charged(list, LIST)
            }
            Node::Map(entries) => {
                let map = self.map(entries);
                self.charged(map, MAP)
            }
            Node::Fold(fold) => self.fold(fold),
            Node::OptionalOr { args, unwrap } => self.optional_or(args, *unwrap),
        }
    }

    /// Charges a step that has ended, with a value or with an error.
    fn charged(&mut self, result: Eval<'a>, cost: u64) -> Eval<'a> {
        if matches!(result, Err(Failure::Exceeded)) {
            return result;
        }
        self.meter.charge(cost)?;
        result
    }

    /// `&&` and `||`: the value that decides wins over an error.
    fn logical(&mut self, args: &'p [Node; 2], decisive: bool) -> Eval<'a> {
        let mut failure = None;
        for arg in args {
            match self.node(arg) {
                Ok(Value::Bool(b)) if b == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failure = failure.or_else(|| Some(Failure::Error("no such overload".into()))),
                Err(Failure::Exceeded) => return Err(Failure::Exceeded),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn equal(&mut self, args: &'p [Node; 2], negated: bool) -> Eval<'a> {
        let left = self.settled(&args[0])?;
        let right = self.settled(&args[1])?;
        let cost = CallCost::Equality.cost(&[left.as_ref().ok(), right.as_ref().ok()], None);
        let result = match (left, right) {
            (Ok(left), Ok(right)) => match left.equals(&right, &mut self.meter) {
                Ok(equal) => Ok(Value::Bool(equal != negated)),
                // Values that cannot be compared are not equal.
                Err(Failure::Error(_)) if negated => Ok(Value::Bool(true)),
                Err(failure) => Err(failure),
            },
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
        };
        self.charged(result, cost)
    }

    /// Returns the value or the error of a node, and fails only if the evaluation ends.
    fn settled(&mut self, node: &'p Node) -> Result<Eval<'a>, Failure> {
        match self.node(node) {
            Err(Failure::Exceeded) => Err(Failure::Exceeded),
            result => Ok(result),
        }
    }

    fn not_strictly_false(&mut self, arg: &'p Node) -> Eval<'a> {
        let value = self.settled(arg)?;
        self.charged(Ok(Value::Bool(!matches!(value, Ok(Value::Bool(false))))), 1)
    }

    fn call(&mut self, call: &'p Call) -> Eval<'a> {
        let mut args = Vec::with_capacity(call.args.len());
        // One bit for each argument that failed; the calls of this environment have at most four.
        let mut failed = 0u32;
        let mut failure = None;
        for (i, arg) in call.args.iter().enumerate() {
            let result = if i == 0 && call.accumulates { self.take_accumulator() } else { self.node(arg) };
            match result {
                Ok(value) => args.push(value),
                Err(Failure::Exceeded) => return Err(Failure::Exceeded),
                Err(error) => {
                    // The call itself is charged only if all its arguments were evaluated.
                    if !call.eager && i + 1 < call.args.len() {
                        return Err(error);
                    }
                    failure = failure.or(Some(error));
                    args.push(Value::Null);
                    failed |= 1 << i;
                }
            }
        }
        let result = match failure {
            Some(failure) => Err(failure),
            None if call.accumulates => return self.accumulate(call, args),
            None => (call.native)(&mut self.meter, call.overload, &args),
        };
        if matches!(result, Err(Failure::Exceeded)) {
            return result;
        }
        let cost = match call.cost {
            CallCost::Fixed(cost) => cost,
            rule => {
                let sized = args.iter().enumerate().map(|(i, arg)| (failed & (1 << i) == 0).then_some(arg));
                rule.cost(&sized.collect::<Vec<_>>(), result.as_ref().ok())
            }
        };
        self.charged(result, cost)
    }

    /// Takes the accumulator of the innermost fold, so that adding to it does not copy it.
    fn take_accumulator(&mut self) -> Eval<'a> {
        let Some(slot) = self.folds.last().map(|fold| fold.accumulator) else {
            return error("no accumulator");
        };
        let value = self.variable(slot);
        self.slots[slot] = Slot::Unset;
        self.charged(value, 1)
    }

    /// Adds to the accumulator. The cost is that of a call whose cost does not depend on sizes.
    fn accumulate(&mut self, call: &'p Call, mut args: Vec<Value<'a>>) -> Eval<'a> {
        let rest = args.split_off(1);
        let result = match (args.pop(), rest.as_slice()) {
            (Some(Value::List(list)), [Value::List(more)]) => {
                list.extend(more, &mut self.meter).map(Value::List)
            }
            (Some(Value::Map(map)), [key, value]) => {
                map.insert(key, value.clone(), &mut self.meter).map(Value::Map)
            }
            (Some(Value::Map(map)), [Value::Map(more)]) => {
                map.insert_all(more, &mut self.meter).map(Value::Map)
            }
            (first, _) => {
                let args: Vec<Value<'a>> = first.into_iter().chain(rest).collect();
                (call.native)(&mut self.meter, call.overload, &args)
            }
        };
        self.charged(result, 1)
    }

    fn list(&mut self, elements: &'p [(Node, bool)]) -> Eval<'a> {
        let mut items = Vec::with_capacity(elements.len());
        for (element, optional) in elements {
            match (self.node(element)?, optional) {
                (value, false) => items.push(value),
                (Value::Optional(Some(value)), true) => items.push(value.as_ref().clone()),
                (Value::Optional(None), true) => {}
                (value, true) => {
                    return error(format!(
                        "cannot initialize optional list element from non-optional value {value}"
                    ));
                }
            }
        }
        Ok(Value::list(items))
    }

    fn map(&mut self, entries: &'p [(Node, Node, bool)]) -> Eval<'a> {
        let mut map = Vec::with_capacity(entries.len());
        for (key, value, optional) in entries {
            let key = self.node(key)?;
            match (self.node(value)?, optional) {
                (value, false) => map.push((key, value)),
                (Value::Optional(Some(value)), true) => map.push((key, value.as_ref().clone())),
                (Value::Optional(None), true) => {}
                (value, true) => {
                    return error(format!(
                        "cannot initialize optional entry '{key}' from non-optional value {value}"
                    ));
                }
            }
        }
        Map::of_entries(map).map(Value::Map)
    }

    fn optional_or(&mut self, args: &'p [Node; 2], unwrap: bool) -> Eval<'a> {
        match self.node(&args[0])? {
            Value::Optional(Some(value)) if unwrap => Ok(value.as_ref().clone()),
            Value::Optional(None) => self.node(&args[1]),
            other => Ok(other),
        }
    }

    fn attribute(&mut self, attribute: &'p Attribute) -> Eval<'a> {
        let result = self.resolve(attribute);
        let free = attribute.test_only || matches!(attribute.base, Base::Conditional { .. });
        self.charged(result, u64::from(!free))
    }

    /// Returns the value of an attribute without the cost of the attribute itself, which a branch and a key do not have.
    fn unobserved(&mut self, node: &'p Node) -> Eval<'a> {
        match node {
            Node::Attribute(attribute) => self.resolve(attribute),
            node => self.node(node),
        }
    }

    fn resolve(&mut self, attribute: &'p Attribute) -> Eval<'a> {
        let base = match &attribute.base {
            Base::Variable(slot) => self.variable(*slot)?,
            Base::Node(node) => self.node(node)?,
            Base::Conditional { condition, yes, no } => match self.node(condition)? {
                Value::Bool(true) => self.unobserved(yes)?,
                Value::Bool(false) => self.unobserved(no)?,
                _ => return error("no such overload"),
            },
        };
        if attribute.qualifiers.is_empty() {
            return Ok(base);
        }
        self.qualify(base, attribute)
    }

    fn qualify(&mut self, base: Value<'a>, attribute: &'p Attribute) -> Eval<'a> {
        let (mut value, mut optional) = match base {
            Value::Optional(None) if attribute.test_only => return Ok(Value::Bool(false)),
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(value)) => (value.as_ref().clone(), true),
            value => (value, false),
        };
        let last = attribute.qualifiers.len() - 1;
        for (i, qualifier) in attribute.qualifiers.iter().enumerate() {
            optional |= qualifier.optional;
            let tests = attribute.test_only && i == last;
            let found = self.select(&value, qualifier, optional, tests)?;
            match found {
                _ if tests => return Ok(Value::Bool(found.is_some())),
                Some(found) => value = found,
                None => return Ok(Value::Optional(None)),
            }
        }
        Ok(if optional { Value::some(value) } else { value })
    }

    /// Selects by one qualifier. `None` is possible only if the selection is optional or a test.
    fn select(
        &mut self,
        value: &Value<'a>,
        qualifier: &'p Qualifier,
        optional: bool,
        tests: bool,
    ) -> Result<Option<Value<'a>>, Failure> {
        let key = self.unobserved(&qualifier.key);
        let found = key.and_then(|key| select(value, &key, optional || tests));
        match found {
            Err(Failure::Exceeded) => Err(Failure::Exceeded),
            Ok(None) if optional => Ok(None),
            Err(failure) if optional => Err(failure),
            found => {
                self.meter.charge(1)?;
                found
            }
        }
    }

    fn variable(&mut self, slot: usize) -> Eval<'a> {
        match &self.slots[slot] {
            Slot::Set(value) => value.clone(),
            Slot::Unset => error("no such attribute(s)"),
            Slot::Lazy => {
                let fold = self.folds.iter().rev().find(|fold| fold.accumulator == slot).copied();
                let Some(fold) = fold else { return error("no such attribute(s)") };
                let value = self.node(&fold.init);
                self.slots[slot] = Slot::Set(value.clone());
                value
            }
        }
    }

    fn fold(&mut self, fold: &'p Fold) -> Eval<'a> {
        let range = self.node(&fold.range)?;
        self.slots[fold.accumulator] = Slot::Lazy;
        self.folds.push(fold);
        let ended = self.iterate(fold, range);
        let result = match ended {
            Ok(()) => self.node(&fold.result),
            Err(failure) => Err(failure),
        };
        self.folds.pop();
        self.slots[fold.accumulator] = Slot::Unset;
        result
    }

    fn iterate(&mut self, fold: &'p Fold, range: Value<'a>) -> Result<(), Failure> {
        match range {
            Value::List(list) => {
                for index in 0..list.len() {
                    let Some(item) = list.get(index) else { break };
                    let (first, second) = match fold.second_variable {
                        Some(_) => (Ok(Value::Int(i64::try_from(index).unwrap_or(i64::MAX))), Some(item)),
                        None => (item, None),
                    };
                    if !self.iteration(fold, first, second)? {
                        break;
                    }
                }
                Ok(())
            }
            Value::Map(map) => {
                for key in map.keys() {
                    let value =
                        |key| map.find(key).and_then(|value| value.map_or_else(|| error("no such key"), Ok));
                    let second = fold.second_variable.map(|_| value(&key));
                    if !self.iteration(fold, Ok(key), second)? {
                        break;
                    }
                }
                Ok(())
            }
            other => error(format!("got '{}', expected iterable type", other.go_type_name())),
        }
    }

    /// Runs one iteration; returns whether there may be another.
    fn iteration(
        &mut self,
        fold: &'p Fold,
        first: Eval<'a>,
        second: Option<Eval<'a>>,
    ) -> Result<bool, Failure> {
        self.meter.work(1)?;
        self.slots[fold.variable] = Slot::Set(first);
        if let (Some(slot), Some(value)) = (fold.second_variable, second) {
            self.slots[slot] = Slot::Set(value);
        }
        if let Ok(Value::Bool(false)) = self.settled(&fold.condition)? {
            return Ok(false);
        }
        let next = self.settled(&fold.step)?;
        self.slots[fold.accumulator] = Slot::Set(next);
        Ok(true)
    }
}

/// Returns the element of a value. Without one, returns an error unless the selection is a test.
fn select<'a>(value: &Value<'a>, key: &Value<'a>, tests: bool) -> Result<Option<Value<'a>>, Failure> {
    match value {
        Value::Map(map) => match map.find(key)? {
            None if !tests => error(format!("no such key: {}", key.plain())),
            found => Ok(found),
        },
        Value::List(list) => {
            let index = match key {
                Value::Int(index) => *index,
                Value::Uint(index) => i64::try_from(*index).unwrap_or(i64::MAX),
                Value::Double(index) if index.fract() == 0.0 => *index as i64,
                Value::Double(index) => return error(format!("unsupported index value {index} in list")),
                other => return error(format!("unsupported index type '{}' in list", other.type_name())),
            };
            let found = usize::try_from(index).ok().and_then(|index| list.get(index)).transpose()?;
            // A list of the object accepts no other type of index.
            if found.is_some() && !matches!(key, Value::Int(_)) && matches!(list.items, Items::Json(..)) {
                return error(format!("unsupported index: {}", key.plain()));
            }
            match found {
                None if !tests => error(format!("index out of bounds: {}", key.plain())),
                found => Ok(found),
            }
        }
        _ if tests => Ok(None),
        _ => error(format!("no such key: {}", key.plain())),
    }
}
