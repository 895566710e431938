//! What a terminal, a CI or a shutdown says to a program that is to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::pipeline::Stop;
use crate::run::Cancel;

/// How urgent it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// Ctrl-C: somebody is there, and may say it again.
    Interrupted,
    /// Whoever sends these kills what is still there a moment later, or is already gone.
    Terminated,
}

struct Wishes {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Option<Signal>,
}

impl Wishes {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            // Under nohup it is meant to be ignored.
            hang_up: match is_ignored(SignalKind::hangup()) {
                true => None,
                false => Some(signal(SignalKind::hangup())?),
            },
        })
    }

    async fn next(&mut self) -> Wish {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Wish::Interrupted,
            _ = self.terminate.recv() => Wish::Terminated,
            _ = hang_up => Wish::Terminated,
        }
    }
}

/// Whether this process was started with a signal ignored.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}

/// Waits until somebody wants the program to end.
pub async fn any() -> std::io::Result<()> {
    Wishes::listen()?.next().await;
    Ok(())
}

/// Ctrl-C once: let what runs finish. Anything else, or twice: stop now. Either way the record is whole.
///
/// Listening begins with the call and not when the future is first polled: on a busy machine an agent may
/// already run by then, and a signal that arrives in between would be lost.
pub fn heed(stop: Stop) -> impl Future<Output = ()> {
    let wishes = Wishes::listen();
    async move {
        let Ok(mut wishes) = wishes else { return };
        if wishes.next().await == Wish::Interrupted {
            say!("stopping after what runs now; once more to stop at once");
            stop.after_running();
            wishes.next().await;
        }
        stop.now();
    }
}

/// The same for work that has no runtime of its own yet.
pub fn heed_aside() -> Cancel {
    let cancel = Cancel::default();
    let told = cancel.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime
            && runtime.block_on(any()).is_ok()
        {
            told.cancel();
        }
    });
    cancel
}
