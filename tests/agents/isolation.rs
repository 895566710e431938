//! Trials that run at the same time, each looking for the other.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Project, sandbox_means};

const EVAL: &str = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [curious], timeout: 60s }
cases:
  - { id: one, prompt: one, checks: [{ contains: done }] }
  - { id: two, prompt: two, checks: [{ contains: done }] }
";

/// Leaves its mark in every place of its own, says where these are, and waits to be told where the
/// other's are. Then it looks for the other's mark in its own places, goes to the other's, and stays
/// until both have looked.
const AGENT: &str = r#"
await() { for _ in {1..1000}; do [ -e "$1" ] && break; sleep 0.02; done; }
mine=mark-of-$1; other=$([ "$1" = one ] && echo mark-of-two || echo mark-of-one)
places=("$PWD" "$HOME" "$TMPDIR" "$PWD/.agents/skills/greeter")
for place in "${places[@]}"; do echo "$mine" > "$place/mark.txt"; done
echo "$mine" >> .agents/skills/greeter/SKILL.md
printf '%s\n' "${places[@]}" > where.part && mv where.part where.txt
await told.txt
grep -rq "$other" "${places[@]}" && echo "found the other's mark at home"
while read -r place; do
  grep -q "$other" "$place/mark.txt" 2>/dev/null && echo "read $place"
  (echo was here > "$place/visitor.txt") 2>/dev/null && echo "wrote $place"
done < told.txt
touch looked.txt
await leave.txt
echo done
"#;

#[test]
fn two_parallel_trials_cannot_see_each_other() {
    let (own, others) = at_the_same_time("off", "");
    for (said, others) in own.iter().zip(&others) {
        // Nothing but walls keeps an agent from a path that it is told, which shows that it tries.
        let reached = others.iter().map(|place| format!("read {place}\nwrote {place}\n"));
        assert_eq!(*said, reached.collect::<String>() + "done");
    }
    for means in sandbox_means() {
        let (own, _) = at_the_same_time("auto", means);
        assert_eq!(own, ["done", "done"], "{means}");
    }
}

/// What each of two trials said, and the places of the other that it was told of.
fn at_the_same_time(sandbox: &str, means: &str) -> ([String; 2], [Vec<String>; 2]) {
    let project = Project::new(&[
        ("greeter/SKILL.md", "---\nname: greeter\ndescription: Greets.\n---\n"),
        ("evals/e.practicum.yaml", EVAL),
        ("agent/curious.sh", AGENT),
    ]);
    let agent = project.path().join("agent/curious.sh");
    project.write(
        "practicum.toml",
        &format!(
            "[agents.curious]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\nskills_dir = \".agents/skills\"\n",
            agent.display()
        ),
    );
    let rooms = tempfile::tempdir().expect("a folder");
    let mut command = project.practicum(&["run", "evals", "-j", "2", "--sandbox", sandbox]);
    command.env("TMPDIR", rooms.path()).env("PRACTICUM_SANDBOX_MEANS", means);
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("practicum starts");

    // Once both have said where they are, both are running.
    let places = |text: String| text.lines().map(str::to_owned).collect::<Vec<String>>();
    let [one, two] = both(rooms.path(), "where.txt").map(places);
    assert!(one.iter().all(|place| !two.contains(place)), "{one:?} {two:?}");
    for (workspace, others) in [(&one[0], &two), (&two[0], &one)] {
        tell(workspace, "told.txt", &(others.join("\n") + "\n"));
    }
    both(rooms.path(), "looked.txt");
    for workspace in [&one[0], &two[0]] {
        tell(workspace, "leave.txt", "");
    }
    let ended = running.wait_with_output().expect("practicum ends");
    assert!(ended.status.success(), "{means}: {}", String::from_utf8_lossy(&ended.stderr));
    let skill = std::fs::read_to_string(project.path().join("greeter/SKILL.md")).expect("the skill");
    assert!(!skill.contains("mark-of"), "the skill that rooms get copies of is nobody's: {skill}");
    let said = ["one", "two"].map(|case| output(&project, case));
    (said, [two, one])
}

/// What is in this file of trial one and of trial two, once both have written it.
fn both(rooms: &Path, file: &str) -> [String; 2] {
    let deadline = Instant::now() + Duration::from_secs(20);
    let read = |workspace: &Path, file: &str| std::fs::read_to_string(workspace.join(file));
    loop {
        let of = |mark: &str| {
            workspaces(rooms).find(|room| read(room, "mark.txt").is_ok_and(|text| text.trim() == mark))
        };
        let written =
            ["mark-of-one", "mark-of-two"].map(|mark| of(mark).and_then(|room| read(&room, file).ok()));
        if let [Some(one), Some(two)] = written {
            return [one, two];
        }
        assert!(Instant::now() < deadline, "no {file} of two trials at a time: {written:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Puts a file into a workspace, whole from the first moment.
fn tell(workspace: &str, file: &str, text: &str) {
    let part = Path::new(workspace).join("part");
    std::fs::write(&part, text).expect("written");
    std::fs::rename(&part, part.with_file_name(file)).expect("in place");
}

/// `<workspaces>/<run>/<one of sixteen folders>/<trial>/workspace`
fn workspaces(rooms: &Path) -> impl Iterator<Item = PathBuf> {
    let inside =
        |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    inside(rooms.to_owned()).flat_map(inside).flat_map(inside).map(|room| room.join("workspace"))
}

fn output(project: &Project, case: &str) -> String {
    let trials = std::fs::read_dir(project.only_run().join("trials")).expect("trials").flatten();
    let mut of_case = trials.filter(|trial| trial.file_name().to_string_lossy().starts_with(case));
    let trial = of_case.next().expect("the case's trial").path();
    std::fs::read_to_string(trial.join("output.txt")).expect("output")
}
