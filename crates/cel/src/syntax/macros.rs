//! Macros: calls that are replaced by other expressions while the source is parsed.

use super::ast::{ACCUMULATOR, Comprehension, Expr, Kind, Literal, OLD_ACCUMULATOR};
use super::parser::{Abort, Parser};
use super::source::Offset;

type Parse<T> = Result<T, Abort>;

/// Returns the expansion of a call if there is a macro of that name, style and number of arguments; otherwise the call.
pub(super) fn expand(
    parser: &mut Parser<'_>,
    at: Offset,
    function: &str,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Parse<Expr> {
    let count = args.len();
    let mut b = Builder { parser, at };
    match (function, target, count) {
        ("has", None, 1) => b.has(args),
        ("all" | "exists" | "exists_one", Some(target), 2) => b.quantifier(function, target, args, 1),
        ("all" | "exists" | "exists_one" | "existsOne", Some(target), 3) => {
            b.quantifier(function, target, args, 2)
        }
        ("map", Some(target), 2 | 3) => b.map(target, args),
        ("filter", Some(target), 2) => b.filter(target, args),
        ("transformList", Some(target), 3 | 4) => b.transform(Transform::List, target, args),
        ("transformMap", Some(target), 3 | 4) => b.transform(Transform::Map, target, args),
        ("transformMapEntry", Some(target), 3 | 4) => b.transform(Transform::Entry, target, args),
        ("optMap", Some(target), 2) => b.opt_map(target, args, false),
        ("optFlatMap", Some(target), 2) => b.opt_map(target, args, true),
        ("sortBy", Some(target), 2) => b.sort_by(target, args),
        (_, target, _) => {
            b.node(Kind::Call { target: target.map(Box::new), function: function.to_owned(), args })
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Transform {
    List,
    Map,
    Entry,
}

/// Makes expressions at the place of the macro call.
struct Builder<'p, 'i> {
    parser: &'p mut Parser<'i>,
    at: Offset,
}

impl Builder<'_, '_> {
    fn node(&mut self, kind: Kind) -> Parse<Expr> {
        self.parser.node(self.at, kind)
    }

    fn literal(&mut self, literal: Literal) -> Parse<Expr> {
        self.node(Kind::Literal(literal))
    }

    fn accumulator(&mut self) -> Parse<Expr> {
        self.node(Kind::Ident(ACCUMULATOR.to_owned()))
    }

    fn list(&mut self, elements: Vec<Expr>) -> Parse<Expr> {
        let optional = vec![false; elements.len()];
        self.node(Kind::List { elements, optional })
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Parse<Expr> {
        self.node(Kind::Call { target: None, function: function.to_owned(), args })
    }

    fn member_call(&mut self, target: Expr, function: &str, args: Vec<Expr>) -> Parse<Expr> {
        self.node(Kind::Call { target: Some(Box::new(target)), function: function.to_owned(), args })
    }

    fn error(&mut self, at: Offset, why: impl Into<String>) -> Parse<Expr> {
        self.parser.issues.report(at, why.into());
        self.literal(Literal::Null)
    }

    fn has(&mut self, mut args: Vec<Expr>) -> Parse<Expr> {
        let arg = args.remove(0);
        let at = self.parser.position(&arg);
        match arg.kind {
            Kind::Select { operand, field, test_only: false } => {
                self.node(Kind::Select { operand, field, test_only: true })
            }
            _ => self.error(at, "invalid argument to has() macro"),
        }
    }

    /// Takes `n` iteration variables from the start of the arguments.
    fn variables(&mut self, args: &mut Vec<Expr>, n: usize, why: &str) -> Parse<Result<Vec<String>, Expr>> {
        let mut names: Vec<String> = Vec::new();
        for arg in args.drain(..n).collect::<Vec<_>>() {
            let at = self.parser.position(&arg);
            let Kind::Ident(name) = arg.kind else { return self.error(at, why).map(Err) };
            if names.contains(&name) {
                return self.error(at, format!("duplicate variable name: {name}")).map(Err);
            }
            if name == ACCUMULATOR || name == OLD_ACCUMULATOR {
                return self.error(at, "iteration variable overwrites accumulator variable").map(Err);
            }
            names.push(name);
        }
        Ok(Ok(names))
    }

    fn quantifier(
        &mut self,
        function: &str,
        target: Expr,
        mut args: Vec<Expr>,
        variables: usize,
    ) -> Parse<Expr> {
        let names = match self.variables(&mut args, variables, "argument must be a simple name")? {
            Ok(names) => names,
            Err(error) => return Ok(error),
        };
        let predicate = args.remove(0);
        let accumulator = self.accumulator()?;
        let (init, condition, step, result) = match function {
            "all" => {
                let init = self.literal(Literal::Bool(true))?;
                let condition = self.call("@not_strictly_false", vec![accumulator])?;
                let accumulator = self.accumulator()?;
                (init, condition, self.call("_&&_", vec![accumulator, predicate])?, self.accumulator()?)
            }
            "exists" => {
                let init = self.literal(Literal::Bool(false))?;
                let not = self.call("!_", vec![accumulator])?;
                let condition = self.call("@not_strictly_false", vec![not])?;
                let accumulator = self.accumulator()?;
                (init, condition, self.call("_||_", vec![accumulator, predicate])?, self.accumulator()?)
            }
            _ => {
                let one = self.literal(Literal::Int(1))?;
                let more = self.call("_+_", vec![accumulator, one])?;
                let same = self.accumulator()?;
                let step = self.call("_?_:_", vec![predicate, more, same])?;
                let (count, one) = (self.accumulator()?, self.literal(Literal::Int(1))?);
                let result = self.call("_==_", vec![count, one])?;
                (self.literal(Literal::Int(0))?, self.literal(Literal::Bool(true))?, step, result)
            }
        };
        self.fold(target, names, ACCUMULATOR, [init, condition, step, result])
    }

    fn fold(
        &mut self,
        range: Expr,
        variables: Vec<String>,
        accumulator: &str,
        [init, condition, step, result]: [Expr; 4],
    ) -> Parse<Expr> {
        let mut variables = variables.into_iter();
        let fold = Comprehension {
            range,
            variable: variables.next().unwrap_or_default(),
            second_variable: variables.next(),
            accumulator: accumulator.to_owned(),
            init,
            condition,
            step,
            result,
        };
        self.node(Kind::Comprehension(Box::new(fold)))
    }

    /// A fold that appends to a list, or inserts into a map, what satisfies the filter.
    fn collect(
        &mut self,
        target: Expr,
        names: Vec<String>,
        filter: Option<Expr>,
        step: Expr,
        map: bool,
    ) -> Parse<Expr> {
        let step = match filter {
            Some(filter) => {
                let same = self.accumulator()?;
                self.call("_?_:_", vec![filter, step, same])?
            }
            None => step,
        };
        let init = if map { self.node(Kind::Map(Vec::new()))? } else { self.list(Vec::new())? };
        let parts = [init, self.literal(Literal::Bool(true))?, step, self.accumulator()?];
        self.fold(target, names, ACCUMULATOR, parts)
    }

    fn map(&mut self, target: Expr, mut args: Vec<Expr>) -> Parse<Expr> {
        let names = match self.variables(&mut args, 1, "argument is not an identifier")? {
            Ok(names) => names,
            Err(error) => return Ok(error),
        };
        let function = args.pop();
        let element = self.list(function.into_iter().collect())?;
        let accumulator = self.accumulator()?;
        let step = self.call("_+_", vec![accumulator, element])?;
        self.collect(target, names, args.pop(), step, false)
    }

    fn filter(&mut self, target: Expr, mut args: Vec<Expr>) -> Parse<Expr> {
        let element = args[0].clone();
        let names = match self.variables(&mut args, 1, "argument is not an identifier")? {
            Ok(names) => names,
            Err(error) => return Ok(error),
        };
        let element = self.list(vec![element])?;
        let accumulator = self.accumulator()?;
        let step = self.call("_+_", vec![accumulator, element])?;
        self.collect(target, names, args.pop(), step, false)
    }

    fn transform(&mut self, kind: Transform, target: Expr, mut args: Vec<Expr>) -> Parse<Expr> {
        let names = match self.variables(&mut args, 2, "argument must be a simple name")? {
            Ok(names) => names,
            Err(error) => return Ok(error),
        };
        let Some(transform) = args.pop() else { return self.error(self.at, "missing argument") };
        let accumulator = self.accumulator()?;
        let step = match kind {
            Transform::List => {
                let element = self.list(vec![transform])?;
                self.call("_+_", vec![accumulator, element])?
            }
            Transform::Map => {
                let key = self.node(Kind::Ident(names[0].clone()))?;
                self.call("cel.@mapInsert", vec![accumulator, key, transform])?
            }
            Transform::Entry => self.call("cel.@mapInsert", vec![accumulator, transform])?,
        };
        self.collect(target, names, args.pop(), step, kind != Transform::List)
    }

    /// Binds a variable to the value of an expression: a fold over nothing.
    fn bind(&mut self, variable: &str, value: Expr, result: Expr) -> Parse<Expr> {
        let range = self.list(Vec::new())?;
        let condition = self.literal(Literal::Bool(false))?;
        let step = self.node(Kind::Ident(variable.to_owned()))?;
        self.fold(range, vec!["#unused".to_owned()], variable, [value, condition, step, result])
    }

    fn opt_map(&mut self, target: Expr, mut args: Vec<Expr>, flat: bool) -> Parse<Expr> {
        let name = args.remove(0);
        let at = self.parser.position(&name);
        let Kind::Ident(name) = name.kind else {
            let function = if flat { "optFlatMap" } else { "optMap" };
            return self.error(at, format!("{function}() variable name must be a simple identifier"));
        };
        let copy = self.parser.copy(&target)?;
        let has_value = self.member_call(target, "hasValue", Vec::new())?;
        let value = self.member_call(copy, "value", Vec::new())?;
        let mut bound = self.bind(&name, value, args.remove(0))?;
        if !flat {
            bound = self.call("optional.of", vec![bound])?;
        }
        let none = self.call("optional.none", Vec::new())?;
        self.call("_?_:_", vec![has_value, bound, none])
    }

    fn sort_by(&mut self, target: Expr, args: Vec<Expr>) -> Parse<Expr> {
        const INPUT: &str = "@__sortBy_input__";
        let at = self.parser.position(&target);
        if !matches!(
            target.kind,
            Kind::List { .. }
                | Kind::Select { .. }
                | Kind::Ident(_)
                | Kind::Comprehension(_)
                | Kind::Call { .. }
        ) {
            let why =
                "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return self.error(at, why);
        }
        let input = self.node(Kind::Ident(INPUT.to_owned()))?;
        let keys = self.map(input, args)?;
        let input = self.node(Kind::Ident(INPUT.to_owned()))?;
        let sorted = self.member_call(input, "@sortByAssociatedKeys", vec![keys])?;
        self.bind(INPUT, target, sorted)
    }
}
