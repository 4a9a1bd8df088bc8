//! The tests, and the mutants that each of them reaches.

use crate::{
    build::TestBinary,
    mutant::Mutant,
    parallel,
    process::{self, End, Limited},
};
use anyhow::{Context, Result, bail};
use std::{
    collections::{BTreeMap, HashSet},
    ffi::OsStr,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    time::{Duration, Instant},
};

/// Time for one test without a mutant.
const BASELINE_TIMEOUT: Duration = Duration::from_secs(600);
/// Tests that take about so long together are run first. Each further batch may take `GROWTH` times as long.
const FIRST_BATCH: Duration = Duration::from_millis(250);
const GROWTH: u32 = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// Index of its program.
    pub binary: usize,
    pub name: String,
    /// How long it takes alone.
    pub takes: Duration,
    /// Ids of the mutants that it reaches.
    pub reaches: HashSet<u32>,
}

/// Result of [`Suite::try_mutant`].
pub enum Tried {
    /// No test reaches the mutant.
    NotReached,
    /// All tests passed, or one did not.
    Ended(End),
    /// Those tests passed that are not too slow for the budget.
    OverBudget,
}

pub struct Suite {
    pub binaries: Vec<TestBinary>,
    /// The quickest first.
    pub tests: Vec<Test>,
    /// Added to three times the duration of the tests.
    pub patience: Duration,
    /// Each worker has a directory below this one for temporary files.
    pub temporary: PathBuf,
}

impl Suite {
    /// Runs each test alone without a mutant. `file` keeps the result for the next call with this digest.
    pub fn measure(
        binaries: Vec<TestBinary>,
        digest: u64,
        file: &Path,
        temporary: PathBuf,
        patience: Duration,
        jobs: usize,
    ) -> Result<Self> {
        let mut suite = Self { binaries, tests: Vec::new(), patience, temporary };
        let header = format!("digest {digest:016x}");
        if let Some(tests) = fs::read_to_string(file).ok().and_then(|text| parse(&text, &header)) {
            suite.tests = tests;
            return Ok(suite);
        }
        let names = suite.names()?;
        let measured = Mutex::new(Vec::new());
        parallel::for_each("tests measured", &names, jobs, |(binary, name), worker| {
            let test = suite.measure_one(*binary, name, worker)?;
            measured.lock().expect("no worker panics").push(test);
            Ok(())
        })?;
        suite.tests = measured.into_inner().expect("no worker panics");
        suite.tests.sort_by(|a, b| (a.takes, a.binary, &a.name).cmp(&(b.takes, b.binary, &b.name)));
        fs::write(file, format(&suite.tests, &header))?;
        Ok(suite)
    }

    /// Programs and names of all tests that are not ignored.
    fn names(&self) -> Result<Vec<(usize, String)>> {
        let mut names = Vec::new();
        for (index, binary) in self.binaries.iter().enumerate() {
            let list = |option| {
                let arguments = ["--list", "--format", "terse", option];
                let arguments = if option.is_empty() { &arguments[..3] } else { &arguments[..] };
                process::output(&binary.path, arguments, &binary.directory)
            };
            let ignored = list("--ignored")?;
            let ignored: HashSet<&str> = ignored.lines().collect();
            let all = list("")?;
            let tests = all.lines().filter(|line| !ignored.contains(line));
            names.extend(tests.filter_map(|line| Some((index, line.strip_suffix(": test")?.to_owned()))));
        }
        if names.is_empty() {
            bail!("there are no tests");
        }
        Ok(names)
    }

    fn measure_one(&self, binary: usize, name: &str, worker: usize) -> Result<Test> {
        let coverage = self.temporary.join(format!("reached-{worker}"));
        let _ = fs::remove_file(&coverage);
        let variables = [("MUTANT_COVERAGE", coverage.as_os_str())];
        let start = Instant::now();
        let end = self.run(binary, &[name], BASELINE_TIMEOUT, worker, &variables)?;
        let takes = start.elapsed();
        if end != End::Passed {
            let binary = &self.binaries[binary].name;
            bail!("the test {name} of {binary} fails without a mutant: {end:?}");
        }
        let reaches = fs::read_to_string(&coverage).unwrap_or_default();
        let reaches =
            reaches.lines().map(str::parse).collect::<Result<_, _>>().context("malformed coverage")?;
        Ok(Test { binary, name: name.to_owned(), takes, reaches })
    }

    /// Runs tests of one program, one after the other.
    fn run(
        &self,
        binary: usize,
        names: &[&str],
        timeout: Duration,
        worker: usize,
        variables: &[(&str, &OsStr)],
    ) -> Result<End> {
        let temporary = self.temporary.join(format!("worker-{worker}"));
        fs::create_dir_all(&temporary)?;
        let binary = &self.binaries[binary];
        let limited = Limited {
            program: &binary.path,
            directory: &binary.directory,
            temporary: &temporary,
            timeout,
            is_failure: |line| line.starts_with("test ") && line.ends_with("... FAILED"),
            proof: &format!("test result: ok. {} passed;", names.len()),
            errors: None,
        };
        let mut arguments = vec!["--exact", "--test-threads", "1"];
        arguments.extend(names);
        let end = limited.run(&arguments, variables)?;
        // Tests that are killed leave files behind.
        fs::remove_dir_all(&temporary)?;
        Ok(end)
    }

    /// Runs the tests that reach a mutant, the quickest first, until one of them fails.
    pub fn try_mutant(&self, mutant: &Mutant, worker: usize, budget: Duration) -> Result<Tried> {
        let reaching = self.tests.iter().filter(|test| test.reaches.contains(&mutant.id));
        let reaching: Vec<&Test> = reaching.collect();
        if reaching.is_empty() {
            return Ok(Tried::NotReached);
        }
        let affordable = affordable(&reaching, budget, |test| {
            self.binaries[test.binary].package == mutant.package() && test.name.starts_with(&mutant.module())
        });
        let id = mutant.id.to_string();
        for (binary, tests) in batches(&affordable) {
            let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
            let takes: Duration = tests.iter().map(|test| test.takes).sum();
            let timeout = takes.saturating_mul(3).saturating_add(self.patience);
            let end = self.run(binary, &names, timeout, worker, &[("MUTANT", OsStr::new(&id))])?;
            if end != End::Passed {
                return Ok(Tried::Ended(end));
            }
        }
        let is_complete = affordable.len() == reaching.len();
        Ok(if is_complete { Tried::Ended(End::Passed) } else { Tried::OverBudget })
    }
}

/// The quickest tests that take so long together, and those of the mutated module.
fn affordable<'a>(
    tests: &[&'a Test],
    budget: Duration,
    is_of_module: impl Fn(&Test) -> bool,
) -> Vec<&'a Test> {
    let mut total = Duration::ZERO;
    let is_affordable = |test: &&&Test| {
        total = total.saturating_add(test.takes);
        total <= budget || is_of_module(test)
    };
    tests.iter().filter(is_affordable).copied().collect()
}

/// Divides tests, of which the quickest is first, into batches for one process each.
fn batches<'a>(tests: &[&'a Test]) -> Vec<(usize, Vec<&'a Test>)> {
    let (mut batches, mut limit, mut rest) = (Vec::new(), FIRST_BATCH, tests);
    while !rest.is_empty() {
        let mut total = Duration::ZERO;
        let fits = rest.iter().take_while(|test| {
            total = total.saturating_add(test.takes);
            total <= limit
        });
        let (now, later) = rest.split_at(fits.count().max(1));
        let mut by_binary = BTreeMap::<usize, Vec<&Test>>::new();
        for test in now {
            by_binary.entry(test.binary).or_default().push(test);
        }
        batches.extend(by_binary);
        (rest, limit) = (later, limit.saturating_mul(GROWTH));
    }
    batches
}

fn format(tests: &[Test], header: &str) -> String {
    let mut text = format!("{header}\n");
    for test in tests {
        let reaches: Vec<String> = test.reaches.iter().map(ToString::to_string).collect();
        let (micros, reaches) = (test.takes.as_micros(), reaches.join(","));
        writeln!(text, "{}\t{}\t{micros}\t{reaches}", test.binary, test.name).expect("a string takes all");
    }
    text
}

fn parse(text: &str, header: &str) -> Option<Vec<Test>> {
    let tests = text.strip_prefix(header)?.strip_prefix('\n')?;
    let test = |line: &str| {
        let mut parts = line.split('\t');
        let (binary, name) = (parts.next()?.parse().ok()?, parts.next()?.to_owned());
        let takes = Duration::from_micros(parts.next()?.parse().ok()?);
        let reaches = parts.next()?.split(',').filter(|id| !id.is_empty());
        Some(Test { binary, name, takes, reaches: reaches.map(|id| id.parse().ok()).collect::<Option<_>>()? })
    };
    tests.lines().map(test).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(binary: usize, name: &str, millis: u64) -> Test {
        Test {
            binary,
            name: name.to_owned(),
            takes: Duration::from_millis(millis),
            reaches: HashSet::from([7, 9]),
        }
    }

    #[test]
    fn quick_tests_come_first_and_batches_grow() {
        let tests =
            [test(0, "a", 100), test(1, "b", 100), test(0, "c", 200), test(0, "d", 400), test(0, "e", 9000)];
        let batches = batches(&tests.iter().collect::<Vec<_>>());
        let names: Vec<(usize, Vec<&str>)> = batches
            .iter()
            .map(|(binary, tests)| (*binary, tests.iter().map(|test| test.name.as_str()).collect()))
            .collect();
        assert_eq!(names, [(0, vec!["a"]), (1, vec!["b"]), (0, vec!["c", "d"]), (0, vec!["e"])]);
    }

    #[test]
    fn a_budget_leaves_out_slow_tests_of_other_modules() {
        let tests = [test(0, "a", 100), test(0, "b", 200), test(0, "pack::c", 400), test(0, "d", 500)];
        let tests: Vec<&Test> = tests.iter().collect();
        let names = |millis| {
            let budget = Duration::from_millis(millis);
            let tests = affordable(&tests, budget, |test| test.name.starts_with("pack::"));
            tests.iter().map(|test| test.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(300), ["a", "b", "pack::c"]);
        assert_eq!(names(1200), ["a", "b", "pack::c", "d"]);
    }

    #[test]
    fn measurements_are_kept_for_the_same_digest_only() {
        let tests = vec![test(0, "a", 1), Test { reaches: HashSet::new(), ..test(2, "b::c", 2) }];
        let text = format(&tests, "digest 1");
        assert_eq!(parse(&text, "digest 1"), Some(tests));
        assert_eq!(parse(&text, "digest 2"), None);
    }
}
