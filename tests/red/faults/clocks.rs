//! Clocks that jump while a run goes on, and records whose times are wrong.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::common::Ran;

/// A library that moves the wall clock of a program by as many seconds as a file says.
const SHIFTED_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    const char *path = getenv("TEST_CLOCK_SHIFT");
    long shift = 0;
    FILE *file = path && clock == CLOCK_REALTIME ? fopen(path, "r") : NULL;
    if (file) {
        if (fscanf(file, "%ld", &shift) == 1) now->tv_sec += shift;
        fclose(file);
    }
    return result;
}
"#;

const YEARS: i64 = 365 * 24 * 3600;

/// Compiles the library. `None` if this machine has no C compiler.
fn shifted_clock(folder: &Path) -> Option<PathBuf> {
    let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
    std::fs::write(&source, SHIFTED_CLOCK).expect("written");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    compiled.is_ok_and(|status| status.success()).then_some(library)
}

#[test]
fn a_jump_of_the_clock_changes_a_result() {
    let jumps = [20 * YEARS, 3600, -3600, -20 * YEARS, -80 * YEARS];
    for jump in jumps {
        let project = super::project();
        let Some(library) = shifted_clock(project.path()) else {
            eprintln!("skipped: there is no C compiler to make a clock that jumps");
            return;
        };
        let shift = project.path().join("shift");
        let script = format!("[ $1 = 2 ] && echo {jump} > {}\necho \"done $1.\"\n", shift.display());
        super::set_agent(&project, &script);
        let with_clock = |args: &[&str]| {
            let mut command = project.practicum(args);
            command.env("LD_PRELOAD", &library).env("TEST_CLOCK_SHIFT", &shift);
            let ran = Ran::of(command.output().expect("starts"));
            super::ended_well(&ran, &format!("jump by {jump} s, {args:?}"));
            ran
        };
        let summary = with_clock(&["run", "evals", "-j", "1", "--json"]).exits(1).json();
        let expected: Vec<[u64; 3]> =
            (0..super::CASES).map(|n| if n == 5 { [0, 1, 0] } else { [1, 0, 0] }).collect();
        let found: Vec<[u64; 3]> = super::results(&summary).into_iter().map(|(_, counts)| counts).collect();
        assert_eq!(found, expected, "{jump}");
        let seconds = summary["seconds"].as_f64().expect("a duration");
        assert!((0.0..600.0).contains(&seconds), "{jump}: {seconds} s");
        with_clock(&["show", "latest"]);
        with_clock(&["runs"]);
        with_clock(&["grade", "latest"]).exits(1);
        // The next run is made at the other time, and both are found.
        with_clock(&["run", "evals", "--json"]).exits(1);
        std::fs::write(&shift, "0").expect("written");
        with_clock(&["clean", "--keep", "1"]);
    }
    println!("{} jumps of the clock: equal results", jumps.len());
}

#[test]
fn files_of_a_record_are_older_or_newer_than_time_allows() {
    let day = Duration::from_secs(24 * 3600);
    let times = [
        SystemTime::UNIX_EPOCH,
        SystemTime::UNIX_EPOCH - day,
        SystemTime::now() + day * 365 * 50,
        SystemTime::now() - day * 365,
    ];
    let original = super::project();
    original.run(&["run", "evals"]).exits(1);
    let run = original.only_run();
    for (n, name) in ["run.json", "events.jsonl", "summary.json", "."].iter().enumerate() {
        for time in times {
            let file = std::fs::File::open(run.join(name)).expect("a file");
            file.set_modified(time).expect("set");
            for args in [["show", "latest"], ["runs", "."], ["report", "latest"]] {
                super::ended_well(&original.run(&args), &format!("{name} {time:?} {args:?}"));
            }
        }
        assert!(n < 4);
    }
    original.run(&["grade", "latest"]).exits(1);
    println!("16 wrong times of files: no command failed");
}
