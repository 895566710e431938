//! Disks without room, for the records and for the workspaces.
//!
//! A small file system in memory is mounted in a mount namespace of the command, so nothing is left of it afterwards.

use std::process::Command;

use crate::common::{Project, Ran};

/// Limits of a file system: its size, and the number of its files.
const FULL_DISKS: [&str; 6] = ["size=24k", "size=48k", "size=96k", "size=160k", "size=300k", "size=600k"];
const FULL_INODES: [&str; 6] =
    ["nr_inodes=8", "nr_inodes=16", "nr_inodes=24", "nr_inodes=32", "nr_inodes=48", "nr_inodes=64"];

/// Runs a shell script with mounts of its own. `None` if this machine does not allow that.
fn with_mounts(project: &Project, script: &str) -> Option<Ran> {
    let program = project.practicum(&[]);
    let mut command = Command::new("unshare");
    let is_root = rustix::process::geteuid().is_root();
    command.args(if is_root { &["-m"][..] } else { &["-rm"] });
    let mut trial = Command::new(command.get_program());
    let works = trial.args(command.get_args()).arg("true").status();
    if !works.is_ok_and(|status| status.success()) {
        eprintln!("skipped: file systems cannot be mounted here");
        return None;
    }
    command.args(["bash", "-c", &format!("set -u; practicum={:?}\n{script}", program.get_program())]);
    command.current_dir(project.path()).env_clear();
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = Ran::of(command.output().expect("unshare starts"));
    // The scripts end with this code if the first mount is refused.
    if ran.code == 77 {
        eprintln!("skipped: file systems cannot be mounted here: {}", ran.stderr);
        return None;
    }
    Some(ran)
}

/// The part of a script's output between two marks.
fn part<'o>(ran: &'o Ran, name: &str) -> &'o str {
    let marked = ran.stdout.split("=== ").find(|part| part.starts_with(name));
    marked.unwrap_or_else(|| panic!("no {name}: {}\n{}", ran.stdout, ran.stderr))[name.len()..].trim()
}

#[test]
fn a_pass_counts_that_a_full_disk_lost() {
    let mut stopped = 0;
    for limit in FULL_DISKS.into_iter().chain(FULL_INODES) {
        let project = super::project();
        std::fs::create_dir(project.path().join(".practicum")).expect("a folder");
        let script = format!(
            "mount -t tmpfs -o mode=700,{limit} none .practicum || exit 77
            $practicum run evals -j 2 --json > first.json; echo === first $?
            echo === stored $(ls -d .practicum/runs/*/trials/*/digest.json 2>/dev/null | wc -l)
            cp -a .practicum kept; umount .practicum; cp -a kept/. .practicum
            id=$(ls .practicum/runs 2>/dev/null | head -n 1)
            $practicum show latest > /dev/null; echo === show $?
            if [ -e .practicum/runs/$id/run.json.mark ] && [ ! -e .practicum/runs/$id/summary.json ]; then
                $practicum run --resume latest --json > second.json; echo === second $?
            else
                $practicum run evals --json > second.json; echo === second $?
            fi\n"
        );
        let Some(ran) = with_mounts(&project, &script) else { return };
        let about = format!("{limit}: {}\n{}", ran.stdout, ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{about}");
        let read = |name: &str| {
            let text = std::fs::read_to_string(project.path().join(name)).unwrap_or_default();
            serde_json::from_str::<serde_json::Value>(&text).ok()
        };
        let stored: u64 = part(&ran, "stored").parse().expect("a count");
        let passed: u64 = read("first.json")
            .map(|summary| {
                super::results(&summary).iter().map(|(_, [passed, failed, _])| passed + failed).sum()
            })
            .unwrap_or(0);
        assert!(passed <= stored, "{about}: {passed} results, but {stored} trials are stored");
        assert_ne!(part(&ran, "first"), "0", "{about}: one case fails");
        stopped += u32::from(passed < super::CASES as u64);
        // With room, the run is completed, and its results are those of any other run.
        assert_eq!(part(&ran, "second"), "1", "{about}");
        let second = read("second.json").unwrap_or_else(|| panic!("no summary: {about}"));
        let sum: [u64; 3] = super::results(&second)
            .iter()
            .fold([0; 3], |sum, (_, counts)| std::array::from_fn(|at| sum[at] + counts[at]));
        assert_eq!(sum, [5, 1, 0], "{about}");
    }
    println!(
        "12 full disks for records: {stopped} runs lost results, none of them counted, all completed later"
    );
}

#[test]
fn a_full_disk_for_workspaces_counts_against_a_skill() {
    let limits = ["size=16k", "size=64k", "size=256k", "nr_inodes=4", "nr_inodes=12", "nr_inodes=40"];
    for limit in limits {
        let project = super::project();
        let given = "x".repeat(100_000);
        for n in 0..30 {
            project.write(&format!("evals/given/{n}.txt"), &given[..3_000]);
        }
        let evals = std::fs::read_to_string(project.path().join("evals/e.practicum.yaml")).expect("evals");
        let evals = evals.replace("prompt:", "files: [{ from: given, to: given }], prompt:");
        project.write("evals/e.practicum.yaml", &evals);
        project.write("work/.keep", "");
        let script = format!(
            "mount -t tmpfs -o {limit} none work || exit 77
            TMPDIR=$PWD/work $practicum run evals -j 1 --no-cache --json > first.json; echo === first $?
            umount work
            TMPDIR=$PWD/work $practicum run evals -j 1 --no-cache --json > second.json; echo === second $?
            echo === left $(ls work | grep -c practicum-)\n"
        );
        let Some(ran) = with_mounts(&project, &script) else { return };
        let about = format!("{limit}: {}\n{}", ran.stdout, ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{about}");
        // A workspace that could not be staged is neither a pass nor a fail.
        let text = std::fs::read_to_string(project.path().join("first.json")).unwrap_or_default();
        if let Ok(summary) = serde_json::from_str::<serde_json::Value>(&text) {
            let counts = super::results(&summary);
            assert!(
                counts.iter().all(|(id, [_, failed, _])| id == "case-5" || *failed == 0),
                "{about}{counts:?}"
            );
        }
        assert!(["1", "2", "3"].contains(&part(&ran, "first")), "{about}");
        assert_eq!(part(&ran, "second"), "1", "{about}");
        assert_eq!(part(&ran, "left"), "0", "{about}");
    }
    println!("{} full disks for workspaces: no failure of a skill", limits.len());
}
