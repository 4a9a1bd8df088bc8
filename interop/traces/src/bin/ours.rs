//! Executes commands from standard input with kube-informer's shared informer, and writes the events of its handlers to
//! standard output, one JSON object per line. See `kube_informer_traces::protocol`.
#![allow(clippy::print_stdout, reason = "the protocol uses standard output")]

use kube_informer::{
    Deleted, EventHandler, HandlerOptions, Index, InformerBuilder, Kind, KubeSource, ListWatch, Object,
    Origin, Registration, Scope, SharedInformer, Stop, filter, informer_client,
};
use kube_informer_traces::protocol::{Call, Command, EventType, ObjectState, Record};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap},
    error::Error,
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    task::JoinHandle,
};

/// A short backoff, because traces do not contain times.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut driver = None;
    while let Some(line) = lines.next_line().await? {
        let command: Command = serde_json::from_str(&line)?;
        let stop = matches!(command, Command::Stop);
        match (command, &mut driver) {
            (open @ Command::Open { .. }, driver) => *driver = Some(Driver::open(open)?),
            (command, Some(driver)) => driver.execute(command).await?,
            (_, None) => return Err("the first command must be open".into()),
        }
        write(&Record::Done(line));
        if stop {
            break;
        }
    }
    Ok(())
}

/// The informer of one run.
struct Driver {
    informer: SharedInformer<Value>,
    indexes: BTreeMap<String, Index<String>>,
    handlers: HashMap<String, (Arc<Registration>, JoinHandle<()>)>,
}

impl Driver {
    fn open(command: Command) -> Result<Self, Box<dyn Error>> {
        let Command::Open { server, namespaces, selector, resync_ms, indexes } = command else {
            return Err("the first command must be open".into());
        };
        let client = informer_client(kube::Config::new(server.parse()?))?;
        let origin = Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods")));
        let selector = selector.parse()?;
        let scope = if namespaces.is_empty() { Scope::all() } else { Scope::namespaces(namespaces)? };
        let source = |namespace: Option<&str>| -> Arc<dyn ListWatch> {
            Arc::new(KubeSource::new(client.clone(), Arc::clone(&origin), namespace).labels(&selector))
        };
        let informer = InformerBuilder::new(Arc::clone(&origin))
            .scope(scope)
            .resync(Duration::from_millis(resync_ms.unwrap_or(0)))
            .backoff(BACKOFF.0, BACKOFF.1)
            .build::<Value>(source);
        let mut added = BTreeMap::new();
        for (name, key) in indexes {
            let index = match key.strip_prefix("label:") {
                Some(label) => informer.index_label(label)?,
                None => informer.index_field("spec.nodeName")?,
            };
            added.insert(name, index);
        }
        Ok(Self { informer, indexes: added, handlers: HashMap::new() })
    }

    async fn execute(&mut self, command: Command) -> Result<(), Box<dyn Error>> {
        match command {
            Command::Open { .. } => return Err("open was sent twice".into()),
            Command::Add { handler, resync_ms, filter } => self.add(handler, resync_ms, &filter),
            Command::Remove { handler } => self.remove(&handler).await?,
            Command::Start => self.informer.start(),
            Command::Dump => self.dump()?,
            Command::Stop => self.informer.stop(Stop::Drop).await,
        }
        Ok(())
    }

    fn add(&mut self, name: String, resync_ms: Option<u64>, label: &str) {
        let resync = resync_ms.map(Duration::from_millis);
        let options = HandlerOptions::new().name(name.as_str()).resync(resync);
        let printer = Printer { name: name.clone() };
        let registration = match label.split_once('=') {
            None => self.informer.add_handler_with(printer, options),
            Some((key, value)) => {
                let (key, value) = (key.to_owned(), value.to_owned());
                let accept = move |object: &Object<Value>| object.labels().get(&key) == Some(&value);
                self.informer.add_handler_with(filter(accept, printer), options)
            }
        };
        let registration = Arc::new(registration);
        let synced = tokio::spawn({
            let (registration, name) = (Arc::clone(&registration), name.clone());
            async move {
                if registration.synced().await.is_ok() {
                    write(&Record::Synced(name));
                }
            }
        });
        self.handlers.insert(name, (registration, synced));
    }

    async fn remove(&mut self, name: &str) -> Result<(), Box<dyn Error>> {
        let (registration, synced) = self.handlers.remove(name).ok_or("unknown handler")?;
        synced.abort();
        // Once the task has ended, it no longer holds the registration.
        let _ = synced.await;
        Arc::into_inner(registration).ok_or("the registration is in use")?.remove().await;
        Ok(())
    }

    fn dump(&self) -> Result<(), Box<dyn Error>> {
        let lister = self.informer.lister();
        write(&Record::Store(lister.list().iter().map(describe).collect()));
        let mut entries = BTreeMap::new();
        for (name, index) in &self.indexes {
            for value in lister.values(index)? {
                let keys = lister.by(index, &value)?.iter().map(|object| object.key().to_string()).collect();
                entries.insert(format!("{name}={value}"), keys);
            }
        }
        write(&Record::Index(entries));
        Ok(())
    }
}

/// A handler that writes its events to standard output.
struct Printer {
    name: String,
}

impl Printer {
    fn call(&self, event: EventType, object: &Object<Value>) -> Call {
        let (handler, object) = (self.name.clone(), describe(object));
        Call { handler, event, initial: false, unknown: false, old: None, object }
    }
}

impl EventHandler<Value> for Printer {
    fn on_add(&mut self, object: &Object<Value>, initial: bool) {
        write(&Record::Call(Call { initial, ..self.call(EventType::Add, object) }));
    }

    fn on_update(&mut self, old: &Object<Value>, new: &Object<Value>) {
        write(&Record::Call(Call { old: Some(describe(old)), ..self.call(EventType::Update, new) }));
    }

    fn on_delete(&mut self, deleted: &Deleted<Value>) {
        let unknown = deleted.is_final_state_unknown();
        write(&Record::Call(Call { unknown, ..self.call(EventType::Delete, deleted.object()) }));
    }
}

fn describe(object: &Object<Value>) -> ObjectState {
    ObjectState {
        key: object.key().to_string(),
        version: object.resource_version().to_string(),
        uid: object.uid().to_string(),
    }
}

fn write(record: &Record) {
    println!("{}", serde_json::to_string(record).unwrap_or_default());
}
