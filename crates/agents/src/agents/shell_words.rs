//! Splits a shell script into words and operators, roughly as a shell would.

/// A word or an operator of a shell script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellToken {
    Word(ShellWord),
    And,
    Or,
    Pipe,
    /// The next command runs whatever the result of the one before.
    Separator,
    /// The next word is a file that takes the output of this stream.
    RedirectOut {
        of_errors: bool,
    },
    /// The next word is a file that is read as standard input.
    RedirectIn,
    /// The next word is the text of standard input.
    HereString,
    /// The text of standard input.
    HereDocument(String),
}

/// A word of a shell script, without its quotation marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellWord {
    pub text: String,
    /// The scripts whose output becomes part of the word: `$(…)` and backticks.
    pub substitutions: Vec<String>,
    /// Whether the shell replaces a part of the word: a variable, a pattern or a substitution.
    pub is_expanded: bool,
}

/// Splits a script. What cannot be read is taken as it is.
pub fn shell_tokens(script: &str) -> Vec<ShellToken> {
    let mut lexer = Lexer { rest: script, ..Lexer::default() };
    lexer.run();
    lexer.tokens
}

#[derive(Default)]
struct Lexer<'s> {
    rest: &'s str,
    tokens: Vec<ShellToken>,
    word: Option<ShellWord>,
    /// The ends of here-documents whose text begins with the next line.
    here_ends: Vec<String>,
}

impl<'s> Lexer<'s> {
    fn run(&mut self) {
        while let Some(char) = self.rest.chars().next() {
            self.rest = &self.rest[char.len_utf8()..];
            self.read_char(char);
        }
        self.end_word();
    }

    fn read_char(&mut self, char: char) {
        match char {
            '\'' => {
                let quoted = self.take_until('\'');
                self.word().text.push_str(quoted);
            }
            '"' => self.read_double_quotes(),
            '\\' => {
                let next = self.take_char();
                // A backslash before a line break joins the lines.
                if let Some(next) = next.filter(|next| *next != '\n') {
                    self.word().text.push(next);
                }
            }
            '$' => self.read_dollar(),
            '`' => {
                let inner = self.take_until('`').to_owned();
                self.add_substitution(inner);
            }
            ' ' | '\t' | '\r' => self.end_word(),
            '#' if self.word.is_none() => {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.rest = &self.rest[end..];
            }
            '\n' => {
                self.end_word();
                self.read_here_documents();
                self.tokens.push(ShellToken::Separator);
            }
            ';' | '(' | ')' => self.operator(ShellToken::Separator),
            '&' if self.skip('&') => self.operator(ShellToken::And),
            '&' if self.rest.starts_with('>') => self.end_word(),
            '&' => self.operator(ShellToken::Separator),
            '|' if self.skip('|') => self.operator(ShellToken::Or),
            '|' => {
                let _ = self.skip('&');
                self.operator(ShellToken::Pipe);
            }
            '>' => self.read_redirect_out(),
            '<' => self.read_redirect_in(),
            '*' | '?' | '[' | '{' | '~' => {
                let word = self.word();
                word.text.push(char);
                word.is_expanded |= char != '~' && word.text != "{" && word.text != "[";
            }
            '}' if self.word.as_ref().is_some_and(|word| word.text == "{") => {
                // The place of a file's name in `find -exec`.
                *self.word() = ShellWord { text: "{}".to_owned(), ..ShellWord::default() };
            }
            char => self.word().text.push(char),
        }
    }

    fn word(&mut self) -> &mut ShellWord {
        self.word.get_or_insert_default()
    }

    fn end_word(&mut self) {
        self.tokens.extend(self.word.take().map(ShellToken::Word));
    }

    fn operator(&mut self, token: ShellToken) {
        self.end_word();
        self.tokens.push(token);
    }

    fn skip(&mut self, char: char) -> bool {
        let rest = self.rest.strip_prefix(char);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn take_char(&mut self) -> Option<char> {
        let char = self.rest.chars().next()?;
        self.rest = &self.rest[char.len_utf8()..];
        Some(char)
    }

    fn take_until(&mut self, end: char) -> &'s str {
        let (before, after) = self.rest.split_once(end).unwrap_or((self.rest, ""));
        self.rest = after;
        before
    }

    fn read_double_quotes(&mut self) {
        self.word();
        while let Some(char) = self.take_char().filter(|char| *char != '"') {
            match char {
                '\\' if self.rest.starts_with(['"', '\\', '$', '`']) => {
                    let next = self.take_char();
                    self.word().text.extend(next);
                }
                '$' => self.read_dollar(),
                '`' => {
                    let inner = self.take_until('`').to_owned();
                    self.add_substitution(inner);
                }
                char => self.word().text.push(char),
            }
        }
    }

    fn read_dollar(&mut self) {
        if self.skip('(') {
            let inner = self.take_balanced();
            self.add_substitution(inner);
            return;
        }
        let word = self.word();
        word.text.push('$');
        word.is_expanded = true;
        // `${name}` is written as `$name`.
        if self.skip('{') {
            let name = self.take_until('}').to_owned();
            self.word().text.push_str(&name);
        }
    }

    /// Takes the text up to the bracket that closes the one before it.
    fn take_balanced(&mut self) -> String {
        let (mut depth, mut quote) = (1, None);
        for (at, char) in self.rest.char_indices() {
            match (char, quote) {
                ('\'' | '"', None) => quote = Some(char),
                (_, Some(open)) if char == open => quote = None,
                ('(', None) => depth += 1,
                (')', None) => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let inner = self.rest[..at].to_owned();
                self.rest = &self.rest[at + 1..];
                return inner;
            }
        }
        std::mem::take(&mut self.rest).to_owned()
    }

    fn add_substitution(&mut self, inner: String) {
        let word = self.word();
        word.text.push('$');
        word.is_expanded = true;
        word.substitutions.push(inner);
    }

    fn read_redirect_out(&mut self) {
        let _ = self.skip('>') || self.skip('|');
        // The number of the redirected stream is not a word.
        let is_number = |word: &ShellWord| word.text.bytes().all(|byte| byte.is_ascii_digit());
        let number = self.word.take_if(|word| is_number(word)).map(|word| word.text);
        self.end_word();
        if self.skip('&') {
            // The output goes where another stream goes, which is shown as well.
            let end = self.rest.find(|char: char| !char.is_ascii_digit() && char != '-');
            self.rest = &self.rest[end.unwrap_or(self.rest.len())..];
        } else {
            self.tokens.push(ShellToken::RedirectOut { of_errors: number.as_deref() == Some("2") });
        }
    }

    fn read_redirect_in(&mut self) {
        let _ = self.word.take_if(|word| word.text == "0");
        if !self.skip('<') {
            if self.skip('(') {
                // `<(…)` is the name of a file with the output of the script.
                let inner = self.take_balanced();
                self.add_substitution(inner);
                return self.end_word();
            }
            return self.operator(ShellToken::RedirectIn);
        }
        if self.skip('<') {
            return self.operator(ShellToken::HereString);
        }
        self.end_word();
        let _ = self.skip('-');
        // A line may be very long and have many of these, so its end is not looked for.
        let after = self.rest.trim_start_matches(|char: char| char.is_whitespace() && char != '\n');
        let ends_word = |char: char| char.is_whitespace() || ";|&>)".contains(char);
        let (word, rest) = after.split_at(after.find(ends_word).unwrap_or(after.len()));
        if !word.is_empty() {
            self.rest = rest;
        }
        self.here_ends.push(word.trim_matches(['"', '\'', '\\']).to_owned());
    }

    fn read_here_documents(&mut self) {
        for end in std::mem::take(&mut self.here_ends) {
            let mut text = String::new();
            while !self.rest.is_empty() {
                let line = self.take_until('\n');
                if line.trim() == end {
                    break;
                }
                text.push_str(line);
                text.push('\n');
            }
            self.tokens.push(ShellToken::HereDocument(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(script: &str) -> String {
        let tokens = shell_tokens(script).into_iter().map(|token| match token {
            ShellToken::Word(word) if word.substitutions.is_empty() => format!("[{}]", word.text),
            ShellToken::Word(word) => format!("[{} {:?}]", word.text, word.substitutions),
            ShellToken::And => "&&".to_owned(),
            ShellToken::Or => "||".to_owned(),
            ShellToken::Pipe => "|".to_owned(),
            ShellToken::Separator => ";".to_owned(),
            ShellToken::RedirectOut { of_errors } => if of_errors { "2>" } else { ">" }.to_owned(),
            ShellToken::RedirectIn => "<".to_owned(),
            ShellToken::HereString => "<<<".to_owned(),
            ShellToken::HereDocument(text) => format!("<<{text:?}"),
        });
        tokens.collect::<Vec<String>>().join(" ")
    }

    #[test]
    fn scripts_are_split_as_a_shell_splits_them() {
        for (script, expected) in [
            ("cat 'a b'\\ c \"d'e\"", "[cat] [a b c] [d'e]"),
            ("a && b || c | d; e & f\ng", "[a] && [b] || [c] | [d] ; [e] ; [f] ; [g]"),
            ("a 2>&1 >x 2>/dev/null &>y", "[a] > [x] 2> [/dev/null] > [y]"),
            ("cat < a <<< \"$(b c)\"", "[cat] < [a] <<< [$ [\"b c\"]]"),
            ("cat <<'EOF' | wc\none\nEOF\nls", "[cat] | [wc] <<\"one\\n\" ; [ls]"),
            ("echo \"${x}\" $y `z`", "[echo] [$x] [$y] [$ [\"z\"]]"),
            ("find . -exec cat {} \\;", "[find] [.] [-exec] [cat] [{}] [;]"),
            ("(cd a; ls) # comment", "; [cd] [a] ; [ls] ;"),
            ("a \\\n b", "[a] [b]"),
            ("'", "[]"),
            ("\"\\", "[\\]"),
            ("$(", "[$ [\"\"]]"),
            ("<<", ""),
        ] {
            assert_eq!(written(script), expected, "{script}");
        }
    }
}
