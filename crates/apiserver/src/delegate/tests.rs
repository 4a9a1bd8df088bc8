use super::*;
use Consistency::{Any, Exact, Latest, NotOlderThan};
use ListSource::{Cache, Storage};

const N: u64 = 7;
const TOKEN: i64 = 5;

const UNSET: RevisionOption = RevisionOption::Unset;
const ZERO: RevisionOption = RevisionOption::Any;
const AT: RevisionOption = RevisionOption::At(N);
const EXACT: Option<RevisionMatch> = Some(RevisionMatch::Exact);
const NOT_OLDER: Option<RevisionMatch> = Some(RevisionMatch::NotOlderThan);

/// One row: version, match, token, limit → consistency, source with the gates of 1.36, source with all gates disabled.
type Row = (RevisionOption, Option<RevisionMatch>, Option<i64>, bool, Consistency, ListSource, ListSource);

/// Every combination that passes validation: a match requires a version, Exact excludes 0, a token excludes version and match.
const TABLE: [Row; 18] = [
    (UNSET, None, None, false, Latest, Cache, Storage),
    (UNSET, None, None, true, Latest, Cache, Storage),
    (ZERO, None, None, false, Any, Cache, Cache),
    (ZERO, None, None, true, Any, Cache, Cache),
    (ZERO, NOT_OLDER, None, false, Any, Cache, Cache),
    (ZERO, NOT_OLDER, None, true, Any, Cache, Cache),
    (AT, None, None, false, NotOlderThan(N), Cache, Cache),
    (AT, None, None, true, Exact(N), Cache, Storage),
    (AT, NOT_OLDER, None, false, NotOlderThan(N), Cache, Cache),
    (AT, NOT_OLDER, None, true, NotOlderThan(N), Cache, Storage),
    (AT, EXACT, None, false, Exact(N), Cache, Storage),
    (AT, EXACT, None, true, Exact(N), Cache, Storage),
    (UNSET, None, Some(TOKEN), false, Exact(5), Cache, Storage),
    (UNSET, None, Some(TOKEN), true, Exact(5), Cache, Storage),
    (ZERO, None, Some(TOKEN), true, Exact(5), Cache, Storage),
    (UNSET, None, Some(-1), false, Latest, Cache, Storage),
    (UNSET, None, Some(-1), true, Latest, Cache, Storage),
    (ZERO, None, Some(-1), true, Latest, Cache, Storage),
];

fn options(row: &Row) -> ListOptions {
    let (revision, revision_match, continue_at, limited, ..) = *row;
    ListOptions { revision, revision_match, limited, continue_at, single: false }
}

#[test]
fn options_determine_the_consistency() {
    for row in &TABLE {
        assert_eq!(options(row).consistency(), row.4, "{row:?}");
    }
}

#[test]
fn sources_with_the_gates_of_1_36() {
    for row in &TABLE {
        assert_eq!(options(row).source(FeatureGates::default()), row.5, "{row:?}");
    }
}

#[test]
fn sources_with_all_gates_disabled() {
    for row in &TABLE {
        assert_eq!(options(row).source(FeatureGates::DISABLED), row.6, "{row:?}");
    }
}

/// An independent statement of the rule without gates, checked for every combination of options.
#[test]
fn the_rule_without_gates_matches_its_definition() {
    for revision in [UNSET, ZERO, AT] {
        for revision_match in [None, EXACT, NOT_OLDER] {
            for continue_at in [None, Some(TOKEN), Some(-1)] {
                for limited in [false, true] {
                    if revision == ZERO && revision_match == EXACT {
                        continue; // rejected by validation
                    }
                    let options =
                        ListOptions { revision, revision_match, limited, continue_at, single: false };
                    let to_storage = revision == UNSET
                        || continue_at.is_some()
                        || (limited && revision != ZERO)
                        || revision_match == EXACT;
                    let expected = if to_storage { Storage } else { Cache };
                    assert_eq!(options.source(FeatureGates::DISABLED), expected, "{options:?}");
                }
            }
        }
    }
}

#[test]
fn each_gate_moves_only_its_own_rows() {
    let consistent = FeatureGates { consistent_list_from_cache: true, ..FeatureGates::DISABLED };
    let snapshots = FeatureGates { list_from_cache_snapshot: true, ..FeatureGates::DISABLED };
    for row in &TABLE {
        let latest = row.4 == Latest;
        assert_eq!(options(row).source(consistent), if latest { row.5 } else { row.6 }, "{row:?}");
        assert_eq!(options(row).source(snapshots), if latest { row.6 } else { row.5 }, "{row:?}");
    }
}

#[test]
fn an_exact_list_of_one_object_reads_from_the_store() {
    for row in &TABLE {
        let single = ListOptions { single: true, ..options(row) };
        let expected = if matches!(row.4, Exact(_)) { Storage } else { row.5 };
        assert_eq!(single.source(FeatureGates::default()), expected, "{row:?}");
    }
}
