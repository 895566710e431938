//! Gives changed files to everything that reads files from outside, and looks for panics, stack overflows, too much
//! memory and inputs that take too long.
//!
//! `cargo test --test fuzz` replays the seeds and then changes them at random for a minute in all, always alike.
//! `cargo test --test fuzz -- --seconds 600 records` changes those of one reader for ten minutes; another number of
//! seconds makes other changes. Seeds are the fixtures and examples of this repository, and `fuzz/found/READER/`:
//! what once broke a reader. An input that breaks one is written to `target/fuzz/` and named.

mod mutations;
mod readers;
mod seeds;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mutations::Random;
use readers::{READERS, Reader};
use rustix::process::{Resource, Rlimit, setrlimit};

/// The name of the variable that makes this program work on one reader.
const READER_VARIABLE: &str = "PRACTICUM_FUZZ_READER";

/// The time of all readers together, unless the user gives a time for each.
const DEFAULT_SECONDS: u64 = 60;

/// The longest time that a reader may take for one input.
const SLOW: Duration = Duration::from_secs(5);

/// The address space of a reader. No input is larger than [`mutations::LARGEST_INPUT`].
const MEMORY: u64 = 2 << 30;

/// The stack of a reader, like that of a worker thread of the program.
const STACK: usize = 2 << 20;

/// Readers that are tried at the same time.
const AT_ONCE: usize = 2;

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(READER_VARIABLE) {
        return work_on(&name);
    }
    let mut args = std::env::args().skip(1);
    let (mut seconds, mut wanted) = (None, Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seconds" => seconds = args.next().and_then(|seconds| seconds.parse::<u64>().ok()),
            "--list" => return ExitCode::SUCCESS,
            // Options of the usual test harness.
            _ if arg.starts_with('-') => {}
            _ => wanted.push(arg),
        }
    }
    let chosen: Vec<&Reader> = READERS
        .iter()
        .filter(|reader| {
            wanted.is_empty() || wanted.iter().any(|word| reader.name.contains(word) || word == "fuzz")
        })
        .collect();
    let each = seconds.unwrap_or(DEFAULT_SECONDS * AT_ONCE as u64 / READERS.len() as u64);
    match run_all(&chosen, each) {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Tries each reader in a process of its own. Gives the number of those that broke.
fn run_all(chosen: &[&Reader], seconds: u64) -> usize {
    let (next, broken) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(reader) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    broken.fetch_add(usize::from(!run_one(reader.name, seconds)), Ordering::Relaxed);
                }
            });
        }
    });
    broken.into_inner()
}

fn found_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("fuzz");
    std::fs::create_dir_all(&folder).expect("a folder for what is found");
    folder
}

/// Says whether a reader survived. Its process writes each input to a file before it reads it.
fn run_one(name: &str, seconds: u64) -> bool {
    let current = found_folder().join(format!("{name}.current"));
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    let status =
        command.env(READER_VARIABLE, name).env("PRACTICUM_FUZZ_SECONDS", seconds.to_string()).status();
    if status.as_ref().is_ok_and(std::process::ExitStatus::success) {
        let _ = std::fs::remove_file(current);
        return true;
    }
    let kept = found_folder().join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::rename(&current, &kept);
    eprintln!("fuzz: {name} broke ({status:?}) on {}", kept.display());
    eprintln!(
        "fuzz: mend it, and put the input into fuzz/found/{name}/ with a name that says what was wrong"
    );
    false
}

/// The processor time of the reading thread when the current input began, in milliseconds.
static BEGAN: AtomicU64 = AtomicU64::new(0);

/// The processor time after which an input counts as one that never ends.
const ENDLESS: Duration = Duration::from_secs(30);

/// Reads all seeds and then changed ones, until the time is over.
fn work_on(name: &str) -> ExitCode {
    let Some(reader) = READERS.iter().find(|reader| reader.name == name) else { return ExitCode::FAILURE };
    let limit = Rlimit { current: Some(MEMORY), maximum: Some(MEMORY) };
    setrlimit(Resource::As, limit).expect("a limit of memory");
    let (send, reading_thread) = std::sync::mpsc::channel();
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        let _ = send.send(std::fs::read_link("/proc/thread-self").unwrap_or_default());
        read_inputs(reader);
    });
    let worker = worker.expect("a thread");
    let thread = Path::new("/proc").join(reading_thread.recv().unwrap_or_default());
    while !worker.is_finished() {
        std::thread::sleep(Duration::from_millis(20));
        let began = Duration::from_millis(BEGAN.load(Ordering::SeqCst));
        if cpu_time(&thread).saturating_sub(began) > ENDLESS {
            eprintln!("fuzz: {name} does not end");
            std::process::exit(3);
        }
    }
    if worker.join().is_err() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn read_inputs(reader: &Reader) {
    let (started, thread) = (Instant::now(), Path::new("/proc/thread-self"));
    let seconds = std::env::var("PRACTICUM_FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let until = Duration::from_secs(seconds.unwrap_or(1));
    let current = found_folder().join(format!("{}.current", reader.name));
    let scratch = tempfile::tempdir().expect("a folder");
    let seeds = (reader.seeds)(scratch.path());
    assert!(!seeds.is_empty(), "{} has no seeds", reader.name);
    let mut inputs: u64 = 0;
    let mut read = |seed: &Path, bytes: &[u8]| {
        let began = cpu_time(thread);
        BEGAN.store(u64::try_from(began.as_millis()).unwrap_or(0), Ordering::SeqCst);
        // The name of the seed comes first, because some readers look at the names of files.
        let named = [seed.display().to_string().as_bytes(), b"\n", bytes].concat();
        std::fs::write(&current, named).expect("written");
        (reader.read)(scratch.path(), seed, bytes);
        let took = cpu_time(thread).saturating_sub(began);
        assert!(took < SLOW, "{} takes {took:?}", reader.name);
        inputs += 1;
    };
    seeds.iter().for_each(|(path, bytes)| read(path, bytes));
    let replayed = seeds.len();
    let mut random = Random::new(until.as_secs());
    while started.elapsed() < until {
        let (path, bytes) = &seeds[random.below(seeds.len())];
        let other = &seeds[random.below(seeds.len())].1;
        read(path, &mutations::change(bytes, other, &mut random));
    }
    println!("fuzz: {}: {replayed} seeds, {} changed inputs", reader.name, inputs - replayed as u64);
}

/// The processor time of a thread, by its folder below `/proc`; zero where there is none. A loaded machine makes the time
/// on a clock longer, and this not.
fn cpu_time(thread: &Path) -> Duration {
    let text = std::fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}
