//! Rate limiters.

use std::sync::Arc;
use std::time::Duration;

use kube_workqueue::{
    BucketLimiter, ExponentialLimiter, FastSlowLimiter, JitterLimiter, MaxOfLimiter, MaxWaitLimiter,
    RateLimiter, WorkQueue, controller_rate_limiter, item_rate_limiter,
};
use tokio::time::{Instant, advance};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn waits<K>(limiter: &impl RateLimiter<K>, key: &K, times: usize) -> Vec<Duration> {
    (0..times).map(|_| limiter.when(key)).collect()
}

/// TestItemExponentialFailureRateLimiter
#[tokio::test(start_paused = true)]
async fn exponential() {
    let limiter = ExponentialLimiter::new(MS, SECOND);
    assert_eq!(waits(&limiter, &"one", 5), [MS, 2 * MS, 4 * MS, 8 * MS, 16 * MS]);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!(waits(&limiter, &"two", 2), [MS, 2 * MS]);
    assert_eq!(limiter.num_requeues(&"two"), 2);
    limiter.forget(&"one");
    assert_eq!(limiter.num_requeues(&"one"), 0);
    assert_eq!(limiter.when(&"one"), MS);
}

/// TestItemExponentialFailureRateLimiterOverFlow
#[tokio::test(start_paused = true)]
async fn exponential_does_not_overflow() {
    let limiter = ExponentialLimiter::new(MS, 1000 * SECOND);
    waits(&limiter, &"one", 5);
    assert_eq!(limiter.when(&"one"), 32 * MS);
    waits(&limiter, &"overflow", 1000);
    assert_eq!(limiter.when(&"overflow"), 1000 * SECOND);

    let huge = ExponentialLimiter::new(60 * SECOND, 1_000_000 * 3600 * SECOND);
    let all = waits(&huge, &"key", 200);
    assert!(all.is_sorted(), "never shorter than before");
    assert_eq!(all[25], 60 * SECOND * (1 << 25));
    assert_eq!(all[199], 1_000_000 * 3600 * SECOND);

    let long = waits(&ExponentialLimiter::new(Duration::from_nanos(1), Duration::MAX), &"key", 100);
    assert!((0..63).all(|failures| long[failures] == Duration::from_nanos(1 << failures)), "{long:?}");
    assert!(long[63..].iter().all(|wait| *wait == Duration::from_nanos(u64::MAX)), "{long:?}");

    let nothing = ExponentialLimiter::new(Duration::ZERO, SECOND);
    assert_eq!(waits(&nothing, &"key", 100)[99], Duration::ZERO);
}

/// TestItemFastSlowRateLimiter
#[tokio::test(start_paused = true)]
async fn fast_then_slow() {
    let limiter = FastSlowLimiter::new(5 * MS, 10 * SECOND, 3);
    let expected = [5 * MS, 5 * MS, 5 * MS, 10 * SECOND, 10 * SECOND];
    assert_eq!(waits(&limiter, &"one", 5), expected);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!(waits(&limiter, &"two", 2), [5 * MS, 5 * MS]);
    limiter.forget(&"one");
    assert_eq!(limiter.num_requeues(&"one"), 0);
    assert_eq!(limiter.when(&"one"), 5 * MS);
}

/// TestMaxOfRateLimiter
#[tokio::test(start_paused = true)]
async fn max_of_uses_the_longest_delay() {
    let limiter = MaxOfLimiter::new()
        .and(FastSlowLimiter::new(5 * MS, 3 * SECOND, 3))
        .and(ExponentialLimiter::new(MS, SECOND));
    let expected = [5 * MS, 5 * MS, 5 * MS, 3 * SECOND, 3 * SECOND];
    assert_eq!(waits(&limiter, &"one", 5), expected);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!(waits(&limiter, &"two", 2), [5 * MS, 5 * MS]);
    limiter.forget(&"one");
    assert_eq!(limiter.num_requeues(&"one"), 0);
}

/// TestWithMaxWaitRateLimiter
#[tokio::test(start_paused = true)]
async fn max_wait_limits_the_delay() {
    let inner = MaxOfLimiter::new()
        .and(FastSlowLimiter::new(5 * MS, 1000 * SECOND, 3))
        .and(ExponentialLimiter::new(MS, SECOND));
    let limiter = MaxWaitLimiter::new(inner, 10 * SECOND);
    let expected = [5 * MS, 5 * MS, 5 * MS, 10 * SECOND, 10 * SECOND];
    assert_eq!(waits(&limiter, &"one", 5), expected);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    limiter.forget(&"one");
    assert_eq!(limiter.num_requeues(&"one"), 0);
}

/// TestRateLimitingQueue
#[tokio::test(start_paused = true)]
async fn a_queue_with_a_limiter() {
    let queue = WorkQueue::builder().rate_limiter(ExponentialLimiter::new(MS, SECOND)).build();
    let start = Instant::now();
    let due = |key| queue.due(&key).unwrap() - start;
    queue.add_rate_limited("one");
    assert_eq!(due("one"), MS);
    queue.add_rate_limited("one");
    assert_eq!((queue.num_requeues(&"one"), due("one")), (2, MS), "the earlier time wins");
    queue.add_rate_limited("two");
    queue.cancel(&"two");
    queue.add_rate_limited("two");
    assert_eq!((queue.num_requeues(&"two"), due("two")), (2, 2 * MS));
    queue.forget(&"one");
    assert_eq!(queue.num_requeues(&"one"), 0);
    queue.cancel(&"one");
    queue.add_rate_limited("one");
    assert_eq!(due("one"), MS);
}

#[tokio::test(start_paused = true)]
async fn a_bucket_reserves_future_tokens_and_refills() {
    let limiter = BucketLimiter::new(10.0, 3);
    let expected = [0, 0, 0, 100, 200];
    assert_eq!(waits(&limiter, &"any", 5), expected.map(|ms| ms * MS));
    advance(200 * MS).await;
    assert_eq!(limiter.when(&"other"), 100 * MS, "the debt is paid, the next token is in the making");
    advance(3600 * SECOND).await;
    assert_eq!(waits(&limiter, &"any", 4), [0, 0, 0, 100].map(|ms| ms * MS), "no more than the burst");
    assert_eq!(RateLimiter::num_requeues(&limiter, &"any"), 0);
}

#[tokio::test(start_paused = true)]
async fn the_defaults_are_those_of_client_go() {
    let limiter = controller_rate_limiter();
    assert_eq!(waits(&limiter, &0, 4), [5, 10, 20, 40].map(|ms| ms * MS));
    (1..97).for_each(|key| assert_eq!(limiter.when(&key), 5 * MS));
    assert_eq!(limiter.when(&1000), 100 * MS, "the burst of 100 is used up, 10 a second from here");
    assert_eq!(waits(&limiter, &0, 30)[29], 1000 * SECOND);
    let limiter = item_rate_limiter();
    assert_eq!(waits(&limiter, &"key", 3), [1, 2, 4].map(|ms| ms * MS));
    assert_eq!(waits(&limiter, &"key", 30)[29], 1000 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn jitter_only_lengthens_and_follows_its_seed() {
    let limiter = |seed| JitterLimiter::new(FastSlowLimiter::new(SECOND, SECOND, 0), 0.5, seed);
    let first = waits(&limiter(1), &"key", 100);
    assert!(first.iter().all(|wait| (SECOND..SECOND * 3 / 2).contains(wait)));
    assert!(first.iter().any(|wait| *wait != first[0]));
    assert_eq!(first, waits(&limiter(1), &"key", 100));
    assert_ne!(first, waits(&limiter(2), &"key", 100));
}

#[tokio::test(start_paused = true)]
async fn a_queue_can_jitter() {
    let due = || {
        let limiter = FastSlowLimiter::new(SECOND, SECOND, 0);
        let queue = WorkQueue::builder().rate_limiter(limiter).jitter(0.2).seed(9).build();
        queue.add_rate_limited("key");
        queue.due(&"key").unwrap() - Instant::now()
    };
    assert!(due() > SECOND && due() < SECOND * 6 / 5);
    assert_eq!(due(), due());
}

/// With `expire_after`, failures do not stay in memory for ever.
#[tokio::test(start_paused = true)]
async fn unchanged_failures_expire_if_configured() {
    let limiter = ExponentialLimiter::new(MS, SECOND).expire_after(100 * SECOND);
    let key: Arc<str> = "gone".into();
    limiter.when(&key);
    advance(99 * SECOND).await;
    limiter.when(&key);
    advance(99 * SECOND).await;
    assert_eq!(limiter.num_requeues(&key), 2, "touched within the time");
    let busy: Arc<str> = "busy".into();
    for _ in 0..3 {
        advance(99 * SECOND).await;
        limiter.when(&busy);
    }
    assert_eq!(limiter.num_requeues(&key), 0);
    assert_eq!(Arc::strong_count(&key), 1, "the memory is free too");
    assert_eq!(limiter.num_requeues(&busy), 3);
    advance(1000 * SECOND).await;
    assert_eq!(limiter.num_requeues(&busy), 0);
    limiter.when(&busy);
    advance(200 * SECOND).await;
    assert_eq!(limiter.num_requeues(&busy), 0, "after twice the time at the latest");
}

#[tokio::test(start_paused = true)]
async fn failures_do_not_expire_while_a_key_is_delayed() {
    let limiter = ExponentialLimiter::new(100 * SECOND, 100 * SECOND).expire_after(SECOND);
    for failures in 0..10 {
        assert_eq!(limiter.num_requeues(&"key"), failures);
        limiter.when(&"key");
        advance(100 * SECOND).await;
    }
}

/// As in client-go, where only `Forget` ends the count: "give up after 5 failures" must also work for slow handlers.
#[tokio::test(start_paused = true)]
async fn failures_of_a_slow_handler_are_counted() {
    let queue = WorkQueue::builder().rate_limiter(ExponentialLimiter::new(5 * MS, 10 * SECOND)).build();
    queue.add("key");
    for failures in 1..=8 {
        let item = queue.get().await.unwrap();
        advance(3600 * SECOND).await;
        item.retry();
        assert_eq!(queue.num_requeues(&"key"), failures);
    }
    let limiter = FastSlowLimiter::new(MS, SECOND, 2);
    for failures in 1..=3 {
        limiter.when(&"key");
        advance(3600 * SECOND).await;
        assert_eq!(limiter.num_requeues(&"key"), failures);
    }
}

#[tokio::test(start_paused = true)]
async fn one_limiter_can_serve_two_queues() {
    let bucket = Arc::new(BucketLimiter::new(1.0, 1));
    let [first, second] = [(); 2].map(|()| WorkQueue::builder().rate_limiter(Arc::clone(&bucket)).build());
    first.add_rate_limited("a");
    second.add_rate_limited("b");
    assert_eq!((first.len(), second.len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn no_duration_makes_a_limiter_panic() {
    let all = [0, 1, 1 << 40, u64::MAX / 2, u64::MAX].map(Duration::from_secs);
    for base in all {
        for max in all.into_iter().chain([Duration::MAX]) {
            let exponential = || ExponentialLimiter::new(base, max).expire_after(max);
            let limiters: [Box<dyn RateLimiter<u8>>; 4] = [
                Box::new(exponential()),
                Box::new(FastSlowLimiter::new(base, max, 3)),
                Box::new(JitterLimiter::new(exponential(), f64::MAX, 1)),
                Box::new(MaxWaitLimiter::new(BucketLimiter::new(f64::MIN_POSITIVE, 0), max)),
            ];
            for limiter in limiters {
                assert!((0..70).all(|_| limiter.when(&1) <= Duration::MAX));
                limiter.forget(&1);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_jittered_wait_saturates() {
    let endless = ExponentialLimiter::new(Duration::MAX, Duration::MAX);
    assert_eq!(JitterLimiter::new(endless, 1.0, 1).when(&"key"), Duration::MAX);
    let long = ExponentialLimiter::new(Duration::from_secs(1), Duration::from_secs(1));
    assert_eq!(JitterLimiter::new(long, f64::MAX, 1).when(&"key"), Duration::MAX);
}
