//! Finds the places of a file that can be mutated.

use crate::cfg::is_excluded;
use quote::ToTokens;
use std::ops::Range;
use syn::{
    BinOp, Block, Expr, ExprBinary, ExprMatch, ExprUnary, File, Pat, ReturnType, Signature, Stmt, Type, UnOp,
    spanned::Spanned,
    visit::{self, Visit},
};

/// A place in the code with its mutations.
#[derive(Debug)]
pub struct Site {
    pub shape: Shape,
    /// The code as it is: an expression, a pattern, or the signature of a function.
    pub code: Range<usize>,
    pub line: usize,
    pub function: String,
    pub mutations: Vec<Mutation>,
}

#[derive(Debug)]
pub enum Shape {
    /// The expression at this range is evaluated unless a mutant is switched on; then its replacement is.
    Expression(Range<usize>),
    /// An arm without a guard gets one at this position, which is false if the mutant is switched on.
    Arm(usize),
    /// A function returns the replacement at this position, the beginning of its body.
    Function(usize),
}

#[derive(Debug)]
pub struct Mutation {
    /// The change, such as `replace < with <=`.
    pub change: String,
    /// The code that is evaluated instead, in one line. Empty for match arms.
    pub replacement: String,
}

/// Result of [`find`].
#[derive(Debug, Default)]
pub struct Sites {
    /// A site that contains another one comes before it.
    pub sites: Vec<Site>,
    /// Modules in other files, as paths below the module of this file: `mod a { mod b; }` is `["a", "b"]`.
    pub modules: Vec<Vec<String>>,
}

/// Finds the places that can be mutated, and the modules that are in other files.
pub fn find(source: &str) -> syn::Result<Sites> {
    let file = syn::parse_file(source)?;
    let mut finder = Finder::default();
    finder.file(&file);
    Ok(finder.found)
}

#[derive(Default)]
struct Finder {
    found: Sites,
    modules: Vec<String>,
    /// `Type` or `<Type as Trait>` of the implementation around the current function.
    owner: Option<String>,
    function: String,
}

impl Finder {
    fn file(&mut self, file: &File) {
        if !is_excluded(&file.attrs) {
            self.visit_file(file);
        }
    }

    fn add(&mut self, shape: Shape, code: &impl Spanned, mutations: Vec<Mutation>) {
        let (code, line) = (code.span().byte_range(), code.span().start().line);
        self.found.sites.push(Site { shape, code, line, function: self.function.clone(), mutations });
    }

    /// Mutates a function that returns `bool`, and visits its body.
    fn function(&mut self, signature: &Signature, body: &Block) {
        // The switches of mutants are not const.
        if signature.constness.is_some() {
            return;
        }
        let name = signature.ident.to_string();
        let name = self.owner.as_ref().map_or(name.clone(), |owner| format!("{owner}::{name}"));
        let outer = std::mem::replace(&mut self.function, name);
        if returns_bool(signature) {
            let mutations = ["true", "false"]
                .into_iter()
                .filter(|value| !is_only(body, value))
                .map(|value| Mutation { change: format!("return {value}"), replacement: value.to_owned() })
                .collect();
            self.add(Shape::Function(body.brace_token.span.open().byte_range().end), signature, mutations);
        }
        self.visit_block(body);
        self.function = outer;
    }

    fn owned_by(&mut self, owner: String, visit: impl FnOnce(&mut Self)) {
        let outer = self.owner.replace(owner);
        visit(self);
        self.owner = outer;
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if is_excluded(&module.attrs) {
            return;
        }
        self.modules.push(module.ident.to_string());
        match &module.content {
            Some(_) => visit::visit_item_mod(self, module),
            None => self.found.modules.push(self.modules.clone()),
        }
        self.modules.pop();
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if !is_excluded(&function.attrs) {
            self.function(&function.sig, &function.block);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_excluded(&function.attrs) {
            self.function(&function.sig, &function.block);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = function.default.as_ref().filter(|_| !is_excluded(&function.attrs)) {
            self.function(&function.sig, body);
        }
    }

    fn visit_item_impl(&mut self, implementation: &'ast syn::ItemImpl) {
        let name = type_name(&implementation.self_ty);
        let of_trait = implementation.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        let of_trait = of_trait.map(|segment| segment.ident.to_string());
        if is_excluded(&implementation.attrs) || matches!(of_trait.as_deref(), Some("Debug" | "Display")) {
            return;
        }
        let owner = of_trait.map_or(name.clone(), |of_trait| format!("<{name} as {of_trait}>"));
        self.owned_by(owner, |finder| visit::visit_item_impl(finder, implementation));
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        if !is_excluded(&item.attrs) {
            self.owned_by(item.ident.to_string(), |finder| visit::visit_item_trait(finder, item));
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        let excluded = match statement {
            Stmt::Local(local) => is_excluded(&local.attrs),
            Stmt::Expr(Expr::Block(block), _) => is_excluded(&block.attrs),
            Stmt::Expr(Expr::If(condition), _) => is_excluded(&condition.attrs),
            _ => false,
        };
        if !excluded {
            visit::visit_stmt(self, statement);
        }
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        let with_let = contains_let(&binary.left) || contains_let(&binary.right);
        let replacements = replacements(&binary.op);
        if !with_let && !replacements.is_empty() {
            let (left, operator, right) = (text(&binary.left), text(&binary.op), text(&binary.right));
            let mutations = replacements.iter().map(|other| Mutation {
                change: format!("replace {operator} with {other}"),
                replacement: format!("({left}) {other} ({right})"),
            });
            self.add(Shape::Expression(binary.span().byte_range()), binary, mutations.collect());
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast ExprUnary) {
        if let UnOp::Not(_) = unary.op {
            let mutation =
                Mutation { change: "delete !".to_owned(), replacement: format!("({})", text(&unary.expr)) };
            self.add(Shape::Expression(unary.span().byte_range()), unary, vec![mutation]);
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_match(&mut self, expression: &'ast ExprMatch) {
        let is_catch_all = |arm: &syn::Arm| matches!(arm.pat, Pat::Wild(_)) && arm.guard.is_none();
        let catch_all = expression.arms.iter().position(is_catch_all).unwrap_or(0);
        for (index, arm) in expression.arms.iter().enumerate().filter(|(_, arm)| !is_excluded(&arm.attrs)) {
            match &arm.guard {
                None if index < catch_all => {
                    let shape = Shape::Arm(arm.pat.span().byte_range().end);
                    let mutation =
                        Mutation { change: "delete match arm".to_owned(), replacement: String::new() };
                    self.add(shape, &arm.pat, vec![mutation]);
                }
                // A guard that is false deletes the arm.
                Some((_, guard)) if !contains_let(guard) => {
                    let mutations = ["true", "false"].map(|value| Mutation {
                        change: format!("replace match guard with {value}"),
                        replacement: value.to_owned(),
                    });
                    self.add(Shape::Expression(guard.span().byte_range()), &**guard, mutations.into());
                }
                _ => {}
            }
        }
        visit::visit_expr_match(self, expression);
    }

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    // Evaluated at compile time, or no expressions.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_generics(&mut self, _: &'ast syn::Generics) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
}

/// Operators that replace an operator.
fn replacements(operator: &BinOp) -> &'static [&'static str] {
    match operator {
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["==", ">", "<="],
        BinOp::Gt(_) => &["==", "<", ">="],
        BinOp::Le(_) => &[">"],
        BinOp::Ge(_) => &["<"],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        _ => &[],
    }
}

/// Returns whether an operand of a condition is a `let`, which can be neither repeated nor put into parentheses.
fn contains_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) => contains_let(&binary.left) || contains_let(&binary.right),
        _ => false,
    }
}

fn returns_bool(signature: &Signature) -> bool {
    match &signature.output {
        ReturnType::Type(_, output) => matches!(&**output, Type::Path(path) if path.path.is_ident("bool")),
        ReturnType::Default => false,
    }
}

/// Returns whether a function returns this literal and does nothing else.
fn is_only(body: &Block, literal: &str) -> bool {
    matches!(&body.stmts[..], [Stmt::Expr(expression, None)] if text(expression) == literal)
}

fn type_name(of: &Type) -> String {
    match of {
        Type::Path(path) => {
            path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
        }
        Type::Reference(reference) => format!("&{}", type_name(&reference.elem)),
        other => text(other),
    }
}

/// The code in one line, without comments.
fn text(code: &impl ToTokens) -> String {
    code.to_token_stream().to_string()
}
