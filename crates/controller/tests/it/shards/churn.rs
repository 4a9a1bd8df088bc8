//! Replicas that come and go while objects are deleted and recreated.

use super::replicas::{Log, Replica};
use crate::support::{World, secs};
use kube::api::DeleteParams;
use kube_embedded_apiserver::{Fault, FaultRule, Verb};
use std::time::Duration;

/// One world of a seed: at the end, everything was reconciled by one replica at a time, and after the last change.
async fn churn(seed: u64) {
    let (world, log) = (World::start().await, Log::default());
    let mut rng = fastrand::Rng::with_seed(seed);
    let (shards, mut started) = (rng.u32(2..8), 0);
    let mut replicas = Vec::new();
    for _ in 0..60 {
        match rng.u32(..20) {
            0 | 1 if replicas.len() < 4 => {
                started += 1;
                replicas.push(Replica::start(&world, &format!("r{started}"), shards, &log));
            }
            2 if replicas.len() > 1 => {
                let replica: Replica = replicas.swap_remove(rng.usize(..replicas.len()));
                if rng.bool() { replica.kill().await } else { replica.stop().await }
            }
            3 => {
                let faults =
                    [Fault::Conflict, Fault::ResponseLost, Fault::Unavailable, Fault::Delay(secs(1))];
                let verbs = [Verb::Update, Verb::Patch, Verb::Get, Verb::Create];
                let rule = FaultRule::new(faults[rng.usize(..4)]).verb(verbs[rng.usize(..4)]);
                world.server.faults().add(rule.resource("leases").times(rng.u64(1..6)));
            }
            4 => {
                if let Some(replica) = replicas.first() {
                    replica.block(&format!("k{}", rng.u32(..4)));
                }
            }
            5 | 6 => replicas.iter().for_each(Replica::unblock),
            _ => {
                let name = format!("k{}", rng.u32(..4));
                if world.config_api().delete(&name, &DeleteParams::default()).await.is_err() || rng.bool() {
                    world.create(&name).await;
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(rng.u64(1..4000))).await;
    }
    replicas.iter().for_each(Replica::unblock);
    if replicas.is_empty() {
        replicas.push(Replica::start(&world, "last", shards, &log));
    }
    tokio::time::sleep(secs(60)).await;
    assert!(log.check_intervals().is_empty(), "seed {seed}: all have ended");
    log.take();
    for n in 0..4 {
        let name = format!("k{n}");
        if world.config_api().get_opt(&name).await.unwrap().is_none() {
            world.create(&name).await;
        }
        world.set(&name, "last").await;
    }
    tokio::time::sleep(secs(30)).await;
    for n in 0..4 {
        let name = format!("k{n}");
        let ended = log.steps().into_iter().any(|step| step.key == name && step.what == "ends");
        assert!(ended, "seed {seed}: {name} of {shards} shards: {:?}", log.steps());
    }
    for replica in replicas {
        replica.kill().await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_key_is_reconciled_by_two_replicas_at_once() {
    // .ci/long runs many.
    let seeds = std::env::var("CHURN_SEEDS").map_or(2, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        churn(seed).await;
    }
}
