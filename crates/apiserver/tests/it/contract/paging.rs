//! Limits, continue tokens and remaining counts.

use kube_embedded_apiserver::watch_cache::{ListRequest, ListResponse, ReadError, RevisionMatch};

use super::on_every_reader;
use super::world::{World, at, labelled, namespace, paths, v};

on_every_reader!(
    pages_are_one_snapshot,
    a_limit_that_fits_gives_no_token,
    the_last_page_may_be_requested_without_a_limit,
    a_token_can_be_used_again,
    a_token_belongs_to_its_namespace,
    with_a_selector_nothing_is_counted_and_the_last_page_may_be_empty,
    a_rare_match_fills_a_page,
    an_expired_token_returns_a_replacement,
    a_token_and_a_version_exclude_each_other,
    malformed_tokens_are_rejected,
    not_older_than_honors_the_limit,
    exact_pages_stay_at_their_version,
);

#[cfg(feature = "etcd")]
super::on_etcd!(
    etcd_stored, Stored:
        pages_are_one_snapshot,
        a_limit_that_fits_gives_no_token,
        the_last_page_may_be_requested_without_a_limit,
        a_token_can_be_used_again,
        a_token_belongs_to_its_namespace,
        with_a_selector_nothing_is_counted_and_the_last_page_may_be_empty,
        a_rare_match_fills_a_page,
        an_expired_token_returns_a_replacement,
        a_token_and_a_version_exclude_each_other,
        malformed_tokens_are_rejected,
        not_older_than_honors_the_limit,
        exact_pages_stay_at_their_version;
    etcd_cached, Cached:
        pages_are_one_snapshot,
        a_limit_that_fits_gives_no_token,
        the_last_page_may_be_requested_without_a_limit,
        a_token_can_be_used_again,
        a_token_belongs_to_its_namespace,
        with_a_selector_nothing_is_counted_and_the_last_page_may_be_empty,
        a_rare_match_fills_a_page,
        an_expired_token_returns_a_replacement,
        a_token_and_a_version_exclude_each_other,
        malformed_tokens_are_rejected,
        not_older_than_honors_the_limit,
        exact_pages_stay_at_their_version;
    etcd_no_gates, NoGates:
        pages_are_one_snapshot,
        a_limit_that_fits_gives_no_token,
        the_last_page_may_be_requested_without_a_limit,
        a_token_can_be_used_again,
        a_token_belongs_to_its_namespace,
        with_a_selector_nothing_is_counted_and_the_last_page_may_be_empty,
        a_rare_match_fills_a_page,
        an_expired_token_returns_a_replacement,
        a_token_and_a_version_exclude_each_other,
        malformed_tokens_are_rejected,
        not_older_than_honors_the_limit,
        exact_pages_stay_at_their_version;
);

fn page(limit: usize) -> ListRequest {
    ListRequest { limit, ..ListRequest::default() }
}

fn after(response: &ListResponse, limit: usize) -> ListRequest {
    ListRequest { continue_token: response.continue_token.clone(), ..page(limit) }
}

async fn five(world: &World) -> u64 {
    world.create_all(&["a/1", "a/2", "b/3", "b/4", "c/5"]).await
}

async fn pages_are_one_snapshot(world: World) {
    let revision = five(&world).await;
    let first = world.list(page(2)).await;
    assert_eq!(
        (paths(&first), first.revision, first.remaining),
        (vec!["a/1".into(), "a/2".into()], revision, Some(3))
    );
    world.delete("b/3").await;
    world.create("b/35", v(0)).await;
    let second = world.list(after(&first, 2)).await;
    assert_eq!(
        (paths(&second), second.revision, second.remaining),
        (vec!["b/3".into(), "b/4".into()], revision, Some(1))
    );
    world.delete("c/5").await;
    let third = world.list(after(&second, 2)).await;
    assert_eq!((paths(&third), third.revision, third.remaining), (vec!["c/5".into()], revision, None));
    assert_eq!(third.continue_token, None);
}

async fn a_limit_that_fits_gives_no_token(world: World) {
    five(&world).await;
    for limit in [5, 6, 0] {
        let response = world.list(page(limit)).await;
        assert_eq!((response.items.len(), response.continue_token, response.remaining), (5, None, None));
    }
}

async fn the_last_page_may_be_requested_without_a_limit(world: World) {
    five(&world).await;
    let first = world.list(page(1)).await;
    let rest = world.list(after(&first, 0)).await;
    assert_eq!((rest.items.len(), rest.revision, rest.continue_token), (4, first.revision, None));
}

async fn a_token_can_be_used_again(world: World) {
    five(&world).await;
    let first = world.list(page(2)).await;
    let once = world.list(after(&first, 2)).await;
    let twice = world.list(after(&first, 2)).await;
    assert_eq!(paths(&once), paths(&twice));
    assert_eq!(once.continue_token, twice.continue_token);
}

async fn a_token_belongs_to_its_namespace(world: World) {
    five(&world).await;
    let in_b = |request| ListRequest { scope: namespace("b"), ..request };
    let first = world.list(in_b(page(1))).await;
    assert_eq!((paths(&first), first.remaining), (vec!["b/3".to_owned()], Some(1)));
    let second = world.list(in_b(after(&first, 1))).await;
    assert_eq!((paths(&second), second.continue_token), (vec!["b/4".to_owned()], None));
}

async fn with_a_selector_nothing_is_counted_and_the_last_page_may_be_empty(world: World) {
    world.create("a/1", labelled("app", "web")).await;
    world.create("a/2", labelled("app", "db")).await;
    world.create("a/3", labelled("app", "db")).await;
    let web = |request| ListRequest { labels: "app=web".parse().unwrap(), ..request };
    let first = world.list(web(page(1))).await;
    assert_eq!((paths(&first), first.remaining), (vec!["a/1".to_owned()], None));
    assert!(first.continue_token.is_some(), "two more objects were not compared");
    let second = world.list(web(after(&first, 1))).await;
    assert_eq!((second.items.len(), second.continue_token, second.revision), (0, None, first.revision));
}

async fn a_rare_match_fills_a_page(world: World) {
    for n in 0..500 {
        let spec = if n == 450 { labelled("app", "rare") } else { v(n) };
        world.create(&format!("a/{n:04}"), spec).await;
    }
    let rare = ListRequest { labels: "app=rare".parse().unwrap(), ..page(1) };
    let response = world.list(rare).await;
    assert_eq!(paths(&response), ["a/0450"]);
}

async fn an_expired_token_returns_a_replacement(world: World) {
    five(&world).await;
    let first = world.list(page(2)).await;
    world.delete("b/3").await;
    let current = world.compact().await;
    let replacement = match world.list_error(after(&first, 2)).await {
        ReadError::ContinueExpired { replacement } => replacement,
        other => panic!("{other:?}"),
    };
    let resume = ListRequest { continue_token: Some(replacement), ..page(1) };
    let second = world.list(resume).await;
    assert_eq!(
        (paths(&second), second.revision, second.remaining),
        (vec!["b/4".to_owned()], current, Some(1))
    );
    let third = world.list(after(&second, 2)).await;
    assert_eq!((paths(&third), third.revision), (vec!["c/5".to_owned()], current));
}

async fn a_token_and_a_version_exclude_each_other(world: World) {
    five(&world).await;
    let first = world.list(page(2)).await;
    let both = ListRequest { revision: at(first.revision), ..after(&first, 2) };
    assert!(matches!(world.list_error(both).await, ReadError::ContinueWithVersion));
}

async fn malformed_tokens_are_rejected(world: World) {
    for token in ["%%%", "e30", "bm90IGpzb24"] {
        let request = ListRequest { continue_token: Some(token.to_owned()), ..page(1) };
        let error = world.list_error(request).await.to_string();
        assert!(error.starts_with("invalid continue token: continue key is not valid"), "{error}");
    }
}

async fn not_older_than_honors_the_limit(world: World) {
    let revision = five(&world).await;
    let request =
        ListRequest { revision: at(revision), revision_match: Some(RevisionMatch::NotOlderThan), ..page(2) };
    let response = world.list(request).await;
    assert_eq!((response.items.len(), response.remaining, response.revision), (2, Some(3), revision));
}

async fn exact_pages_stay_at_their_version(world: World) {
    let revision = five(&world).await;
    world.create("a/15", v(0)).await;
    let request =
        ListRequest { revision: at(revision), revision_match: Some(RevisionMatch::Exact), ..page(2) };
    let first = world.list(request).await;
    assert_eq!((paths(&first), first.revision), (vec!["a/1".into(), "a/2".into()], revision));
    let second = world.list(after(&first, 9)).await;
    assert_eq!((second.items.len(), second.revision), (3, revision));
}
