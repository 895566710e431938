//! Watches what the processes of a trial use, while they run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::control_group::ControlGroup;
use super::process_tree::TrialProcesses;
use crate::workspace::limits::TrialLimits;

/// The shortest and the longest pause between two looks at the processes and at the disk. Processes multiply faster
/// than files.
const PROCESS_PAUSES: (Duration, Duration) = (Duration::from_millis(30), Duration::from_millis(250));
const DISK_PAUSES: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(60));

/// How many times longer than a look the pause after it is, so that watching takes little of a processor.
const PAUSE_PER_LOOK: u32 = 10;

/// Waits until a limit is exceeded, and says which.
pub async fn wait_until_exceeded(
    limits: &TrialLimits,
    processes: &TrialProcesses,
    group: Option<&Arc<ControlGroup>>,
) -> String {
    tokio::select! {
        why = look_again_and_again(PROCESS_PAUSES, || {
            let (limits, processes, group) = (limits.clone(), processes.clone(), group.cloned());
            move || group.and_then(|group| group.excess(&limits.limits)).or_else(|| processes.excess(&limits))
        }) => why,
        why = look_again_and_again(DISK_PAUSES, || {
            let limits = limits.clone();
            move || limits.disk_excess()
        }) => why,
    }
}

async fn look_again_and_again<L>(
    (shortest, longest): (Duration, Duration),
    make_look: impl Fn() -> L,
) -> String
where
    L: FnOnce() -> Option<String> + Send + 'static,
{
    let mut pause = shortest;
    loop {
        tokio::time::sleep(pause).await;
        let began = Instant::now();
        // A look that panicked says nothing; the next one follows.
        if let Ok(Some(why)) = tokio::task::spawn_blocking(make_look()).await {
            return why;
        }
        pause = (began.elapsed() * PAUSE_PER_LOOK).clamp(shortest, longest);
    }
}
