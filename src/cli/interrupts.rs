//! Handles the signals of a terminal, a CI or a shutdown that ask the program to stop.

use practicum_workers::WorkerStop;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::pipeline::StopSignal;
use crate::workspace::run::CancelToken;

/// How urgent a request to stop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopRequest {
    /// Ctrl-C: a user is there and may press it again.
    Interrupted,
    /// A termination or a hang-up: the sender will soon kill the program, or is already gone.
    Terminated,
}

struct StopRequests {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Option<Signal>,
}

impl StopRequests {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            // Under nohup, the program must ignore hang-ups.
            hang_up: match is_ignored(SignalKind::hangup()) {
                true => None,
                false => Some(signal(SignalKind::hangup())?),
            },
        })
    }

    async fn next_request(&mut self) -> StopRequest {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => StopRequest::Interrupted,
            _ = self.terminate.recv() => StopRequest::Terminated,
            _ = hang_up => StopRequest::Terminated,
        }
    }
}

/// Says whether this process was started with a signal ignored.
#[cfg(not(target_os = "macos"))]
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}

/// Says whether this process was started with a signal ignored.
#[cfg(target_os = "macos")]
fn is_ignored(kind: SignalKind) -> bool {
    let mut current = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    #[expect(unsafe_code, reason = "there is no safe way to ask")]
    // SAFETY: without a new action the call only writes the current one, into memory that is valid if it is zero.
    let handler = unsafe {
        libc::sigaction(kind.as_raw_value(), std::ptr::null(), current.as_mut_ptr());
        current.assume_init().sa_sigaction
    };
    handler == libc::SIG_IGN
}

/// Waits for a request to stop the program.
pub async fn wait_for_stop_request() -> std::io::Result<()> {
    StopRequests::listen()?.next_request().await;
    Ok(())
}

/// Stops a run on request. The first Ctrl-C lets running trials finish. A second one, or any other signal, stops
/// at once. In both cases the record is complete.
///
/// Listening begins with this call, not when the future is first polled: on a busy machine an agent may already
/// run by then, and a signal in between would be lost.
pub fn stop_on_requests(stop: StopSignal) -> impl Future<Output = ()> {
    let wishes = StopRequests::listen();
    async move {
        let Ok(mut wishes) = wishes else { return };
        if wishes.next_request().await == StopRequest::Interrupted {
            say!("stopping after what runs now; once more to stop at once");
            stop.stop_after_running();
            wishes.next_request().await;
        }
        stop.stop_now();
    }
}

/// Asks a worker to end on request: the first time after the trials that run, the second time at once. A worker that is
/// terminated gives its trials back at once, because it will soon be killed. The future never ends.
pub fn next_worker_stop(stop: watch::Sender<WorkerStop>) -> impl Future<Output = ()> {
    let requests = StopRequests::listen();
    async move {
        if let Ok(mut requests) = requests {
            if requests.next_request().await == StopRequest::Interrupted {
                say!("ending after what runs now; once more to give it back to the others");
                stop.send_replace(WorkerStop::AfterRunning);
                requests.next_request().await;
            }
            stop.send_replace(WorkerStop::Now);
        }
        std::future::pending().await
    }
}

/// Gives a token that a request to stop cancels, for work that has no runtime of its own yet.
pub fn cancel_on_request() -> CancelToken {
    let cancel = CancelToken::default();
    let token = cancel.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime
            && runtime.block_on(wait_for_stop_request()).is_ok()
        {
            token.cancel();
        }
    });
    cancel
}
