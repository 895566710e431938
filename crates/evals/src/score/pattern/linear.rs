//! Patterns for the linear-time engine, which has no look-around, no groups to refer to, and its
//! own idea of `$` and `\b`.

use std::fmt::Write;
use std::sync::{LazyLock, OnceLock};

use regex::{Regex, RegexBuilder};

use super::syntax::{At, Class, Greed, Item, Node, Set};

/// What the engine may use for a compiled pattern. What needs more goes to the other engine,
/// where repetition costs no memory.
const SIZE_LIMIT: usize = 2 * 1024 * 1024;

/// What a pattern asks for that the engine does not have, or has otherwise.
#[derive(Debug, Clone, Copy, Default)]
pub struct Demands {
    /// Look-around, back-references, atoms: not in this engine at all.
    backtracking: bool,
    /// `$` that also matches before the last newline.
    dollar: bool,
    /// `^` or `$` at lines.
    lines: bool,
    /// `\b` or `\B` by the words of Unicode.
    word_edges: bool,
    /// `\B` in whatever words.
    not_word_edges: bool,
    /// A loop around what can match nothing. Python leaves it after an empty turn, the engine may
    /// find more: they agree where there is a match, not always where it ends.
    pub empty_turns: bool,
}

impl Demands {
    pub fn of(node: &Node) -> Self {
        let mut demands = Self::default();
        node.visit(&mut |node| match node {
            Node::Look { .. }
            | Node::Same { .. }
            | Node::IfMatched { .. }
            | Node::Atomic(_)
            | Node::Repeat { greed: Greed::Possessive, .. } => demands.backtracking = true,
            Node::At(At::EndOrLastNewline) => demands.dollar = true,
            Node::At(At::LineStart | At::LineEnd) => demands.lines = true,
            Node::At(At::WordEdge { ascii }) => demands.word_edges |= !ascii,
            Node::At(At::NotWordEdge { ascii }) => {
                demands.word_edges |= !ascii;
                demands.not_word_edges = true;
            }
            Node::Repeat { node, max, .. } => {
                let width = node.width();
                demands.empty_turns |= max.is_none_or(|max| max > 1) && width.min == 0 && width.max > 0;
            }
            Node::At(At::Start | At::End)
            | Node::One(_)
            | Node::All(_)
            | Node::Either(_)
            | Node::Capture(..) => {}
        });
        demands
    }

    /// How the engine can search this text to the same effect, if it can.
    fn form(self, text: &str) -> Option<Form> {
        if self.backtracking
            || self.word_edges && has_disputed_words(text)
            // Python, up to 3.13, lets `\B` fail on an empty text.
            || self.not_word_edges && text.is_empty()
        {
            return None;
        }
        if !self.dollar || !text.ends_with('\n') {
            return Some(Form::Plain);
        }
        (!self.lines && !text.contains('\0')).then_some(Form::NulForLastNewline)
    }
}

/// Whether the text has characters that are part of a word here and not there: Python counts
/// letters and numbers, the engine marks and joiners too, but fewer numbers.
fn has_disputed_words(text: &str) -> bool {
    static DISPUTED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[\w~~[\p{L}\p{N}_]]").ok());
    !text.is_ascii() && DISPUTED.as_ref().is_none_or(|disputed| disputed.is_match(text))
}

/// Two ways to write the same pattern. The engine's line ends are where a byte of one's choice
/// is: with the last newline replaced by NUL, and no other NUL in the text, "at a line's end" is
/// exactly Python's `$`, and sets take NUL for the newline that it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    NulForLastNewline,
}

/// The regexes for a pattern, made when first asked for. `None` inside: the engine refuses.
#[derive(Debug, Default)]
pub struct Linear {
    plain: OnceLock<Option<Regex>>,
    plain_whole: OnceLock<Option<Regex>>,
    nul: OnceLock<Option<Regex>>,
    nul_whole: OnceLock<Option<Regex>>,
}

/// A regex, and the text as it must be given to it.
pub struct Search<'p, 't> {
    pub regex: &'p Regex,
    pub text: std::borrow::Cow<'t, str>,
}

impl Linear {
    /// What to search instead of `text`, byte for byte at the same places. `whole`: the match
    /// must span the text.
    pub fn search<'p, 't>(
        &'p self,
        node: &Node,
        demands: Demands,
        text: &'t str,
        whole: bool,
    ) -> Option<Search<'p, 't>> {
        let form = demands.form(text)?;
        let regex = match (form, whole) {
            (Form::Plain, false) => &self.plain,
            (Form::Plain, true) => &self.plain_whole,
            (Form::NulForLastNewline, false) => &self.nul,
            (Form::NulForLastNewline, true) => &self.nul_whole,
        };
        let regex = regex.get_or_init(|| compile(node, form, whole)).as_ref()?;
        let text = match form {
            Form::Plain => text.into(),
            Form::NulForLastNewline => format!("{}\0", &text[..text.len() - 1]).into(),
        };
        Some(Search { regex, text })
    }
}

fn compile(node: &Node, form: Form, whole: bool) -> Option<Regex> {
    let mut out = String::new();
    out.push_str(if whole { r"\A(?:" } else { "(?:" });
    write_node(node, form, &mut out);
    out.push_str(if whole { r")\z" } else { ")" });
    let mut builder = RegexBuilder::new(&out);
    builder.size_limit(SIZE_LIMIT).nest_limit(2000);
    if form == Form::NulForLastNewline {
        builder.line_terminator(0);
    }
    builder.build().ok()
}

fn write_node(node: &Node, form: Form, out: &mut String) {
    match node {
        Node::One(set) => write_set(set, form, out),
        Node::At(at) => out.push_str(match at {
            At::Start => r"\A",
            At::End => r"\z",
            At::EndOrLastNewline => match form {
                Form::Plain => r"\z",
                Form::NulForLastNewline => "(?m:$)",
            },
            At::LineStart => "(?m:^)",
            At::LineEnd => "(?m:$)",
            At::WordEdge { ascii: false } => r"\b",
            At::WordEdge { ascii: true } => r"(?-u:\b)",
            At::NotWordEdge { ascii: false } => r"\B",
            At::NotWordEdge { ascii: true } => r"(?-u:\B)",
        }),
        Node::All(nodes) => {
            for node in nodes {
                write_group(node, form, out);
            }
        }
        Node::Either(nodes) => {
            for (index, node) in nodes.iter().enumerate() {
                if index > 0 {
                    out.push('|');
                }
                write_node(node, form, out);
            }
        }
        Node::Capture(_, node) => write_group(node, form, out),
        Node::Repeat { node, min, max, greed } => {
            write_group(node, form, out);
            match (min, max) {
                (0, None) => out.push('*'),
                (1, None) => out.push('+'),
                (0, Some(1)) => out.push('?'),
                (min, None) => write_into(out, format_args!("{{{min},}}")),
                (min, Some(max)) => write_into(out, format_args!("{{{min},{max}}}")),
            }
            if *greed == Greed::Lazy {
                out.push('?');
            }
        }
        // Kept out by `Demands`.
        Node::Atomic(_) | Node::Look { .. } | Node::Same { .. } | Node::IfMatched { .. } => {}
    }
}

/// A piece that stays one piece beside others.
fn write_group(node: &Node, form: Form, out: &mut String) {
    match node {
        Node::One(_) | Node::At(_) => write_node(node, form, out),
        _ => {
            out.push_str("(?:");
            write_node(node, form, out);
            out.push(')');
        }
    }
}

/// A row of sets, one character each.
pub fn row(sets: &[&Set]) -> Option<Regex> {
    let mut out = String::new();
    sets.iter().for_each(|set| write_set(set, Form::Plain, &mut out));
    RegexBuilder::new(&out).size_limit(SIZE_LIMIT).build().ok()
}

fn write_set(set: &Set, form: Form, out: &mut String) {
    if let ([Item::Range(low, high)], false, Form::Plain) = (set.items.as_slice(), set.negated, form)
        && low == high
        && char::from_u32(*low).is_some()
    {
        return write_into(out, format_args!(r"\x{{{low:x}}}"));
    }
    let newline_is_in = super::sets::contains(set, '\n');
    out.push_str(match (form, newline_is_in) {
        (Form::Plain, _) => "[",
        (Form::NulForLastNewline, true) => r"[\x00[",
        (Form::NulForLastNewline, false) => r"[[^\x00]&&[",
    });
    if set.negated {
        out.push('^');
    }
    let before = out.len();
    for item in &set.items {
        match *item {
            Item::Range(low, high) => write_range(low, high, out),
            Item::Class { class, negated, ascii } => {
                let members = match (class, ascii) {
                    (Class::Digit, false) => r"\p{Nd}",
                    (Class::Digit, true) => "0-9",
                    (Class::Space, false) => r"\s\x1c-\x1f",
                    (Class::Space, true) => r"\t-\r\x20",
                    (Class::Word, false) => r"\p{L}\p{N}_",
                    (Class::Word, true) => "0-9A-Za-z_",
                };
                write_into(out, format_args!("[{}{members}]", if negated { "^" } else { "" }));
            }
        }
    }
    if out.len() == before {
        // Empty (all but nothing, or surrogates only), which the engine's syntax cannot say.
        out.push_str("[a&&b]");
    }
    out.push_str(match form {
        Form::Plain => "]",
        Form::NulForLastNewline => "]]",
    });
}

/// Surrogates are left out: no text has them.
fn write_range(low: u32, high: u32, out: &mut String) {
    for (low, high) in [(low, high.min(0xd7ff)), (low.max(0xe000), high)] {
        if low <= high {
            write_into(out, format_args!(r"\x{{{low:x}}}-\x{{{high:x}}}"));
        }
    }
}

/// Writing to a text cannot fail.
fn write_into(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(arguments);
}
