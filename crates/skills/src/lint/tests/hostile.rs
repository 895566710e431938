//! Tests of the linter with hostile skills.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

#[test]
fn nothing_opened_is_outside_the_folder_or_unbounded() {
    let began = Instant::now();
    let scratch = Scratch::new(&[("secret.md", "[further](x.md)"), ("x.md", "")]);
    let huge = scratch.write("huge/SKILL.md", &vec![b'x'; 50 * 1024 * 1024]);
    let linted = lint_skill_file(&huge);
    assert_eq!(linted.diagnostics.iter().next().map(|problem| problem.code), Some("unreadable-file"));
    assert!(linted.text.is_empty());
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        let file = scratch
            .write("good/SKILL.md", with_body("[a](out.md) [b](loop/loop/x.md) [c](circle)").as_bytes());
        symlink("../secret.md", scratch.path("good/out.md")).expect("link");
        symlink(".", scratch.path("good/loop")).expect("link");
        symlink("circle", scratch.path("good/circle")).expect("link");
        let codes: Vec<&str> =
            lint_skill_file(&file).diagnostics.iter().map(|problem| problem.code).collect();
        assert_eq!(codes, ["link-outside", "link-broken"]);
    }
    // Text made to be slow to parse. A parser that takes quadratic time would take hours at this size.
    const SIZE: usize = 256 * 1024;
    let lint_text = |text: &str| lint_draft(SkillFileDraft::from_text(&scratch.path("good/SKILL.md"), text));
    for pattern in [
        "`scripts/a.py` ",
        "[`scripts/a.py`](x.md) ",
        "![[a](b.md)](c.md)",
        "```sh\n./scripts/a.sh\n```\n",
        "[",
        "`",
        "*a_ ",
        "[a](",
        "![",
        "<a ",
        "> ",
        "|a",
        "- ",
        "(1) then ",
        "scripts/",
        "\"'",
        "[a]: <",
    ] {
        let text = pattern.repeat(SIZE / pattern.len());
        lint_text(&with_body(&text));
        lint_text(&with_description(&format!("'{}'", text.replace('\'', "''"))));
        lint_text(&with_front(&text));
    }
    assert!(began.elapsed() < Duration::from_secs(120), "took {:?}", began.elapsed());
}

#[cfg(unix)]
#[test]
fn a_pipe_is_never_waited_for() {
    let scratch = Scratch::new(&[]);
    let file = scratch.write("good/SKILL.md", with_body("[a](pipe.md) `./scripts/pipe.sh x`").as_bytes());
    std::fs::create_dir(scratch.path("good/scripts")).expect("create");
    for pipe in ["good/pipe.md", "good/scripts/pipe.sh"] {
        let made = std::process::Command::new("mkfifo").arg(scratch.path(pipe)).status().expect("mkfifo");
        assert!(made.success());
    }
    lint_skill_file(&file);
}

proptest! {
    #[test]
    fn never_panics(text in "(---\r?\n)?([a-z]+: [a-z<>\"'|>\\-ü\\[\\]]*\n){0,4}(---\n)?[a-z\\[\\]()`|#./ \nü\u{feff}$*<>-]{0,200}") {
        let linted = lint_draft(SkillFileDraft::from_text(Path::new("/nowhere/good/SKILL.md"), &text));
        for problem in linted.diagnostics.iter() {
            if let Some(span) = problem.span {
                prop_assert!(span.start <= span.end && span.end <= linted.text.len());
                prop_assert!(linted.text.is_char_boundary(span.start) && linted.text.is_char_boundary(span.end));
            }
        }
    }
}
