//! Makes finished trials durable, many at once.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest time that a finished trial waits for others, so that one sync serves all of them.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// A thread that writes finished trials through to the disk. A trial costs no sync of its own: what finishes within
/// fifty milliseconds is synced together, with the files of all its trials, while the run goes on.
pub struct GroupSync {
    requests: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl GroupSync {
    /// Starts the thread for the file system of a file.
    pub fn start(file: File) -> Self {
        let (requests, received) = channel();
        let failure = Arc::new(Mutex::new(None));
        let told = Arc::clone(&failure);
        let thread = std::thread::spawn(move || sync_in_groups(&received, &told, || sync_file_system(&file)));
        Self { requests: Some(requests), thread: Some(thread), failure }
    }

    /// Asks for a sync. Gives the error of an earlier one, such as a disk that is full or broken.
    pub fn request(&self) -> io::Result<()> {
        if let Some(error) = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        // The thread ends only after the sender was dropped.
        let _ = self.requests.as_ref().map(|requests| requests.send(()));
        Ok(())
    }
}

impl Drop for GroupSync {
    fn drop(&mut self) {
        drop(self.requests.take());
        // The last group is on disk before the log is closed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn sync_in_groups(
    received: &Receiver<()>,
    failure: &Mutex<Option<io::Error>>,
    mut sync: impl FnMut() -> io::Result<()>,
) {
    while received.recv().is_ok() {
        let until = Instant::now() + LONGEST_WAIT;
        while received.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
        if let Err(error) = sync() {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }
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
    use super::*;

    #[test]
    fn many_trials_share_a_sync_and_the_last_is_never_missed() {
        let (requests, received) = channel();
        let failure = Mutex::new(None);
        let mut syncs = 0;
        std::thread::scope(|scope| {
            let (failure, syncs) = (&failure, &mut syncs);
            scope.spawn(move || {
                sync_in_groups(&received, failure, || {
                    *syncs += 1;
                    Ok(())
                })
            });
            for _ in 0..1000 {
                requests.send(()).expect("it listens");
            }
            std::thread::sleep(2 * LONGEST_WAIT);
            requests.send(()).expect("it listens");
            drop(requests);
        });
        assert!((2..=20).contains(&syncs), "{syncs} syncs of 1001 trials");
    }

    #[test]
    fn a_failed_sync_is_told_to_the_next_trial() {
        let (requests, received) = channel();
        let failure = Mutex::new(None);
        requests.send(()).expect("it listens");
        drop(requests);
        sync_in_groups(&received, &failure, || Err(io::ErrorKind::StorageFull.into()));
        let told = failure.into_inner().expect("unpoisoned").expect("an error");
        assert_eq!(told.kind(), io::ErrorKind::StorageFull);
    }
}
