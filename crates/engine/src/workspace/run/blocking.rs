//! Runs work that blocks its thread, on any tokio runtime.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs work that blocks. On a runtime with several threads, other tasks go on meanwhile. On a runtime with a
/// single thread they wait, because no other thread could run them.
pub fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

#[cfg(test)]
mod tests {
    use super::run_blocking;

    #[test]
    fn blocking_work_runs_on_every_runtime_and_on_none() {
        assert_eq!(run_blocking(|| 1), 1);
        for mut builder in
            [tokio::runtime::Builder::new_current_thread(), tokio::runtime::Builder::new_multi_thread()]
        {
            let runtime = builder.build().expect("a runtime");
            assert_eq!(runtime.block_on(async { run_blocking(|| 2) }), 2);
        }
    }
}
