//! Marks the changed code of a patched function, so that a run tells whether it was reached.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use std::ops::Range;
use syn::{
    Block,
    spanned::Spanned,
    visit::{self, Visit},
};

/// Returns the text of the patched body with a call before the first statement that differs; `None` if none does.
pub fn mark(source: &str, original: &Block, patched: &Block, id: u32) -> Option<String> {
    let changed = changed(original, patched)?;
    let mut finder = Finder { changed: &changed, innermost: None };
    finder.visit_block(patched);
    let at = position(finder.innermost.unwrap_or(patched), changed.start);
    let body = patched.span().byte_range();
    let (before, after) = (&source[body.start..at], &source[at..body.end]);
    Some(format!("{before} crate::__sabotage::reached({id}); {after}"))
}

/// Returns where the patched body differs from the original. The range is empty if code was only removed.
fn changed(original: &Block, patched: &Block) -> Option<Range<usize>> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    flatten(original.to_token_stream(), &mut before);
    flatten(patched.to_token_stream(), &mut after);
    let is_same = |(a, b): &(&Token, &Token)| a.text == b.text;
    let start = before.iter().zip(&after).take_while(is_same).count();
    if start == before.len() && start == after.len() {
        return None;
    }
    let (rest_before, rest_after) = (&before[start..], &after[start..]);
    let end = rest_before.iter().rev().zip(rest_after.iter().rev()).take_while(is_same).count();
    let changed = &rest_after[..rest_after.len() - end];
    // At least the closing brace follows.
    let first = rest_after.first()?.range.start;
    Some(first..changed.last().map_or(first, |last| last.range.end))
}

struct Token {
    text: String,
    range: Range<usize>,
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        let TokenTree::Group(group) = tree else {
            tokens.push(Token { text: tree.to_string(), range: tree.span().byte_range() });
            continue;
        };
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::None => ("", ""),
        };
        tokens.push(Token { text: open.to_owned(), range: group.span_open().byte_range() });
        flatten(group.stream(), tokens);
        tokens.push(Token { text: close.to_owned(), range: group.span_close().byte_range() });
    }
}

/// Finds the innermost block around the changed code.
struct Finder<'a, 'ast> {
    changed: &'a Range<usize>,
    innermost: Option<&'ast Block>,
}

impl<'ast> Visit<'ast> for Finder<'_, 'ast> {
    fn visit_block(&mut self, block: &'ast Block) {
        let braces = block.brace_token.span;
        let (start, end) = (braces.open().byte_range().end, braces.close().byte_range().start);
        if start <= self.changed.start && self.changed.end <= end {
            self.innermost = Some(block);
            visit::visit_block(self, block);
        }
    }

    // The statements of a const block are evaluated by the compiler.
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
}

/// Returns where the first statement that ends behind the changed code begins, or the last one.
fn position(block: &Block, changed: usize) -> usize {
    let statement = block.stmts.iter().find(|statement| statement.span().byte_range().end > changed);
    let statement = statement.or(block.stmts.last()).map(|statement| statement.span().byte_range().start);
    statement.unwrap_or(block.brace_token.span.open().byte_range().end)
}
