//! Scripts that show a SKILL.md, and scripts that only name it.

use super::*;

fn shown(script: &str) -> String {
    let reads = files_shown_by_script(script).into_iter().map(|read| {
        let mark = match read.proof {
            ReadProof::Certain => "",
            ReadProof::Possible => "?",
            ReadProof::Encoded => "#",
        };
        format!("{}{mark}", read.path.as_deref().unwrap_or("*"))
    });
    reads.collect::<Vec<String>>().join(" ")
}

#[test]
fn commands_that_show_a_file_are_told_from_commands_that_name_it() {
    for (script, expected) in [
        ("cat g/SKILL.md", "g/SKILL.md"),
        ("cd g && cat SKILL.md", "g/SKILL.md"),
        ("cd g; cat SKILL.md", "g/SKILL.md"),
        ("(cd g && cat SKILL.md)", "g/SKILL.md"),
        ("cat ./g/x/../SKILL.md", "g/SKILL.md"),
        ("cd g && cat ./x/../SKILL.md 2>&1", "g/SKILL.md"),
        ("cat < g/SKILL.md", "g/SKILL.md"),
        ("/bin/bash -lc 'cat g/SKILL.md'", "g/SKILL.md"),
        ("bash -lc \"cd g && sh -c 'cat SKILL.md'\"", "g/SKILL.md"),
        ("grep -n '' g/SKILL.md", "g/SKILL.md"),
        ("grep -n ahoy g/SKILL.md", "g/SKILL.md?"),
        ("sed -n 1,50p g/SKILL.md", "g/SKILL.md"),
        ("sed -n '/x/p' g/SKILL.md", "g/SKILL.md?"),
        ("head -20 g/SKILL.md", "g/SKILL.md"),
        ("less g/SKILL.md", "g/SKILL.md"),
        ("awk 1 g/SKILL.md", "g/SKILL.md"),
        ("awk '/x/' g/SKILL.md", "g/SKILL.md?"),
        ("cat g/SKILL.md | head -5", "g/SKILL.md"),
        ("cat g/SKILL.md | tee copy.md", "g/SKILL.md"),
        ("timeout 5 cat g/SKILL.md", "g/SKILL.md"),
        ("D=g; cat $D/SKILL.md", "g/SKILL.md"),
        ("D=g && cat \"${D}/SKILL.md\"", "g/SKILL.md"),
        ("echo \"$(cat g/SKILL.md)\"", "g/SKILL.md"),
        ("echo \"$(<g/SKILL.md)\"", "g/SKILL.md"),
        ("cat <<< \"$(cat g/SKILL.md)\"", "g/SKILL.md"),
        ("x=$(cat g/SKILL.md); echo \"$x\"", "g/SKILL.md"),
        ("bash <<'E'\ncat g/SKILL.md\nE", "g/SKILL.md"),
        ("echo g/SKILL.md | xargs cat", "g/SKILL.md"),
        ("eval 'cat g/SKILL.md'", "g/SKILL.md"),
        // The script does not say which file, or only the output can.
        ("find . -name SKILL.md -exec cat {} \\;", "*?"),
        ("find . -name '*.md' | xargs -n 1 cat", "*?"),
        ("cat */SKILL.md", "*?"),
        ("cat $(find . -name SKILL.md)", "*? *?"),
        ("for f in g/SKILL.md; do cat \"$f\"; done", "g/SKILL.md?"),
        ("for f in */SKILL.md; do cat \"$f\"; done", "*?"),
        ("cat g/SKILL.md || echo none", "g/SKILL.md?"),
        ("cat g/SKILL.md; echo done", "g/SKILL.md?"),
        ("python3 -c \"print(open('g/SKILL.md').read())\"", "g/SKILL.md?"),
        ("python3 - <<'E'\nprint(open('g/SKILL.md').read())\nE", "g/SKILL.md?"),
        ("node -e 'console.log(1)' g/SKILL.md", "*?"),
        ("mytool g/SKILL.md", "g/SKILL.md?"),
        ("cd $X && cat SKILL.md", "*"),
        // The text is shown in a form in which it is not recognised.
        ("base64 g/SKILL.md", "g/SKILL.md#"),
        ("cat g/SKILL.md | rev", "g/SKILL.md#"),
        // The text is not shown.
        ("cat g/SKILL.md | wc -l", ""),
        ("cat g/SKILL.md > /dev/null", ""),
        ("cat g/SKILL.md >/dev/null 2>&1 && echo there", ""),
        ("ls -l g/SKILL.md", ""),
        ("echo g/SKILL.md", ""),
        ("echo 'cat g/SKILL.md'", ""),
        ("cat <<< g/SKILL.md", ""),
        ("cat <<'E'\ncat g/SKILL.md\nE", ""),
        ("test -f g/SKILL.md && echo yes", ""),
        ("[ -f g/SKILL.md ]", ""),
        ("grep -c . g/SKILL.md", ""),
        ("grep -q x g/SKILL.md", ""),
        ("grep -rl x .", ""),
        ("cat g/SKILL.md | grep -c ''", ""),
        ("cp g/SKILL.md /tmp", ""),
        ("sed -i s/a/b/ g/SKILL.md", ""),
        ("cat > g/SKILL.md", ""),
        ("git add g/SKILL.md", ""),
        ("x=$(cat g/SKILL.md)", ""),
        ("find . -name SKILL.md", ""),
        ("cat notes.md", ""),
        ("", ""),
        ("'", ""),
        ("| | > <", ""),
    ] {
        assert_eq!(shown(script), expected, "{script}");
    }
}

#[test]
fn the_shell_around_a_command_is_taken_off() {
    for (command, expected) in [
        ("/bin/bash -lc 'git push'", "git push"),
        ("bash -lc \"echo 'a b'\"", "echo 'a b'"),
        ("/bin/zsh -c ls", "ls"),
        ("bash run.sh now", "bash run.sh now"),
        ("git push", "git push"),
    ] {
        assert_eq!(script_inside_shell(command), expected);
    }
}

#[test]
fn shells_inside_each_other_end() {
    let script = (0..50).fold("cat g/SKILL.md".to_owned(), |inner, _| format!("eval {inner}"));
    assert_eq!(shown(&script), "");
}
