//! Translates patterns for the linear-time engine. That engine has no look-around and no back-references, and its
//! `$` and `\b` differ from Python's.

use std::fmt::Write;
use std::sync::{LazyLock, OnceLock};

use regex::{Regex, RegexBuilder};

use super::syntax::{CharacterClass, CharacterSet, Greediness, PatternAnchor, PatternNode, SetItem};

/// The memory that the linear engine may use for a compiled pattern. A pattern that needs more goes to the
/// backtracking engine, where repetition costs no memory.
const SIZE_LIMIT: usize = 2 * 1024 * 1024;

/// The features of a pattern that the linear engine lacks or treats differently.
#[derive(Debug, Clone, Copy, Default)]
pub struct EngineDemands {
    /// Look-around, back-references or atomic groups, which the linear engine does not have.
    backtracking: bool,
    /// A `$` that also matches before the last newline.
    dollar: bool,
    /// A `^` or `$` that matches at lines.
    lines: bool,
    /// A `\b` or `\B` that uses Unicode's words.
    word_edges: bool,
    /// A `\B` of any kind.
    not_word_edges: bool,
    /// A loop around something that can match nothing. Python leaves the loop after an empty turn; the linear
    /// engine may find more. Both agree on whether and where a match begins, but not always on where it ends.
    pub empty_turns: bool,
}

impl EngineDemands {
    pub fn from_node(node: &PatternNode) -> Self {
        let mut demands = Self::default();
        node.visit(&mut |node| match node {
            PatternNode::LookAround { .. }
            | PatternNode::BackReference { .. }
            | PatternNode::IfMatched { .. }
            | PatternNode::Atomic(_)
            | PatternNode::Repeat { greed: Greediness::Possessive, .. } => demands.backtracking = true,
            PatternNode::Anchor(PatternAnchor::EndOrLastNewline) => demands.dollar = true,
            PatternNode::Anchor(PatternAnchor::LineStart | PatternAnchor::LineEnd) => demands.lines = true,
            PatternNode::Anchor(PatternAnchor::WordEdge { ascii }) => demands.word_edges |= !ascii,
            PatternNode::Anchor(PatternAnchor::NotWordEdge { ascii }) => {
                demands.word_edges |= !ascii;
                demands.not_word_edges = true;
            }
            PatternNode::Repeat { node, max, .. } => {
                let width = node.width();
                demands.empty_turns |= max.is_none_or(|max| max > 1) && width.min == 0 && width.max > 0;
            }
            PatternNode::Anchor(PatternAnchor::Start | PatternAnchor::End)
            | PatternNode::OneCharacter(_)
            | PatternNode::Sequence(_)
            | PatternNode::Alternatives(_)
            | PatternNode::Capture(..) => {}
        });
        demands
    }

    /// Gives the form in which the linear engine can search this text with Python's result, if there is one.
    fn search_form(self, text: &str) -> Option<RegexForm> {
        if self.backtracking
            || self.word_edges && has_disputed_word_characters(text)
            // In Python up to 3.13, `\B` fails on an empty text.
            || self.not_word_edges && text.is_empty()
        {
            return None;
        }
        if !self.dollar || !text.ends_with('\n') {
            return Some(RegexForm::Plain);
        }
        (!self.lines && !text.contains('\0')).then_some(RegexForm::NulForLastNewline)
    }
}

/// Says whether the text has characters that are part of a word for only one of the two. Python counts letters and
/// numbers. The engine also counts marks and joiners, but fewer numbers.
fn has_disputed_word_characters(text: &str) -> bool {
    static DISPUTED_CHARACTERS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"[\w~~[\p{L}\p{N}_]]").ok());
    !text.is_ascii() && DISPUTED_CHARACTERS.as_ref().is_none_or(|disputed| disputed.is_match(text))
}

/// The two ways to write a pattern for the linear engine. The engine lets us choose which byte ends a line. If the
/// last newline is replaced by NUL and the text has no other NUL, then "at the end of a line" is exactly Python's
/// `$`. The sets of the pattern treat NUL as the newline that it replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RegexForm {
    Plain,
    NulForLastNewline,
}

/// The regexes for a pattern, compiled on first use. `None` inside means that the engine refuses the pattern.
#[derive(Debug, Default)]
pub struct LinearRegexes {
    plain: OnceLock<Option<Regex>>,
    plain_whole: OnceLock<Option<Regex>>,
    nul: OnceLock<Option<Regex>>,
    nul_whole: OnceLock<Option<Regex>>,
}

/// A regex, and the text as the regex must get it.
pub struct LinearSearch<'p, 't> {
    pub regex: &'p Regex,
    pub text: std::borrow::Cow<'t, str>,
}

impl LinearRegexes {
    /// Gives the regex and the text to search in place of `text`; all byte positions are the same. With `whole`,
    /// the match must cover the whole text.
    pub fn search<'p, 't>(
        &'p self,
        node: &PatternNode,
        demands: EngineDemands,
        text: &'t str,
        whole: bool,
    ) -> Option<LinearSearch<'p, 't>> {
        let form = demands.search_form(text)?;
        let regex = match (form, whole) {
            (RegexForm::Plain, false) => &self.plain,
            (RegexForm::Plain, true) => &self.plain_whole,
            (RegexForm::NulForLastNewline, false) => &self.nul,
            (RegexForm::NulForLastNewline, true) => &self.nul_whole,
        };
        let regex = regex.get_or_init(|| compile(node, form, whole)).as_ref()?;
        let text = match form {
            RegexForm::Plain => text.into(),
            RegexForm::NulForLastNewline => format!("{}\0", &text[..text.len() - 1]).into(),
        };
        Some(LinearSearch { regex, text })
    }
}

fn compile(node: &PatternNode, form: RegexForm, whole: bool) -> Option<Regex> {
    let mut out = String::new();
    out.push_str(if whole { r"\A(?:" } else { "(?:" });
    write_node(node, form, &mut out);
    out.push_str(if whole { r")\z" } else { ")" });
    let mut builder = RegexBuilder::new(&out);
    builder.size_limit(SIZE_LIMIT).nest_limit(2000);
    if form == RegexForm::NulForLastNewline {
        builder.line_terminator(0);
    }
    builder.build().ok()
}

fn write_node(node: &PatternNode, form: RegexForm, out: &mut String) {
    match node {
        PatternNode::OneCharacter(set) => write_set(set, form, out),
        PatternNode::Anchor(at) => out.push_str(match at {
            PatternAnchor::Start => r"\A",
            PatternAnchor::End => r"\z",
            PatternAnchor::EndOrLastNewline => match form {
                RegexForm::Plain => r"\z",
                RegexForm::NulForLastNewline => "(?m:$)",
            },
            PatternAnchor::LineStart => "(?m:^)",
            PatternAnchor::LineEnd => "(?m:$)",
            PatternAnchor::WordEdge { ascii: false } => r"\b",
            PatternAnchor::WordEdge { ascii: true } => r"(?-u:\b)",
            PatternAnchor::NotWordEdge { ascii: false } => r"\B",
            PatternAnchor::NotWordEdge { ascii: true } => r"(?-u:\B)",
        }),
        PatternNode::Sequence(nodes) => {
            for node in nodes {
                write_group(node, form, out);
            }
        }
        PatternNode::Alternatives(nodes) => {
            for (index, node) in nodes.iter().enumerate() {
                if index > 0 {
                    out.push('|');
                }
                write_node(node, form, out);
            }
        }
        PatternNode::Capture(_, node) => write_group(node, form, out),
        PatternNode::Repeat { node, min, max, greed } => {
            write_group(node, form, out);
            match (min, max) {
                (0, None) => out.push('*'),
                (1, None) => out.push('+'),
                (0, Some(1)) => out.push('?'),
                (min, None) => write_into(out, format_args!("{{{min},}}")),
                (min, Some(max)) => write_into(out, format_args!("{{{min},{max}}}")),
            }
            if *greed == Greediness::Lazy {
                out.push('?');
            }
        }
        // `EngineDemands` rules these out.
        PatternNode::Atomic(_)
        | PatternNode::LookAround { .. }
        | PatternNode::BackReference { .. }
        | PatternNode::IfMatched { .. } => {}
    }
}

/// Writes a piece so that it stays one piece beside others.
fn write_group(node: &PatternNode, form: RegexForm, out: &mut String) {
    match node {
        PatternNode::OneCharacter(_) | PatternNode::Anchor(_) => write_node(node, form, out),
        _ => {
            out.push_str("(?:");
            write_node(node, form, out);
            out.push(')');
        }
    }
}

/// Makes a regex for a row of sets, one character each.
pub fn sets_regex(sets: &[&CharacterSet]) -> Option<Regex> {
    let mut out = String::new();
    sets.iter().for_each(|set| write_set(set, RegexForm::Plain, &mut out));
    RegexBuilder::new(&out).size_limit(SIZE_LIMIT).build().ok()
}

fn write_set(set: &CharacterSet, form: RegexForm, out: &mut String) {
    if let ([SetItem::Range(low, high)], false, RegexForm::Plain) = (set.items.as_slice(), set.negated, form)
        && low == high
        && char::from_u32(*low).is_some()
    {
        return write_into(out, format_args!(r"\x{{{low:x}}}"));
    }
    let newline_is_in = super::sets::set_contains(set, '\n');
    out.push_str(match (form, newline_is_in) {
        (RegexForm::Plain, _) => "[",
        (RegexForm::NulForLastNewline, true) => r"[\x00[",
        (RegexForm::NulForLastNewline, false) => r"[[^\x00]&&[",
    });
    if set.negated {
        out.push('^');
    }
    let before = out.len();
    for item in &set.items {
        match *item {
            SetItem::Range(low, high) => write_range(low, high, out),
            SetItem::Class { class, negated, ascii } => {
                let members = match (class, ascii) {
                    (CharacterClass::Digit, false) => r"\p{Nd}",
                    (CharacterClass::Digit, true) => "0-9",
                    (CharacterClass::Space, false) => r"\s\x1c-\x1f",
                    (CharacterClass::Space, true) => r"\t-\r\x20",
                    (CharacterClass::Word, false) => r"\p{L}\p{N}_",
                    (CharacterClass::Word, true) => "0-9A-Za-z_",
                };
                write_into(out, format_args!("[{}{members}]", if negated { "^" } else { "" }));
            }
        }
    }
    if out.len() == before {
        // The set is empty (the complement of everything, or only surrogates), and the engine has no syntax for
        // that.
        out.push_str("[a&&b]");
    }
    out.push_str(match form {
        RegexForm::Plain => "]",
        RegexForm::NulForLastNewline => "]]",
    });
}

/// Writes a range of characters without surrogates, because no text has them.
fn write_range(low: u32, high: u32, out: &mut String) {
    for (low, high) in [(low, high.min(0xd7ff)), (low.max(0xe000), high)] {
        if low <= high {
            write_into(out, format_args!(r"\x{{{low:x}}}-\x{{{high:x}}}"));
        }
    }
}

/// Writes formatted text. Writing to a string cannot fail.
fn write_into(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(arguments);
}
