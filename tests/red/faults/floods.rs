//! Agents that write more than anyone can read.

use crate::run_bounded;

#[test]
fn a_flood_takes_the_memory_or_counts_as_a_pass() {
    let floods = [
        ("200 MB in one line", "head -c 200000000 /dev/zero | tr '\\0' x; echo; echo done 0."),
        ("a million lines", "yes 'a line of the agent' | head -n 1000000; echo done 0."),
        ("errors without end", "yes 'an error' | head -c 200000000 >&2; echo done 0."),
        ("nothing but nulls", "head -c 50000000 /dev/zero; echo; echo done 0."),
    ];
    for (name, script) in floods {
        let project = super::project();
        super::set_agent(&project, script);
        let ran = run_bounded(&project, &["run", "evals", "--case", "case-0", "--json"]);
        super::ended_well(&ran, name);
        let [passed, failed, not_scored] = super::results(&ran.json())[0].1;
        assert_eq!(failed, 0, "{name}: {}", ran.stderr);
        assert_eq!(passed + not_scored, 1, "{name}");
        let again = run_bounded(&project, &["grade", "latest", "--json"]);
        let graded = super::results(&again.json()["summary"])[0].1;
        assert_eq!(graded, [passed, failed, not_scored], "{name}: graded again");
    }
    println!("{} floods: bounded, and graded again alike", floods.len());
}
