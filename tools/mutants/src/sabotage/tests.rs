//! Tests of the switches of patches: which patches get one, and that only the patch that is switched on has an effect.

mod trials;

use super::{combine::combine, compare::Changes, compare::compare};
use crate::instrument::Instrumented;
use std::{
    fs,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

fn changes(original: &str, patches: &[&str]) -> Vec<(u32, Changes)> {
    let patches = patches.iter().zip(1..);
    patches.map(|(patched, id)| (id, compare(original, patched, id).unwrap())).collect()
}

fn combined(original: &str, patches: &[&str]) -> Instrumented {
    let changes = changes(original, patches);
    let changes: Vec<(u32, &Changes)> = changes.iter().map(|(id, changes)| (*id, changes)).collect();
    combine(original, &changes)
}

/// Compiles a function `check() -> i64` with all patches. Returns its value without a patch and with each of them, followed by
/// `true` if the changed code was reached.
fn behaviour(original: &str, patches: &[&str]) -> Vec<(i64, bool)> {
    static PROGRAMS: AtomicU32 = AtomicU32::new(0);
    let number = PROGRAMS.fetch_add(1, Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("sabotage-{}-{number}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let (file, program, reached) =
        (directory.join("main.rs"), directory.join("main"), directory.join("reached"));
    let text = combined(original, patches).text;
    fs::write(&file, format!("{text}\nmod __sabotage;\nfn main() {{ print!(\"{{}}\", check()) }}")).unwrap();
    fs::write(directory.join("__sabotage.rs"), include_str!("switch.rs")).unwrap();
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--cap-lints", "allow", "-o"]).arg(&program).arg(&file);
    assert!(rustc.status().unwrap().success(), "{text}");
    let with = |id: usize| {
        let mut command = Command::new(&program);
        let output = command.env("SABOTAGE", id.to_string()).env("SABOTAGE_REACHED", &reached).output();
        let value = String::from_utf8(output.unwrap().stdout).unwrap().parse().unwrap();
        (value, fs::remove_file(&reached).is_ok())
    };
    let values = (0..=patches.len()).map(with).collect();
    fs::remove_dir_all(directory).unwrap();
    values
}

fn reason(original: &str, patched: &str) -> String {
    compare(original, patched, 1).unwrap_err()
}

#[test]
fn a_changed_body_runs_only_if_it_is_switched_on() {
    let original = "/// Doc.\nfn f(a: i64) -> i64 {\n    a + 1\n}\nfn check() -> i64 { f(1) }\n";
    let first = original.replace("a + 1", "a + 10");
    let second = original.replace("a + 1", "let b = a;\n    b + 100");
    assert_eq!(
        combined(original, &[&first]).text,
        "/// Doc.\nfn f(a: i64) -> i64 { if crate::__sabotage::on(1) {\n     crate::__sabotage::reached(1); a + 10\n} \
         else {\n    a + 1\n} }\nfn check() -> i64 { f(1) }\n"
    );
    assert_eq!(behaviour(original, &[&first, &second]), [(2, false), (11, true), (101, true)]);
}

#[test]
fn methods_generics_traits_modules_and_async_functions_keep_their_signatures() {
    let original = "
        mod inner {
            pub struct A<T>(pub T);
            impl<T: Copy + Into<i64>> A<T> {
                pub fn get<'a>(&'a mut self) -> &'a T { &self.0 }
                pub async fn wait(self) -> i64 { std::future::ready(()).await; self.0.into() }
            }
            pub trait B { fn b(&self) -> i64 { 3 } }
            impl B for A<i64> {}
            impl Iterator for A<u8> {
                type Item = i64;
                fn next(&mut self) -> Option<i64> { Some(7) }
            }
        }
        fn check() -> i64 {
            use inner::B;
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let std::task::Poll::Ready(waited) =
                std::pin::pin!(inner::A(20i32).wait()).as_mut().poll(&mut context) else { return 0 };
            let mut number = inner::A(100i64);
            waited + *number.get() + number.b() + inner::A(0u8).next().unwrap() * 1000
        }";
    let patches = [
        original.replace("&self.0", "let a = &mut self.0; &*a"),
        original.replace("self.0.into()", "2 * self.0.into()"),
        original.replace("{ 3 }", "{ 4 }"),
        original.replace("Some(7)", "None.or(Some(8))"),
    ];
    let values = behaviour(original, &patches.each_ref().map(String::as_str));
    assert_eq!(values, [(7123, false), (7123, true), (7143, true), (7124, true), (8123, true)]);
}

#[test]
fn a_patch_may_change_several_functions_and_add_some() {
    let original = "struct A;\nimpl A { fn a(&self) -> i64 { 1 } }\nfn f() -> i64 { 10 }\nfn check() -> i64 { A.a() + f() }";
    let patched = "struct A;\nimpl A { fn a(&self) -> i64 { self.b() }\n/// Doc.\nfn b(&self) -> i64 { 2 } }\n\
                   fn f() -> i64 { g() + 20 }\nfn g() -> i64 { 100 }\nfn check() -> i64 { A.a() + f() }";
    assert_eq!(behaviour(original, &[patched]), [(11, false), (122, true)]);
}

#[test]
fn imports_that_a_patch_removes_stay_and_those_that_it_adds_are_local() {
    let original =
        "use std::{cmp::max, mem};\nfn f() -> i64 { max(1, mem::take(&mut 2)) }\nfn check() -> i64 { f() }";
    let patched = "use std::{cmp::{min as least, max}};\nfn f() -> i64 { least(5, max(4, 3)) }\nfn check() -> i64 { f() }";
    assert_eq!(behaviour(original, &[patched]), [(2, false), (4, true)]);
    let body = &changes(original, &[patched])[0].1.bodies[0].patched;
    assert!(body.starts_with("{ use std::cmp::min as least;"), "{body}");
}

#[test]
fn changes_outside_of_functions_need_a_build_of_their_own() {
    assert_eq!(reason("struct A { a: u8 }", "struct A { a: u16 }"), "changes `struct A { a : u16 }`");
    for (original, patched) in [
        ("const A: u8 = 1;", "const A: u8 = 2;"),
        ("fn f(a: u8) {}", "fn f(a: u16) {}"),
        ("fn f() {}", "async fn f() {}"),
        ("fn f() {}", "#[inline] fn f() {}"),
        ("fn f() {} fn g() {}", "fn f() {}"),
        ("impl A { const B: u8 = 1; }", "impl A { const B: u8 = 2; }"),
        ("impl A for B {}", "impl A for B { fn f() {} }"),
        ("trait A {}", "trait A { fn f() {} }"),
        ("struct A;", "struct A; impl Drop for A { fn drop(&mut self) {} }"),
        ("use a::b;", "pub use a::b;"),
        ("#![allow(unused)]", ""),
        ("macro_rules! a { () => { 1 } }", "macro_rules! a { () => { 2 } }"),
    ] {
        assert!(compare(original, patched, 1).is_err(), "{patched}");
    }
    let comments = compare("/// A.\nfn f() {} // a", "/// B.\nfn f() {} // b", 1);
    assert_eq!(comments.unwrap(), Changes::default());
}

#[test]
fn the_changed_code_is_marked_within_its_block() {
    let marked = |original: &str, patched: &str| {
        let [a, b] = [original, patched].map(|body| format!("fn f() -> u8 {{ {body} }}"));
        let body = compare(&a, &b, 7).unwrap().bodies.remove(0).patched;
        let body = body.replace(" crate::__sabotage::reached(7); ", "!");
        body[2..body.len() - 2].to_owned()
    };
    // Changed, added and removed.
    assert_eq!(marked("a(); b(); c()", "a(); x(); c()"), "a(); !x(); c()");
    assert_eq!(marked("a(); c()", "a(); b(); c()"), "a(); !b(); c()");
    assert_eq!(marked("a(); b(); c()", "a(); c()"), "a(); !c()");
    assert_eq!(marked("a(); if b { c(); d(); } e()", "a(); if b { c(); } e()"), "a(); if b { !c(); } e()");
    // In the innermost block, unless the change is before it.
    assert_eq!(marked("a(); if b { c() }", "a(); if b { d() }"), "a(); if b { !d() }");
    assert_eq!(marked("a(); if b { c() }", "a(); if d { c() }"), "a(); !if d { c() }");
    assert_eq!(marked("a(|| { b() })", "a(|| { c() })"), "a(|| { !c() })");
    assert_eq!(
        marked("a(); match b { c => d, }", "a(); match b { c if e => d, }"),
        "a(); !match b { c if e => d, }"
    );
    // Code of macros is not looked into.
    assert_eq!(marked("a(); m!({ b() })", "a(); m!({ c() })"), "a(); !m!({ c() })");
}

#[test]
fn compiler_errors_are_traced_to_patches() {
    let original = "impl A { fn f() -> u8 { 1 } }\nfn g() {}";
    let first = original.replace("{ 1 }", "{ 2 }");
    let second = original.replace("{ 1 }", "{ h() }") + "\nfn h() {}";
    let file = combined(original, &[&first, &second]);
    let at = |code: &str| {
        let start = file.text.find(code).unwrap();
        file.blamed(&(start..start + code.len()))
    };
    assert_eq!(at(" 2 "), [1]);
    assert_eq!(at("h()"), [2]);
    assert_eq!(at("fn h"), [2]);
    // The original body does not fit to one of the patched ones.
    assert_eq!(at(" 1 "), [1, 2]);
    assert_eq!(at("fn g"), Vec::<u32>::new());
}
