//! Work that is shared by several threads, as many as the machine lets start.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Applies a function to every item on as many threads as there are cores, and gives the results in order. Some items take
/// much longer than others, so each thread takes the next item when it has finished one. The calling thread works too, so
/// the work is done even if no other thread can be started.
pub fn map_in_parallel<T: Sync, R: Send>(items: &[T], one: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(items.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mine = std::iter::from_fn(|| {
            let index = next.fetch_add(1, Ordering::Relaxed);
            items.get(index).map(|item| (index, one(item)))
        });
        mine.collect::<Vec<_>>()
    };
    let mut done = std::thread::scope(|scope| {
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads).filter_map(start).collect();
        let mut done = work();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
