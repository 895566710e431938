//! Makes finished trials durable, many at once, and announces them only then.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use practicum_core::event::{EventSinks, RunEvent};

/// The longest time that a finished trial waits for others, so that one sync serves all of them.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// A thread that writes finished trials through to the disk and then sends their events to the other sinks. A trial
/// costs no sync of its own: what finishes within fifty milliseconds is synced together, while the run goes on.
pub struct GroupSync {
    events: Option<Sender<RunEvent>>,
    thread: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl GroupSync {
    /// Starts the thread for the file system of a file. The sinks get each event after it is on disk, in order.
    pub fn start(file: File, sinks: EventSinks) -> Self {
        let (events, received) = channel();
        let failure = Arc::new(Mutex::new(None));
        let reported = Arc::clone(&failure);
        let thread = std::thread::spawn(move || {
            if let Err(error) = announce_in_groups(&received, sinks, || sync_file_system(&file)) {
                *reported.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        });
        Self { events: Some(events), thread: Some(thread), failure }
    }

    /// Announces an event as soon as everything that was written before is on disk. Gives the error of an earlier
    /// sync, such as a disk that is full or broken.
    pub fn announce(&self, event: &RunEvent) -> io::Result<()> {
        if let Some(events) = &self.events {
            // The thread ends before the sender is dropped only if a sync failed.
            let _ = events.send(event.clone());
        }
        self.first_failure()
    }

    /// Waits until every event is on disk and announced.
    pub fn finish(&mut self) -> io::Result<()> {
        drop(self.events.take());
        // A sink that panicked has ended the announcements; the record is complete without them.
        let _ = self.thread.take().map(JoinHandle::join);
        self.first_failure()
    }

    fn first_failure(&self) -> io::Result<()> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

impl Drop for GroupSync {
    fn drop(&mut self) {
        // The last group is on disk before the log is closed. Who needs the error calls `finish`.
        let _ = self.finish();
    }
}

/// Says whether an event is announced only when it is on disk: those that contain results.
fn has_results(event: &RunEvent) -> bool {
    match event {
        RunEvent::ProbeFinished { .. }
        | RunEvent::TrialFinished { .. }
        | RunEvent::SkillJudged { .. }
        | RunEvent::RunFinished { .. } => true,
        RunEvent::RunStarted { .. } | RunEvent::TrialStarted { .. } | RunEvent::Notice { .. } => false,
    }
}

/// Sends events to the sinks until there are no more, or until a sync fails. What failed to be synced is not announced.
fn announce_in_groups(
    received: &Receiver<RunEvent>,
    mut sinks: EventSinks,
    mut sync: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    while let Ok(first) = received.recv() {
        let mut group = vec![first];
        if has_results(&group[0]) {
            let until = Instant::now() + LONGEST_WAIT;
            while let Ok(next) = received.recv_timeout(until.saturating_duration_since(Instant::now())) {
                group.push(next);
            }
            sync()?;
        }
        group.iter().for_each(|event| sinks.send_and_report(event));
    }
    Ok(())
}

/// Writes everything of the file system of a file to the disk: the log, and the files of the trials beside it.
#[cfg(target_os = "linux")]
fn sync_file_system(file: &File) -> io::Result<()> {
    rustix::fs::syncfs(file).map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn sync_file_system(file: &File) -> io::Result<()> {
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use practicum_core::event::EventSink;
    use practicum_core::model::{AgentEnding, ProbeRecord, TokenUsage};

    use super::*;

    /// A sink that stores how many syncs there were when each event came.
    struct SyncsBefore {
        syncs: Arc<AtomicUsize>,
        seen: Arc<Mutex<Vec<usize>>>,
    }

    impl EventSink for SyncsBefore {
        fn name(&self) -> &'static str {
            "syncs"
        }

        fn receive(&mut self, _: &RunEvent) -> io::Result<()> {
            self.seen.lock().expect("unpoisoned").push(self.syncs.load(Ordering::SeqCst));
            Ok(())
        }
    }

    fn result() -> RunEvent {
        let probe = ProbeRecord {
            trial: serde_json::from_str("\"t\"").expect("an id"),
            suite: "s".to_owned(),
            agent: "a".to_owned(),
            model: None,
            skill: "k".to_owned(),
            fired: true,
            trouble: None,
            ended: AgentEnding::Finished,
            usage: TokenUsage::default(),
            cost_usd: None,
            seconds: 1.0,
        };
        RunEvent::ProbeFinished { probe: Box::new(probe) }
    }

    fn notice() -> RunEvent {
        RunEvent::Notice { text: "x".to_owned() }
    }

    /// Sends events in two portions with a pause between them. Gives the number of syncs, and how many there were when
    /// each event was announced.
    fn announced(portions: [Vec<RunEvent>; 2], fails: bool) -> (io::Result<()>, usize, Vec<usize>) {
        let (events, received) = channel();
        let (syncs, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let sink = SyncsBefore { syncs: Arc::clone(&syncs), seen: Arc::clone(&seen) };
        let counted = Arc::clone(&syncs);
        let thread = std::thread::spawn(move || {
            announce_in_groups(&received, EventSinks::new(vec![Box::new(sink)]), || {
                counted.fetch_add(1, Ordering::SeqCst);
                if fails { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
            })
        });
        for portion in portions {
            portion.into_iter().for_each(|event| drop(events.send(event)));
            std::thread::sleep(2 * LONGEST_WAIT);
        }
        drop(events);
        let ended = thread.join().expect("no panic");
        let seen = seen.lock().expect("unpoisoned").clone();
        (ended, syncs.load(Ordering::SeqCst), seen)
    }

    #[test]
    fn many_results_share_a_sync_and_are_announced_after_it() {
        let many: Vec<RunEvent> = (0..1000).flat_map(|_| [result(), notice()]).collect();
        let (ended, syncs, seen) = announced([many, vec![notice(), result(), notice()]], false);
        ended.expect("synced");
        assert!((2..=20).contains(&syncs), "{syncs} syncs of 1001 results");
        assert_eq!(seen.len(), 2003);
        assert!(seen[..2000].iter().all(|before| *before > 0), "a result was announced before a sync");
        assert!(seen.is_sorted() && seen[2001] == syncs, "the last result waits for a sync of its own");
    }

    #[test]
    fn a_result_that_could_not_be_synced_is_announced() {
        let (ended, syncs, seen) = announced([vec![notice(), result()], vec![result(), notice()]], true);
        assert_eq!(ended.expect_err("full").kind(), io::ErrorKind::StorageFull);
        assert_eq!((syncs, seen.as_slice()), (1, [0].as_slice()), "only the notice");
    }
}
