//! Recognises which skills a shell command has shown to a model, for agents that read skills with a shell.

use super::skill_of_path;
use practicum_skills::skill::SKILL_FILE;

/// Programs that write a file's content to standard output.
const FILE_READERS: [&str; 11] =
    ["cat", "bat", "sed", "head", "tail", "nl", "awk", "less", "more", "tac", "batcat"];

const SHELLS: [&str; 4] = ["bash", "sh", "zsh", "dash"];

/// Finds the skills whose SKILL.md this command has shown. There are two kinds of proof: a program that reads the
/// file, and whose success follows from the exit code; or, whatever the program, the frontmatter of a skill in the
/// output of a command that names such a file.
pub fn skills_shown_by_command(command: &str, output: &str, succeeded: bool) -> Vec<String> {
    let script = script_inside_shell(command);
    if !script.contains(SKILL_FILE) {
        return Vec::new();
    }
    let mut skills = skill_names_in(output);
    if succeeded {
        skills.extend(skills_certainly_read(&script));
    }
    let mut seen = Vec::new();
    skills.retain(|skill| {
        let new = !seen.contains(skill);
        seen.push(skill.clone());
        new
    });
    skills
}

/// Gives the script inside a shell call such as `/bin/bash -lc '…'`.
pub fn script_inside_shell(command: &str) -> String {
    match shell_words(command).as_slice() {
        [ShellWord::Text(shell), ShellWord::Text(flags), ShellWord::Text(script)]
            if SHELLS.contains(&program_name(shell)) && flags.starts_with('-') && flags.ends_with('c') =>
        {
            script.clone()
        }
        _ => command.to_owned(),
    }
}

fn program_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Finds skills whose files were certainly read if the whole script succeeded: nothing after the reader can hide
/// its failure, and nothing before it can have skipped it.
fn skills_certainly_read(script: &str) -> Vec<String> {
    let words = shell_words(script);
    if words.contains(&ShellWord::Or) {
        return Vec::new();
    }
    let last = words.iter().rposition(|word| *word == ShellWord::Separator).map_or(0, |at| at + 1);
    // A script may end with a line break or a semicolon.
    let last = if last == words.len() {
        let before = words[..last.saturating_sub(1)].iter().rposition(|word| *word == ShellWord::Separator);
        before.map_or(0, |at| at + 1)
    } else {
        last
    };
    words[last..]
        .split(|word| matches!(word, ShellWord::And | ShellWord::Pipe))
        .flat_map(skills_read_by_words)
        .collect()
}

/// Finds the skills that one simple command reads.
fn skills_read_by_words(command: &[ShellWord]) -> Vec<String> {
    let mut skills = Vec::new();
    let mut texts = command.iter();
    let Some(ShellWord::Text(program)) = texts.next() else { return skills };
    let in_place = command.iter().any(|word| matches!(word, ShellWord::Text(text) if text.starts_with("-i")));
    if !FILE_READERS.contains(&program_name(program)) || in_place {
        return skills;
    }
    let mut written = false;
    for word in texts {
        match word {
            ShellWord::Redirect => written = true,
            ShellWord::Text(path) => {
                let concrete = |name: &&str| !name.contains(['*', '?', '[', '{', '$']);
                if let (false, Some(skill)) = (written, skill_of_path(path).filter(concrete)) {
                    skills.push(skill.to_owned());
                }
                written = false;
            }
            ShellWord::And | ShellWord::Or | ShellWord::Pipe | ShellWord::Separator => {}
        }
    }
    skills
}

/// Finds the names in the frontmatter of skills in this text: `---`, then `name: …`.
fn skill_names_in(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
    let names = lines.windows(2).filter_map(|pair| match pair {
        ["---", second] => second.strip_prefix("name:").map(|name| name.trim().trim_matches(['"', '\''])),
        _ => None,
    });
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ShellWord {
    Text(String),
    And,
    Or,
    Pipe,
    /// The next command runs whatever the result of the one before.
    Separator,
    /// The next word is written to, not read.
    Redirect,
}

/// Splits a command into words roughly as a shell would, well enough for plain commands.
fn shell_words(script: &str) -> Vec<ShellWord> {
    let mut out = Vec::new();
    let mut text: Option<String> = None;
    let mut chars = script.chars().peekable();
    while let Some(char) = chars.next() {
        let operator = match char {
            '\'' => {
                let quoted = text.get_or_insert_default();
                quoted.extend(chars.by_ref().take_while(|char| *char != '\''));
                continue;
            }
            '"' => {
                let quoted = text.get_or_insert_default();
                while let Some(char) = chars.next().filter(|char| *char != '"') {
                    match (char, chars.peek()) {
                        ('\\', Some('"' | '\\' | '$' | '`')) => quoted.extend(chars.next()),
                        _ => quoted.push(char),
                    }
                }
                continue;
            }
            '\\' => {
                text.get_or_insert_default().extend(chars.next());
                continue;
            }
            ' ' | '\t' => None,
            '\n' | ';' => Some(ShellWord::Separator),
            '&' if chars.next_if_eq(&'&').is_some() => Some(ShellWord::And),
            // `2>&1` and `&>file` redirect output, and do not end a command.
            '&' if out.last() == Some(&ShellWord::Redirect) && text.is_none() => {
                text = Some("&".to_owned());
                continue;
            }
            '&' if chars.peek() == Some(&'>') => None,
            '&' => Some(ShellWord::Separator),
            '|' if chars.next_if_eq(&'|').is_some() => Some(ShellWord::Or),
            '|' => Some(ShellWord::Pipe),
            '>' => {
                let _ = chars.next_if_eq(&'>');
                // The number of the redirected stream is not a word.
                if text.as_ref().is_some_and(|text| text.chars().all(|char| char.is_ascii_digit())) {
                    text = None;
                }
                Some(ShellWord::Redirect)
            }
            char => {
                text.get_or_insert_default().push(char);
                continue;
            }
        };
        out.extend(text.take().map(ShellWord::Text));
        out.extend(operator);
    }
    out.extend(text.map(ShellWord::Text));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "---\nname: greeter\ndescription: d\n---\nbody\n";

    #[test]
    fn a_skill_that_was_only_mentioned_was_not_read() {
        let file = ".agents/skills/greeter/SKILL.md";
        for (command, output, succeeded, expected) in [
            (format!("cat {file}"), "body", true, "greeter"),
            (format!("/bin/bash -lc 'cat {file}'"), "body", true, "greeter"),
            (format!("bash -lc \"sed -n '10,200p' /w/{file}\""), "body", true, "greeter"),
            (format!("cat '{file}' | head -5"), "body", true, "greeter"),
            (format!("cd /w && cat {file} 2>&1"), "body", true, "greeter"),
            (format!("cat {file};"), "body", true, "greeter"),
            (format!("cat {file}"), "No such file", false, ""),
            // The exit code is not that of the reader.
            (format!("cat {file}; echo done"), "No such file\ndone", true, ""),
            (format!("cat {file} || echo none"), "none", true, ""),
            (format!("cat {file} &\ntrue"), "", true, ""),
            // But a file that was shown was read.
            (format!("cat {file}; echo done"), HEAD, true, "greeter"),
            (format!("cat {file}; false"), HEAD, false, "greeter"),
            (format!("python3 -c 'print(open(\"{file}\").read())'"), HEAD, true, "greeter"),
            ("cat SKILL.md".to_owned(), HEAD, true, "greeter"),
            ("cat .agents/skills/*/SKILL.md".to_owned(), HEAD, true, "greeter"),
            ("cat .agents/skills/*/SKILL.md".to_owned(), "", true, ""),
            ("cat notes.md".to_owned(), HEAD, true, ""),
            // These commands look at the file, or write it.
            (format!("ls -l {file}"), file, true, ""),
            (format!("rg -l hello {file}"), file, true, ""),
            (format!("echo {file}"), file, true, ""),
            (format!("echo 'cat {file}'"), file, true, ""),
            (format!("cat > {file}"), "", true, ""),
            (format!("cat a.md >>{file}"), "", true, ""),
            (format!("sed -i s/a/b/ {file}"), "", true, ""),
            (format!("cat {} {file}", "/h/.agents/skills/other/SKILL.md"), "x", true, "other greeter"),
            ("'".to_owned(), "", true, ""),
            ("SKILL.md \"\\".to_owned(), "---", true, ""),
        ] {
            let found = skills_shown_by_command(&command, output, succeeded).join(" ");
            assert_eq!(found, expected, "{command} -> {output:?}");
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
}
