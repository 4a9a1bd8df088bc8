//! The program a user should be able to write, on a real API server over real sockets.

use k8s_openapi::{
    api::{
        apps::v1::{ReplicaSet, ReplicaSetSpec},
        core::v1::{Container, Pod, PodSpec, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference},
};
use kube::api::{Api, DeleteParams, PostParams};
use kube_embedded_apiserver::ApiServer;
use kube_informer::{
    InformerFactory, Object, ObjectKey, ObjectReferences, WorkQueue, enqueue, enqueue_owner,
};
use std::{collections::BTreeMap, time::Duration};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::test]
async fn a_controller_keeps_as_many_pods_as_asked_for() -> Result<()> {
    let server = ApiServer::start().await?;
    let client = server.client()?;
    let sets_api: Api<ReplicaSet> = Api::namespaced(client.clone(), "default");
    let pods_api: Api<Pod> = Api::namespaced(client.clone(), "default");
    sets_api.create(&PostParams::default(), &replica_set("web", 3)).await?;

    let observer = InformerFactory::new(client.clone());
    let seen = observer.of::<Pod>();
    observer.start();
    let controller = controller(kube::Config::new(server.url().parse()?), pods_api.clone());
    let checks = async {
        converged(&seen, 3).await?;
        let name = seen.lister().list().iter().next().unwrap().name().to_owned();
        pods_api.delete(&name, &DeleteParams::default().grace_period(0)).await?;
        seen.wait_until(&ObjectKey::namespaced("default", &name), PATIENCE, |pod| pod.is_none()).await?;
        converged(&seen, 3).await
    };
    tokio::select! {
        ended = controller => panic!("the controller ended: {ended:?}"),
        checked = checks => checked?,
    }
    observer.shutdown().await;
    Ok(())
}

const PATIENCE: Duration = Duration::from_secs(30);

/// Resolves when there are `want` pods that are not being deleted.
async fn converged(pods: &kube_informer::SharedInformer<Pod>, want: usize) -> Result<()> {
    use futures_util::StreamExt;
    let mut events = pods.events();
    loop {
        let have = pods.lister().list().iter().filter(|pod| !pod.is_deleting()).count();
        assert!(have <= want, "a stale cache made a pod too many");
        if have == want {
            return Ok(());
        }
        tokio::time::timeout(PATIENCE, events.next()).await?;
    }
}

/// The program of the design, as it stands there.
async fn controller(config: kube::Config, api: Api<Pod>) -> Result<()> {
    let params = PostParams::default();
    let factory = InformerFactory::from_config(config)?;
    let (sets, pods) = (factory.of::<ReplicaSet>(), factory.of::<Pod>());
    let by_owner = pods.index(|p: &Object<Pod>| p.controller().map(|o| o.uid))?;
    let queue = WorkQueue::named("replicasets");
    sets.add_handler(enqueue(&queue));
    pods.add_handler(enqueue_owner::<ReplicaSet>(&queue));
    factory.start();
    factory.synced(Duration::from_secs(30)).await?;
    queue
        .run_workers(4, async |key: ObjectKey| {
            let Some(set) = sets.lister().get(&key) else { return Ok(()) };
            if set.is_deleting() {
                return Ok(());
            }
            let want = set.decode()?.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1) as usize;
            if pods.lister().by(&by_owner, &set.uid())?.len() < want {
                let made = api.create(&params, &pod_for(set.controller_owner_ref()?)).await?;
                pods.reached(&made).await?; // read your own write
            }
            Ok(())
        })
        .until(std::future::pending::<()>())
        .await;
    factory.shutdown().await;
    Ok(())
}

fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([("app".to_owned(), "web".to_owned())])
}

fn pod_spec() -> PodSpec {
    let container = Container { name: "web".into(), image: Some("web:1".into()), ..Container::default() };
    PodSpec { containers: vec![container], ..PodSpec::default() }
}

fn replica_set(name: &str, replicas: i32) -> ReplicaSet {
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels()), ..ObjectMeta::default() }),
        spec: Some(pod_spec()),
    };
    ReplicaSet {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        spec: Some(ReplicaSetSpec {
            replicas: Some(replicas),
            selector: LabelSelector { match_labels: Some(labels()), ..LabelSelector::default() },
            template: Some(template),
            ..ReplicaSetSpec::default()
        }),
        ..ReplicaSet::default()
    }
}

fn pod_for(owner: OwnerReference) -> Pod {
    let generate_name = Some(format!("{}-", owner.name));
    let (labels, owner_references) = (Some(labels()), Some(vec![owner]));
    Pod {
        metadata: ObjectMeta { generate_name, labels, owner_references, ..ObjectMeta::default() },
        spec: Some(pod_spec()),
        ..Pod::default()
    }
}
