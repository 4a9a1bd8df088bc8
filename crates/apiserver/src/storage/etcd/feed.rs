//! Feeds followers from one watch of etcd, in one task.

use std::sync::Weak;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::changes::{Batch, Changes};
use super::connection::{Connection, Identity};
use crate::storage::{Follower, Range, StorageError};

/// Delay between attempts to reset the followers.
const RETRY: Duration = Duration::from_secs(1);

/// A command for the feed, executed between two batches.
pub(super) enum Command {
    Follow { prefix: String, follower: Weak<dyn Follower>, done: oneshot::Sender<Result<(), StorageError>> },
    Compacted { revision: u64, done: oneshot::Sender<()> },
}

/// The task that watches etcd.
///
/// The state for a new follower is read in this task, so that the watch does not advance meanwhile: the state is never older than the
/// delivered changes, and changes that the state already includes are skipped.
pub(super) struct Feed {
    connection: Connection,
    changes: Changes,
    followers: Vec<Registered>,
    /// All followers have received all changes up to this revision of this store.
    delivered: watch::Sender<Identity>,
    commands: mpsc::Receiver<Command>,
    compaction: Option<Compaction>,
}

struct Registered {
    prefix: String,
    follower: Weak<dyn Follower>,
    /// Its state was read at this revision.
    from: u64,
}

/// Periodic compaction.
struct Compaction {
    period: Duration,
    next: Instant,
    /// The revision at the last tick, to which the next tick compacts: a revision stays readable for at least one period.
    mark: u64,
}

impl Feed {
    pub(super) fn new(
        connection: Connection,
        identity: &Identity,
        delivered: watch::Sender<Identity>,
        commands: mpsc::Receiver<Command>,
        compaction: Option<Duration>,
    ) -> Self {
        let changes = all_changes(&connection, identity);
        let compaction = compaction.map(|period| Compaction {
            period,
            next: Instant::now() + period,
            mark: identity.revision,
        });
        Self { connection, changes, followers: Vec::new(), delivered, commands, compaction }
    }

    /// Runs until the store is dropped.
    pub(super) async fn run(mut self) {
        loop {
            let due = self.compaction.as_ref().map(|compaction| compaction.next);
            tokio::select! {
                biased;
                command = self.commands.recv() => match command {
                    Some(command) => self.execute(command).await,
                    None => return,
                },
                () = until(due) => self.compact().await,
                batch = self.changes.next() => match batch {
                    Ok(batch) => self.deliver(&batch),
                    Err(error) => self.restart(&error).await,
                },
            }
        }
    }

    async fn execute(&mut self, command: Command) {
        match command {
            Command::Follow { prefix, follower, done } => {
                let followed = self.follow(prefix, follower).await;
                let _ = done.send(followed); // the caller may have been cancelled
            }
            Command::Compacted { revision, done } => {
                self.deliver_compacted(revision);
                let _ = done.send(());
            }
        }
    }

    async fn follow(&mut self, prefix: String, follower: Weak<dyn Follower>) -> Result<(), StorageError> {
        let from = reset(&self.connection, &prefix, &follower).await?;
        self.followers.retain(|known| !Weak::ptr_eq(&known.follower, &follower));
        self.followers.push(Registered { prefix, follower, from });
        Ok(())
    }

    /// Sends each follower the changes under its prefix, and its progress if the last change was under another prefix.
    fn deliver(&mut self, batch: &Batch) {
        self.followers.retain(|registered| {
            let Some(follower) = registered.follower.upgrade() else { return false };
            let mut received = registered.from;
            for change in batch.changes.iter().filter(|change| change.revision > registered.from) {
                if change.key().starts_with(&registered.prefix) {
                    follower.change(change);
                    received = change.revision;
                }
            }
            if received < batch.revision {
                follower.progress(batch.revision);
            }
            true
        });
        self.delivered.send_modify(|delivered| delivered.revision = batch.revision);
    }

    fn deliver_compacted(&self, revision: u64) {
        for follower in self.followers.iter().filter_map(|registered| registered.follower.upgrade()) {
            follower.compacted(revision.saturating_sub(1));
        }
    }

    async fn compact(&mut self) {
        let Some(compaction) = &mut self.compaction else { return };
        let revision = std::mem::replace(&mut compaction.mark, self.changes.seen());
        compaction.next = Instant::now() + compaction.period;
        match self.connection.compact(revision).await {
            Ok(()) => self.deliver_compacted(revision),
            Err(error) => tracing::warn!(%error, "cannot compact etcd; retrying after the next period"),
        }
    }

    /// Resets all followers, after history was compacted or etcd lost its data.
    async fn restart(&mut self, cause: &StorageError) {
        tracing::warn!(%cause, "the watch of etcd cannot resume; relisting");
        for follower in self.followers.iter().filter_map(|registered| registered.follower.upgrade()) {
            follower.lost(&cause.to_string());
        }
        while let Err(error) = self.reset_all().await {
            tracing::debug!(%error, "cannot read from etcd; retrying");
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn reset_all(&mut self) -> Result<(), StorageError> {
        let identity = self.connection.identify().await?;
        self.followers.retain(|registered| registered.follower.strong_count() > 0);
        for registered in &mut self.followers {
            registered.from = reset(&self.connection, &registered.prefix, &registered.follower).await?;
        }
        self.changes = all_changes(&self.connection, &identity);
        self.delivered.send_replace(identity);
        Ok(())
    }
}

fn all_changes(connection: &Connection, identity: &Identity) -> Changes {
    Changes::new(connection.clone(), identity.epoch.clone(), "/", identity.revision)
}

/// Sends a follower the whole state, and returns its revision.
async fn reset(
    connection: &Connection,
    prefix: &str,
    follower: &Weak<dyn Follower>,
) -> Result<u64, StorageError> {
    let page = connection.list(&Range { prefix: prefix.to_owned(), ..Range::default() }).await?;
    if let Some(follower) = follower.upgrade() {
        follower.reset(page.revision, page.items);
    }
    Ok(page.revision)
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
