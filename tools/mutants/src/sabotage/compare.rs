//! Compares a file with its patched text: which functions differ, and whether anything else does.

use super::marker;
use quote::ToTokens;
use std::ops::Range;
use syn::{Attribute, Block, ImplItem, Item, TraitItem, UseTree, Visibility, spanned::Spanned};

/// The changes that a patch makes to a file, all of them within functions.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub bodies: Vec<Body>,
    pub added: Vec<Added>,
}

/// A function body that a patch changes.
#[derive(Debug, PartialEq, Eq)]
pub struct Body {
    /// Where the original body is in the file, with its braces.
    pub original: Range<usize>,
    /// The patched body, with its braces and a call that records that the changed code is reached.
    pub patched: String,
}

/// A function that a patch adds.
#[derive(Debug, PartialEq, Eq)]
pub struct Added {
    /// Position in the original file.
    pub at: usize,
    pub function: String,
}

/// Finds the changes of a patch, or returns the reason why they cannot be switched on and off. `id` is the number of the switch.
pub fn compare(original: &str, patched: &str, id: u32) -> Result<Changes, String> {
    let parse = |source: &str| syn::parse_file(source).map_err(|error| format!("cannot be parsed: {error}"));
    let (before, after) = (parse(original)?, parse(patched)?);
    if text_of(&before.attrs) != text_of(&after.attrs) {
        return Err("changes the attributes of a file".to_owned());
    }
    let (before, after) = (nodes_of(before.items), nodes_of(after.items));
    let imports = new_imports(&before, &after);
    let mut comparison = Comparison { patched, id, changes: Changes::default() };
    comparison.nodes(before, after, Some(original.len()), &imports)?;
    Ok(comparison.changes)
}

/// An item of a file, of a module, of an implementation or of a trait.
enum Node {
    Function {
        /// Everything but the body.
        head: String,
        range: Range<usize>,
        body: Block,
    },
    /// A module, an implementation or a trait.
    Group {
        /// Everything but the items in it.
        head: String,
        nodes: Vec<Node>,
        /// Where a function can be added without an effect on other code; `None` in traits and their implementations.
        end: Option<usize>,
        is_module: bool,
    },
    /// The paths that a `use` imports.
    Imports(Vec<String>),
    Other(String),
}

impl Node {
    /// Text by which the node of the original and of the patched file are found to be the same.
    fn head(&self) -> Option<&str> {
        match self {
            Self::Function { head, .. } | Self::Group { head, .. } | Self::Other(head) => Some(head),
            Self::Imports(_) => None,
        }
    }
}

fn nodes_of(items: Vec<Item>) -> Vec<Node> {
    items.into_iter().map(node_of).collect()
}

fn node_of(item: Item) -> Node {
    match item {
        Item::Fn(mut function) => {
            let (range, body) = (range_of(&function), (*function.block).clone());
            function.block.stmts.clear();
            without_docs(&mut function.attrs);
            Node::Function { head: text(&function), range, body }
        }
        Item::Impl(mut implementation) => {
            let is_inherent = implementation.trait_.is_none();
            let end = is_inherent.then(|| implementation.brace_token.span.close().byte_range().start);
            let nodes = std::mem::take(&mut implementation.items).into_iter().map(node_of_impl).collect();
            without_docs(&mut implementation.attrs);
            Node::Group { head: text(&implementation), nodes, end, is_module: false }
        }
        Item::Trait(mut declaration) => {
            let nodes = std::mem::take(&mut declaration.items).into_iter().map(node_of_trait).collect();
            without_docs(&mut declaration.attrs);
            Node::Group { head: text(&declaration), nodes, end: None, is_module: false }
        }
        Item::Mod(mut module) => {
            without_docs(&mut module.attrs);
            let Some((brace, items)) = &mut module.content else { return Node::Other(text(&module)) };
            let end = Some(brace.span.close().byte_range().start);
            let nodes = nodes_of(std::mem::take(items));
            Node::Group { head: text(&module), nodes, end, is_module: true }
        }
        Item::Use(import) if import.attrs.is_empty() && matches!(import.vis, Visibility::Inherited) => {
            let mut paths = Vec::new();
            let root = if import.leading_colon.is_some() { "::" } else { "" };
            flatten(&import.tree, root, &mut paths);
            Node::Imports(paths)
        }
        other => Node::Other(text(&other)),
    }
}

fn node_of_impl(item: ImplItem) -> Node {
    let ImplItem::Fn(mut function) = item else { return Node::Other(text(&item)) };
    let (range, body) = (range_of(&function), function.block.clone());
    function.block.stmts.clear();
    without_docs(&mut function.attrs);
    Node::Function { head: text(&function), range, body }
}

fn node_of_trait(item: TraitItem) -> Node {
    match item {
        TraitItem::Fn(mut function) if function.default.is_some() => {
            let range = range_of(&function);
            let body = function.default.take().expect("checked above");
            without_docs(&mut function.attrs);
            Node::Function { head: text(&function), range, body }
        }
        item => Node::Other(text(&item)),
    }
}

/// Lists the imports of `use a::{b, c as d}`: `a::b` and `a::c as d`.
fn flatten(tree: &UseTree, before: &str, paths: &mut Vec<String>) {
    match tree {
        UseTree::Path(path) => flatten(&path.tree, &format!("{before}{}::", path.ident), paths),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, paths)),
        leaf => paths.push(format!("{before}{}", text(leaf))),
    }
}

struct Comparison<'a> {
    patched: &'a str,
    id: u32,
    changes: Changes,
}

impl Comparison<'_> {
    /// Compares the items of a file or of a group. Functions are added at `end`. `imports` are those that the patch adds.
    fn nodes(
        &mut self,
        before: Vec<Node>,
        after: Vec<Node>,
        end: Option<usize>,
        imports: &str,
    ) -> Result<(), String> {
        let is_import = |node: &Node| matches!(node, Node::Imports(_));
        let mut before: Vec<Node> = before.into_iter().filter(|node| !is_import(node)).collect();
        for node in after.into_iter().filter(|node| !is_import(node)) {
            let same = before.iter().position(|other| other.head() == node.head());
            match (same.map(|same| before.remove(same)), node) {
                (Some(Node::Function { body, .. }), Node::Function { body: patched, .. }) => {
                    self.body(&body, &patched, imports);
                }
                (Some(Node::Group { nodes, end, is_module, .. }), Node::Group { nodes: patched, .. }) => {
                    // Imports have no effect on the modules below.
                    let own = is_module.then(|| new_imports(&nodes, &patched));
                    self.nodes(nodes, patched, end, own.as_deref().unwrap_or(imports))?;
                }
                (Some(_), _) => {}
                (None, Node::Function { range, .. }) if end.is_some() => {
                    let function = format!("\n{}\n", &self.patched[range]);
                    self.changes.added.push(Added { at: end.unwrap_or_default(), function });
                }
                (None, node) => return Err(format!("changes {}", shortened(&node))),
            }
        }
        before.first().map_or(Ok(()), |node| Err(format!("changes {}", shortened(node))))
    }

    fn body(&mut self, original: &Block, patched: &Block, imports: &str) {
        if let Some(text) = marker::mark(self.patched, original, patched, self.id) {
            // Imported within the function: an import of the file could have an effect on its other functions.
            let text = format!("{{{imports}{}", &text[1..]);
            self.changes.bodies.push(Body { original: range_of(original), patched: text });
        }
    }
}

/// Imports that only the patched file has. Those that only the original has do no harm.
fn new_imports(before: &[Node], after: &[Node]) -> String {
    let imports = |nodes: &[Node]| -> Vec<String> {
        let imports = nodes.iter().filter_map(|node| match node {
            Node::Imports(paths) => Some(paths.clone()),
            _ => None,
        });
        imports.flatten().collect()
    };
    let known = imports(before);
    imports(after).iter().filter(|path| !known.contains(path)).map(|path| format!(" use {path};")).collect()
}

fn shortened(node: &Node) -> String {
    let text = node.head().unwrap_or_default();
    let end = text.char_indices().nth(60).map_or(text.len(), |(at, _)| at);
    format!("`{}`", text[..end].trim_end())
}

fn without_docs(attributes: &mut Vec<Attribute>) {
    attributes.retain(|attribute| !attribute.path().is_ident("doc"));
}

fn text_of(attributes: &[Attribute]) -> String {
    attributes.iter().filter(|attribute| !attribute.path().is_ident("doc")).map(text).collect()
}

fn text(node: &impl ToTokens) -> String {
    node.to_token_stream().to_string()
}

fn range_of(node: &impl Spanned) -> Range<usize> {
    node.span().byte_range()
}
