//! LIST and GET: the version of the response, and the selected objects.

use kube_embedded_apiserver::watch_cache::{ListRequest, ReadError, RevisionMatch, RevisionOption, Scope};
use tokio::time::Instant;

use super::on_every_reader;
use super::world::{Reader, World, at, labelled, namespace, number, object, on_node, paths, v};

on_every_reader!(
    an_empty_list_has_the_global_version,
    the_latest_state_has_the_global_version,
    items_are_in_byte_order,
    exact_returns_the_requested_version,
    exact_reproduces_a_list_after_later_writes,
    a_version_with_a_limit_is_exact,
    a_version_alone_is_a_lower_bound,
    any_version_never_waits,
    a_future_version_is_too_large,
    a_version_reached_while_waiting_is_served,
    a_compacted_version_is_expired,
    a_lower_bound_below_compaction_is_accepted,
    scopes_and_selectors_combine,
    a_list_of_one_name_is_a_lookup,
    get_by_version,
);

#[cfg(feature = "etcd")]
super::on_etcd!(
    etcd_stored, Stored:
        an_empty_list_has_the_global_version,
        the_latest_state_has_the_global_version,
        items_are_in_byte_order,
        exact_returns_the_requested_version,
        exact_reproduces_a_list_after_later_writes,
        a_version_with_a_limit_is_exact,
        a_version_alone_is_a_lower_bound,
        any_version_never_waits,
        a_future_version_is_too_large,
        a_version_reached_while_waiting_is_served,
        a_compacted_version_is_expired,
        a_lower_bound_below_compaction_is_accepted,
        scopes_and_selectors_combine,
        a_list_of_one_name_is_a_lookup,
        get_by_version;
    etcd_cached, Cached:
        an_empty_list_has_the_global_version,
        the_latest_state_has_the_global_version,
        items_are_in_byte_order,
        exact_returns_the_requested_version,
        exact_reproduces_a_list_after_later_writes,
        a_version_with_a_limit_is_exact,
        a_version_alone_is_a_lower_bound,
        any_version_never_waits,
        a_future_version_is_too_large,
        a_version_reached_while_waiting_is_served,
        a_compacted_version_is_expired,
        a_lower_bound_below_compaction_is_accepted,
        scopes_and_selectors_combine,
        a_list_of_one_name_is_a_lookup,
        get_by_version;
    etcd_no_gates, NoGates:
        an_empty_list_has_the_global_version,
        the_latest_state_has_the_global_version,
        items_are_in_byte_order,
        exact_returns_the_requested_version,
        exact_reproduces_a_list_after_later_writes,
        a_version_with_a_limit_is_exact,
        a_version_alone_is_a_lower_bound,
        any_version_never_waits,
        a_future_version_is_too_large,
        a_version_reached_while_waiting_is_served,
        a_compacted_version_is_expired,
        a_lower_bound_below_compaction_is_accepted,
        scopes_and_selectors_combine,
        a_list_of_one_name_is_a_lookup,
        get_by_version;
);

const EXACT: Option<RevisionMatch> = Some(RevisionMatch::Exact);
const NOT_OLDER: Option<RevisionMatch> = Some(RevisionMatch::NotOlderThan);

fn exact(revision: u64) -> ListRequest {
    ListRequest { revision: at(revision), revision_match: EXACT, ..ListRequest::default() }
}

fn not_older(revision: u64) -> ListRequest {
    ListRequest { revision: at(revision), revision_match: NOT_OLDER, ..ListRequest::default() }
}

async fn an_empty_list_has_the_global_version(world: World) {
    let revision = world.write_elsewhere().await;
    let response = world.list(ListRequest::default()).await;
    assert_eq!(
        (response.revision, response.items.len(), response.continue_token, response.remaining),
        (revision, 0, None, None)
    );
}

async fn the_latest_state_has_the_global_version(world: World) {
    world.create("a/x", v(0)).await;
    let elsewhere = world.write_elsewhere().await;
    let response = world.list(ListRequest::default()).await;
    assert_eq!((response.revision, paths(&response)), (elsewhere, vec!["a/x".to_owned()]));
    let any = world.list(ListRequest { revision: RevisionOption::Any, ..ListRequest::default() }).await;
    assert!(any.revision >= response.revision, "versions do not go back");
}

async fn items_are_in_byte_order(world: World) {
    world.create_all(&["ab/x", "a/x", "a-b/x", "a/x.y", "a/x-y", "a/xy"]).await;
    let response = world.list(ListRequest::default()).await;
    assert_eq!(paths(&response), ["a-b/x", "a/x", "a/x-y", "a/x.y", "a/xy", "ab/x"]);
}

async fn exact_returns_the_requested_version(world: World) {
    let first = world.create("a/x", v(1)).await;
    let second = world.update("a/x", v(2)).await;
    let third = world.create("a/y", v(3)).await;
    let fourth = world.delete("a/x").await;
    for (revision, numbers) in [(first, vec![1]), (second, vec![2]), (third, vec![2, 3]), (fourth, vec![3])] {
        let response = world.list(exact(revision)).await;
        let shown: Vec<_> = response.items.iter().map(|stored| number(stored)).collect();
        assert_eq!((response.revision, shown), (revision, numbers));
    }
}

async fn exact_reproduces_a_list_after_later_writes(world: World) {
    let mut seen = Vec::new();
    for n in 0..40 {
        world.create(&format!("a/x{n}"), v(n)).await;
        let response = world.list(ListRequest::default()).await;
        seen.push((response.revision, paths(&response)));
    }
    for (revision, expected) in seen {
        assert_eq!(paths(&world.list(exact(revision)).await), expected, "at {revision}");
    }
}

async fn a_version_with_a_limit_is_exact(world: World) {
    let first = world.create("a/x", v(1)).await;
    world.create("a/y", v(2)).await;
    let response = world.list(ListRequest { revision: at(first), limit: 5, ..ListRequest::default() }).await;
    assert_eq!((response.revision, paths(&response)), (first, vec!["a/x".to_owned()]));
}

async fn a_version_alone_is_a_lower_bound(world: World) {
    let first = world.create("a/x", v(1)).await;
    let second = world.create("a/y", v(2)).await;
    for request in [not_older(first), ListRequest { revision: at(first), ..ListRequest::default() }] {
        let response = world.list(request).await;
        assert_eq!((response.revision, response.items.len()), (second, 2));
    }
}

async fn any_version_never_waits(world: World) {
    world.create("a/x", v(1)).await;
    let start = Instant::now();
    world.create("a/y", v(2)).await;
    for revision_match in [None, NOT_OLDER] {
        let any =
            ListRequest { revision: RevisionOption::Any, revision_match, limit: 1, ..ListRequest::default() };
        let response = world.list(any).await;
        let ignored = world.reader != Reader::Stored;
        assert_eq!(response.items.len() > 1, ignored, "only caches ignore the limit");
        assert_eq!(response.continue_token.is_some(), !ignored);
    }
    assert_eq!(start.elapsed().as_secs(), 0);
}

async fn a_future_version_is_too_large(world: World) {
    let current = world.create("a/x", v(1)).await;
    let future = current + 100;
    let limited = ListRequest { revision: at(future), limit: 1, ..ListRequest::default() };
    for request in [not_older(future), exact(future), limited] {
        let start = Instant::now();
        let exact = request.revision_match == EXACT || request.limit > 0;
        match world.list_error(request).await {
            ReadError::TooLarge { requested, current: known, retry_after } => {
                assert_eq!((requested, known), (future, current));
                let waits = world.reader == Reader::Cached || (world.reader == Reader::NoGates && !exact);
                assert_eq!(
                    (retry_after, start.elapsed().as_secs()),
                    if waits { (Some(1), 3) } else { (None, 0) }
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

async fn a_version_reached_while_waiting_is_served(world: World) {
    if world.reader == Reader::Stored {
        return; // the store does not wait
    }
    let next = world.current().await + 1;
    let request = not_older(next);
    let (response, _) = tokio::join!(world.cache.list(&request), async {
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        world.write_elsewhere().await
    });
    assert_eq!(response.unwrap().revision, next, "a write to another resource counts");
}

async fn a_compacted_version_is_expired(world: World) {
    let first = world.create("a/x", v(1)).await;
    world.create("a/y", v(2)).await;
    world.compact().await;
    let limited = ListRequest { revision: at(first), limit: 1, ..ListRequest::default() };
    for request in [exact(first), exact(1), limited] {
        assert!(matches!(world.list_error(request).await, ReadError::ListExpired));
    }
}

async fn a_lower_bound_below_compaction_is_accepted(world: World) {
    world.create("a/x", v(1)).await;
    world.create("a/y", v(2)).await;
    let current = world.compact().await;
    assert_eq!(world.list(not_older(1)).await.revision, current);
    assert_eq!(world.list(exact(current)).await.items.len(), 2, "the newest version is never compacted");
}

async fn scopes_and_selectors_combine(world: World) {
    world.create("a/x", labelled("app", "web")).await;
    world.create("a/y", labelled("app", "db")).await;
    world.create("ab/x", labelled("app", "web")).await;
    world.create("b/x", on_node("n1")).await;
    let cases: [(Scope, &str, &str, &[&str]); 12] = [
        (Scope::All, "app=web", "", &["a/x", "ab/x"]),
        (Scope::All, "app", "", &["a/x", "a/y", "ab/x"]),
        (Scope::All, "!app", "", &["b/x"]),
        (namespace("a"), "", "", &["a/x", "a/y"]),
        (namespace("a"), "app notin (db)", "", &["a/x"]),
        (namespace("none"), "", "", &[]),
        (Scope::All, "", "metadata.namespace=a", &["a/x", "a/y"]),
        (Scope::All, "", "metadata.namespace!=a", &["ab/x", "b/x"]),
        (Scope::All, "", "metadata.name=x", &["a/x", "ab/x", "b/x"]),
        (Scope::All, "app=web", "metadata.name=x,metadata.namespace=ab", &["ab/x"]),
        (namespace("a"), "", "metadata.namespace=b", &[]),
        (Scope::All, "", "spec.nodeName=n1", &["b/x"]),
    ];
    for (scope, labels, fields, expected) in cases {
        for revision in [RevisionOption::Unset, RevisionOption::Any, at(world.current().await)] {
            let request = ListRequest {
                scope: scope.clone(),
                revision,
                labels: labels.parse().unwrap(),
                fields: fields.parse().unwrap(),
                ..ListRequest::default()
            };
            assert_eq!(paths(&world.list(request).await), expected, "{scope:?} {labels} {fields}");
        }
    }
}

async fn a_list_of_one_name_is_a_lookup(world: World) {
    let first = world.create("a/x", v(1)).await;
    world.create("a/xy", v(2)).await;
    let second = world.update("a/x", v(3)).await;
    let one = |request: ListRequest| ListRequest { scope: object("a/x"), ..request };
    for (request, expected) in
        [(ListRequest::default(), 3), (exact(first), 1), (exact(second), 3), (not_older(first), 3)]
    {
        let response = world.list(one(request)).await;
        assert_eq!(
            (response.items.len(), number(&response.items[0]), response.continue_token),
            (1, expected, None)
        );
    }
    let missing = ListRequest { scope: object("a/none"), ..ListRequest::default() };
    assert!(world.list(missing).await.items.is_empty());
    let by_field = ListRequest {
        scope: namespace("a"),
        fields: "metadata.name=x".parse().unwrap(),
        limit: 1,
        ..ListRequest::default()
    };
    let response = world.list(by_field).await;
    assert_eq!((paths(&response), response.continue_token), (vec!["a/x".to_owned()], None));
}

async fn get_by_version(world: World) {
    let first = world.create("a/x", v(1)).await;
    let current = world.write_elsewhere().await;
    for revision in [RevisionOption::Unset, RevisionOption::Any, at(1), at(first), at(current)] {
        let found = world.get("a/x", revision).await.unwrap().unwrap();
        assert_eq!(found.revision, first);
        assert!(world.get("a/y", revision).await.unwrap().is_none());
    }
    let error = world.get("a/x", at(current + 1)).await.unwrap_err();
    assert!(matches!(error, ReadError::TooLarge { requested, .. } if requested == current + 1), "{error:?}");
}
