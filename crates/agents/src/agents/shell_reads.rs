//! Finds the SKILL.md files whose content a shell script writes to its output.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::shell_words::{ShellToken, ShellWord, shell_tokens};
use super::skill_paths::join_path;
use practicum_skills::skill::SKILL_FILE;

const SHELLS: [&str; 5] = ["bash", "sh", "zsh", "dash", "ksh"];

/// Programs that run the command after them.
const WRAPPERS: [&str; 10] =
    ["sudo", "env", "timeout", "nohup", "time", "command", "exec", "stdbuf", "nice", "builtin"];

/// Programs that write files, or their standard input, to standard output.
const READERS: [&str; 33] = [
    "cat", "bat", "batcat", "head", "tail", "sed", "awk", "gawk", "mawk", "less", "more", "nl", "tac",
    "grep", "egrep", "fgrep", "rg", "ag", "sort", "uniq", "cut", "fold", "fmt", "pr", "tr", "column",
    "strings", "tee", "expand", "iconv", "glow", "mdcat", "paste",
];

/// Programs that write the content of files in another form.
const ENCODERS: [&str; 9] =
    ["base64", "base32", "xxd", "od", "hexdump", "rev", "gzip", "uuencode", "openssl"];

/// Programs that do not show what is in a file.
const NON_READERS: [&str; 40] = [
    "ls",
    "wc",
    "test",
    "[",
    "[[",
    "stat",
    "file",
    "cp",
    "mv",
    "rm",
    "ln",
    "touch",
    "chmod",
    "chown",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "cksum",
    "sum",
    "b3sum",
    "du",
    "basename",
    "dirname",
    "realpath",
    "readlink",
    "which",
    "mkdir",
    "rmdir",
    "true",
    "false",
    ":",
    "cmp",
    "export",
    "set",
    "sleep",
    "install",
    "tree",
    "pwd",
    "exit",
];

const INTERPRETERS: [&str; 9] =
    ["python", "python3", "node", "perl", "ruby", "deno", "bun", "php", "osascript"];

/// The words that stand before a command in loops and conditions.
const KEYWORDS: [&str; 13] =
    ["do", "then", "else", "elif", "if", "while", "until", "!", "{", "}", "done", "fi", "time"];

/// How many shells may be inside each other.
const DEEPEST: usize = 5;

/// A SKILL.md file that a script may have shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRead {
    /// The path; `None` if the script does not say which file it reads.
    pub path: Option<String>,
    pub proof: ReadProof,
}

/// How surely a command has shown a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadProof {
    /// Shown if the command succeeded.
    Certain,
    /// Only the output can say whether it was shown.
    Possible,
    /// Shown in a form in which its text cannot be recognised.
    Encoded,
}

/// Finds the SKILL.md files that a script shows.
pub fn files_shown_by_script(script: &str) -> Vec<FileRead> {
    let mut reader = ScriptReader { depth: 0, ..ScriptReader::default() };
    reader.read_script(script)
}

/// Gives the script inside a shell call such as `/bin/bash -lc '…'`.
pub fn script_inside_shell(command: &str) -> String {
    let words: Option<Vec<ShellWord>> = shell_tokens(command)
        .into_iter()
        .map(|token| match token {
            ShellToken::Word(word) => Some(word),
            _ => None,
        })
        .collect();
    match words.as_deref() {
        Some([shell, flags, script]) if is_shell(shell) && is_script_flag(&flags.text) => script.text.clone(),
        _ => command.to_owned(),
    }
}

fn is_shell(word: &ShellWord) -> bool {
    SHELLS.contains(&program_name(&word.text))
}

fn is_script_flag(flags: &str) -> bool {
    flags.starts_with('-') && !flags.starts_with("--") && flags.ends_with('c')
}

fn program_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// One program with its arguments and what it is connected to.
#[derive(Debug, Clone, Default)]
struct SimpleCommand {
    words: Vec<ShellWord>,
    /// The file, or the text, that is its standard input.
    input_file: Option<ShellWord>,
    input_word: Option<ShellWord>,
    input_text: Option<String>,
    /// Whether its output goes to a file.
    is_redirected: bool,
}

/// What one program writes to its standard output.
#[derive(Debug, Clone, Default)]
struct ProgramOutput {
    /// The files whose content it writes.
    reads: Vec<FileRead>,
    /// The names of SKILL.md files that it writes; `None` for a name that is not known.
    names: Vec<Option<String>>,
}

#[derive(Debug, Clone, Default)]
struct ScriptReader {
    depth: usize,
    /// The working folder, relative to the first one; `None` if it is unknown.
    folder: String,
    folder_unknown: bool,
    /// The values of variables, and the files whose content a variable has.
    values: HashMap<String, String>,
    contents: HashMap<String, Vec<FileRead>>,
}

impl ScriptReader {
    fn read_script(&mut self, script: &str) -> Vec<FileRead> {
        if self.depth > DEEPEST {
            return Vec::new();
        }
        let tokens = shell_tokens(script);
        let lists: Vec<&[ShellToken]> =
            tokens.split(|token| *token == ShellToken::Separator).filter(|list| !list.is_empty()).collect();
        // The exit code proves something about the last list only, and nothing if another way could have been taken.
        let is_branching =
            tokens.contains(&ShellToken::Or) || lists.iter().any(|list| starts_with_keyword(list));
        let mut reads = Vec::new();
        for (at, list) in lists.iter().enumerate() {
            let is_proven = at + 1 == lists.len() && !is_branching;
            for pipeline in list.split(|token| matches!(token, ShellToken::And | ShellToken::Or)) {
                for read in self.read_pipeline(pipeline) {
                    let proof = if is_proven { read.proof } else { read.proof.max(ReadProof::Possible) };
                    reads.push(FileRead { proof, ..read });
                }
            }
        }
        reads
    }

    fn read_pipeline(&mut self, pipeline: &[ShellToken]) -> Vec<FileRead> {
        let mut output = ProgramOutput::default();
        for command in pipeline.split(|token| *token == ShellToken::Pipe) {
            let command = self.simple_command(command);
            let is_redirected = command.is_redirected;
            output = self.run(&command, output);
            if is_redirected {
                output = ProgramOutput::default();
            }
        }
        output.reads
    }

    /// Collects the words and redirections of one command, with the values of known variables.
    fn simple_command(&self, tokens: &[ShellToken]) -> SimpleCommand {
        let mut command = SimpleCommand::default();
        let mut tokens = tokens.iter();
        while let Some(token) = tokens.next() {
            let mut next_word = || match tokens.next() {
                Some(ShellToken::Word(word)) => Some(self.with_values(word)),
                _ => None,
            };
            match token {
                ShellToken::Word(word) => command.words.push(self.with_values(word)),
                ShellToken::RedirectOut { of_errors } => {
                    let target = next_word().map(|word| word.text).unwrap_or_default();
                    let is_shown = ["/dev/stdout", "/dev/stderr", "/dev/tty"].contains(&target.as_str());
                    command.is_redirected |= !of_errors && !is_shown;
                }
                ShellToken::RedirectIn => command.input_file = next_word(),
                ShellToken::HereString => command.input_word = next_word(),
                ShellToken::HereDocument(text) => command.input_text = Some(text.clone()),
                ShellToken::And | ShellToken::Or | ShellToken::Pipe | ShellToken::Separator => {}
            }
        }
        while command.words.first().is_some_and(|word| KEYWORDS.contains(&word.text.as_str())) {
            command.words.remove(0);
        }
        command
    }

    fn with_values(&self, word: &ShellWord) -> ShellWord {
        let mut word = word.clone();
        if word.is_expanded && word.substitutions.is_empty() {
            for (name, value) in &self.values {
                word.text = word.text.replace(&format!("${name}"), value);
            }
            word.is_expanded = word.text.contains(['$', '*', '?', '[', '{']);
        }
        word
    }

    /// Follows one command: what it writes if it gets this input.
    fn run(&mut self, command: &SimpleCommand, mut input: ProgramOutput) -> ProgramOutput {
        if let Some(word) = &command.input_word {
            input = ProgramOutput {
                reads: self.reads_in_word(word),
                names: self.names_in(std::slice::from_ref(word)),
            };
        }
        if let Some(file) = &command.input_file {
            input = ProgramOutput { reads: self.read_of(file).into_iter().collect(), names: Vec::new() };
        }
        let Some((program, args)) = command.words.split_first() else {
            return ProgramOutput::default();
        };
        if let Some((name, value)) = program.text.split_once('=')
            && !name.is_empty()
            && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
        {
            self.assign(name, value, program);
            let rest = SimpleCommand { words: args.to_vec(), ..command.clone() };
            return self.run(&rest, input);
        }
        let name = program_name(&program.text);
        let reads = |reads| ProgramOutput { reads, names: Vec::new() };
        match name {
            "cd" | "pushd" => {
                self.change_folder(args);
                ProgramOutput::default()
            }
            _ if WRAPPERS.contains(&name) => {
                let is_option = |word: &ShellWord| {
                    word.text.starts_with('-')
                        || word.text.contains('=')
                        || word.text.starts_with(|char: char| char.is_ascii_digit())
                };
                let words = args.iter().skip_while(|word| is_option(word)).cloned().collect();
                self.run(&SimpleCommand { words, ..command.clone() }, input)
            }
            "eval" => {
                let script: Vec<&str> = args.iter().map(|word| word.text.as_str()).collect();
                reads(self.inner(&script.join(" ")))
            }
            _ if SHELLS.contains(&name) => reads(self.run_shell(command, args)),
            "echo" | "printf" => ProgramOutput {
                reads: args.iter().flat_map(|word| self.reads_in_word(word)).collect(),
                names: self.names_in(args),
            },
            "ls" | "fd" | "locate" => ProgramOutput { reads: Vec::new(), names: self.names_in(args) },
            // A loop over one file is as good as a variable with its name.
            "for" | "case" | "select" | "function" => {
                if let (Some(variable), [item]) = (args.first(), args.get(2..).unwrap_or_default()) {
                    self.assign(&variable.text, &item.text, item);
                }
                ProgramOutput::default()
            }
            "find" => self.run_find(args),
            "xargs" => {
                let words = args.iter().skip_while(|word| is_xargs_option(&word.text)).cloned();
                let words: Vec<ShellWord> = words.collect();
                self.run_on_names(&words, &input.names)
            }
            _ => self.run_program(name, args, command, input),
        }
    }

    fn run_program(
        &mut self,
        name: &str,
        args: &[ShellWord],
        command: &SimpleCommand,
        input: ProgramOutput,
    ) -> ProgramOutput {
        let files: Vec<FileRead> = args.iter().filter_map(|word| self.read_of(word)).collect();
        let substituted =
            args.iter().flat_map(|word| &word.substitutions).any(|script| script.contains(SKILL_FILE));
        let with = |proof: ReadProof, reads: Vec<FileRead>| {
            reads.into_iter().map(|read| FileRead { proof: read.proof.max(proof), ..read }).collect()
        };
        let both = || files.iter().cloned().chain(input.reads.iter().cloned()).collect::<Vec<FileRead>>();
        let reads = match name {
            _ if NON_READERS.contains(&name) || prints_no_lines(name, args) => {
                let names = if name == "grep" || name == "rg" { self.names_in(args) } else { Vec::new() };
                return ProgramOutput { reads: Vec::new(), names };
            }
            _ if READERS.contains(&name) => with(proof_of_reader(name, args), both()),
            _ if ENCODERS.contains(&name) => {
                with(ReadProof::Encoded, both().into_iter().filter(|read| read.path.is_some()).collect())
            }
            _ if INTERPRETERS.contains(&name) => self.read_in_code(args, command),
            "git"
                if !args.iter().any(|word| {
                    ["show", "diff", "grep", "cat-file", "blame", "log"].contains(&word.text.as_str())
                }) =>
            {
                Vec::new()
            }
            _ => with(ReadProof::Possible, both()),
        };
        let unknown = FileRead { path: None, proof: ReadProof::Possible };
        let from_names = substituted && READERS.contains(&name);
        ProgramOutput {
            reads: reads.into_iter().chain(from_names.then_some(unknown)).collect(),
            names: Vec::new(),
        }
    }

    fn run_shell(&mut self, command: &SimpleCommand, args: &[ShellWord]) -> Vec<FileRead> {
        let after_flag = args.iter().skip_while(|word| !is_script_flag(&word.text)).nth(1);
        match (after_flag, &command.input_text, &command.input_word) {
            (Some(script), ..) => self.inner(&script.text.clone()),
            (None, Some(text), _) => self.inner(&text.clone()),
            (None, None, Some(word)) => self.inner(&word.text.clone()),
            (None, None, None) => Vec::new(),
        }
    }

    /// Reads a script in a shell of its own, which starts in this folder.
    fn inner(&self, script: &str) -> Vec<FileRead> {
        let mut reader = Self { depth: self.depth + 1, ..self.clone() };
        reader.read_script(script)
    }

    fn run_find(&mut self, args: &[ShellWord]) -> ProgramOutput {
        let exec = args.iter().position(|word| ["-exec", "-execdir", "-ok"].contains(&word.text.as_str()));
        let name_flag =
            args.iter().position(|word| ["-name", "-iname", "-path"].contains(&word.text.as_str()));
        let pattern = name_flag.and_then(|at| args.get(at + 1)).map_or("", |word| word.text.as_str());
        let names = match pattern.is_empty() || pattern.contains(SKILL_FILE) || pattern.contains(['*', '?']) {
            true => vec![None],
            false => Vec::new(),
        };
        match exec {
            Some(at) => {
                let words: Vec<ShellWord> = args[at + 1..]
                    .iter()
                    .filter(|word| ![";", "+", "{}"].contains(&word.text.as_str()))
                    .cloned()
                    .collect();
                self.run_on_names(&words, &names)
            }
            None => ProgramOutput { reads: Vec::new(), names },
        }
    }

    /// Follows a command that gets names of files as its last arguments.
    fn run_on_names(&mut self, words: &[ShellWord], names: &[Option<String>]) -> ProgramOutput {
        let mut output = ProgramOutput::default();
        for name in names {
            let file = ShellWord {
                text: name.clone().unwrap_or_else(|| "*".to_owned()),
                substitutions: Vec::new(),
                is_expanded: name.is_none(),
            };
            let mut words = words.to_vec();
            // `sh -c 'cat "$1"' _` gets the name as a variable.
            if words.first().is_some_and(is_shell) {
                output.reads.push(FileRead { path: None, proof: ReadProof::Possible });
            }
            words.push(file);
            let command = SimpleCommand { words, ..SimpleCommand::default() };
            output.reads.extend(self.run(&command, ProgramOutput::default()).reads);
        }
        output
    }

    fn assign(&mut self, name: &str, value: &str, word: &ShellWord) {
        if word.substitutions.is_empty() {
            self.values.insert(name.to_owned(), value.to_owned());
        } else {
            let reads = self.reads_in_word(word);
            self.contents.insert(name.to_owned(), reads);
        }
    }

    fn change_folder(&mut self, args: &[ShellWord]) {
        match args.iter().find(|word| !word.text.starts_with('-')) {
            Some(to) if !to.is_expanded && !to.text.starts_with('~') => {
                self.folder_unknown &= !to.text.starts_with('/');
                self.folder = join_path(&self.folder, &to.text);
            }
            _ => self.folder_unknown = true,
        }
    }

    /// Gives the SKILL.md that a word names, or an unknown file if the word is a pattern.
    fn read_of(&self, word: &ShellWord) -> Option<FileRead> {
        // `dd if=FILE` names its file after a key.
        let text = word.text.strip_prefix("if=").unwrap_or(&word.text);
        if word.is_expanded {
            let may_be = text.contains(SKILL_FILE)
                || text.ends_with(['*', '}'])
                || text.starts_with('$')
                || text.ends_with(".md");
            return may_be.then_some(FileRead { path: None, proof: ReadProof::Possible });
        }
        let path = join_path(&self.folder, text);
        let is_skill = path.rsplit('/').next() == Some(SKILL_FILE);
        let known = (!self.folder_unknown || text.starts_with('/')).then_some(path);
        is_skill.then_some(FileRead { path: known, proof: ReadProof::Certain })
    }

    /// Gives the names of SKILL.md files among these words.
    fn names_in(&self, words: &[ShellWord]) -> Vec<Option<String>> {
        words.iter().filter_map(|word| self.read_of(word)).map(|read| read.path).collect()
    }

    /// Gives the files whose content is part of a word.
    fn reads_in_word(&self, word: &ShellWord) -> Vec<FileRead> {
        let variables = self.contents.iter().filter(|(name, _)| word.text.contains(&format!("${name}")));
        let from_variables = variables.flat_map(|(_, reads)| reads.clone());
        let scripts = word.substitutions.iter().flat_map(|script| match script.trim().strip_prefix('<') {
            // `$(<file)` is the content of the file.
            Some(file) => self.inner(&format!("cat {file}")),
            None => self.inner(script),
        });
        from_variables.chain(scripts).collect()
    }

    /// Finds the files that a program in another language names.
    fn read_in_code(&self, args: &[ShellWord], command: &SimpleCommand) -> Vec<FileRead> {
        static QUOTED: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r#"['"]([^'"\n]*SKILL\.md)['"]"#).expect("a pattern"));
        let texts = args.iter().map(|word| word.text.as_str()).chain(command.input_text.as_deref());
        let mut reads = Vec::new();
        for text in texts.filter(|text| text.contains(SKILL_FILE)) {
            let paths = QUOTED.captures_iter(text).map(|found| join_path(&self.folder, &found[1]));
            let named: Vec<FileRead> =
                paths.map(|path| FileRead { path: Some(path), proof: ReadProof::Possible }).collect();
            match named.is_empty() {
                true => reads.push(FileRead { path: None, proof: ReadProof::Possible }),
                false => reads.extend(named),
            }
        }
        reads
    }
}

fn starts_with_keyword(list: &[ShellToken]) -> bool {
    let words = ["if", "for", "while", "until", "case", "select", "function"];
    matches!(list.first(), Some(ShellToken::Word(word)) if words.contains(&word.text.as_str()))
}

fn is_xargs_option(word: &str) -> bool {
    word.starts_with('-') || word == "{}" || word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Says whether a reader prints something other than lines of its files.
fn prints_no_lines(name: &str, args: &[ShellWord]) -> bool {
    let has = |flags: &[char], long: &[&str]| {
        args.iter().any(|word| match word.text.strip_prefix("--") {
            Some(option) => long.contains(&option),
            None => word.text.strip_prefix('-').is_some_and(|letters| letters.contains(flags)),
        })
    };
    match name {
        "grep" | "egrep" | "fgrep" | "rg" | "ag" => has(
            &['c', 'q', 'l', 'L'],
            &["count", "quiet", "silent", "files-with-matches", "files-without-match"],
        ),
        "sed" => has(&['i'], &["in-place"]),
        _ => false,
    }
}

/// Says how surely a reader prints lines of its files.
fn proof_of_reader(name: &str, args: &[ShellWord]) -> ReadProof {
    let mut plain = args.iter().map(|word| word.text.as_str()).filter(|word| !word.starts_with('-'));
    let first = plain.next().unwrap_or_default();
    let is_quiet = args.iter().any(|word| word.text == "-n");
    let certain = match name {
        "cat" | "bat" | "batcat" | "head" | "tail" | "less" | "more" | "nl" | "tac" | "tee" | "fold"
        | "fmt" | "pr" | "expand" | "iconv" | "glow" | "mdcat" | "column" => true,
        "grep" | "egrep" | "fgrep" | "rg" | "ag" => ["", ".", "^", "$", ".*"].contains(&first),
        "sed" => !is_quiet || is_line_range(first),
        "awk" | "gawk" | "mawk" => ["1", "{print}", "{ print }", "{print $0}", "{print;}"].contains(&first),
        _ => false,
    };
    if certain { ReadProof::Certain } else { ReadProof::Possible }
}

/// Says whether a script of `sed -n` prints lines by their numbers: `1,50p`.
fn is_line_range(script: &str) -> bool {
    script.strip_suffix('p').is_some_and(|range| {
        !range.is_empty() && range.split(',').all(|end| end == "$" || end.parse::<u32>().is_ok())
    })
}

#[cfg(test)]
mod tests;
