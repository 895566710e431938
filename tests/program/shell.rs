//! What helps in a shell: completions and manual pages.

use crate::common::Project;

#[test]
fn every_shell_gets_a_script_that_knows_the_commands() {
    let project = Project::new(&[]);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = project.run(&["completions", shell]).exits(0).stdout;
        for word in ["practicum", "run", "compare", "max-cost"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        for hidden in ["builtin-agent", "confined"] {
            assert!(!script.contains(hidden), "{shell}: {hidden}");
        }
    }
    let refused = project.run(&["completions", "dosh"]).exits(2);
    assert!(refused.stderr.contains("bash"), "{}", refused.stderr);
}

/// Bash itself says what it would offer.
#[test]
fn bash_completes_a_command_and_a_flag() {
    let project = Project::new(&[]);
    project.write("complete.bash", &project.run(&["completions", "bash"]).exits(0).stdout);
    for (words, offered) in [("practicum comp", "compare"), ("practicum run --max-c", "--max-cost")] {
        let last = words.rsplit(' ').next().expect("a word");
        let asks = format!(
            "source ./complete.bash; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _practicum practicum {last} x; echo \"${{COMPREPLY[@]}}\""
        );
        let output = std::process::Command::new("bash")
            .args(["--norc", "-c", &asks])
            .current_dir(project.path())
            .output();
        let offers = String::from_utf8(output.expect("bash starts").stdout).expect("text");
        assert!(offers.split_whitespace().any(|offer| offer == offered), "{words}: {offers}");
    }
}

#[test]
fn the_manual_is_printed_and_written_page_by_page() {
    let project = Project::new(&[]);
    let page = project.run(&["man"]).exits(0).stdout;
    assert!(page.contains(".TH practicum 1"), "{page}");
    assert!(page.contains("practicum\\-compare(1)"), "{page}");

    project.run(&["man", "-o", "share/man1"]).exits(0);
    let folder = project.path().join("share/man1");
    for line in page.lines().filter(|line| line.starts_with("practicum\\-")) {
        let name = line.replace("\\-", "-").replace("(1)", ".1");
        let text =
            std::fs::read_to_string(folder.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(text.contains(".SH SYNOPSIS"), "{name}");
    }
    let run = std::fs::read_to_string(folder.join("practicum-run.1")).expect("the page of run");
    assert!(run.contains("max\\-cost"), "{run}");
    let hidden = std::fs::read_dir(&folder).expect("pages").flatten();
    let hidden = hidden.filter(|page| page.file_name().to_string_lossy().contains("builtin"));
    assert_eq!(hidden.count(), 0);
}

#[test]
fn a_manual_that_cannot_be_written_is_an_error_in_words() {
    let project = Project::new(&[("a-file", "")]);
    let ran = project.run(&["man", "-o", "a-file/man1"]).exits(2);
    assert!(ran.stderr.contains("cannot write to a-file/man1"), "{}", ran.stderr);
}
