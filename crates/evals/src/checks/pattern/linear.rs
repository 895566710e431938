//! Patterns for the linear-time engine, which has no look-around, no groups to refer to, and its
//! own idea of `$` and `\b`.

use std::fmt::Write;
use std::sync::{LazyLock, OnceLock};

use regex::{Regex, RegexBuilder};

use super::syntax::{CharacterClass, CharacterSet, Greediness, PatternAnchor, PatternNode, SetItem};

/// What the engine may use for a compiled pattern. What needs more goes to the other engine,
/// where repetition costs no memory.
const SIZE_LIMIT: usize = 2 * 1024 * 1024;

/// What a pattern asks for that the engine does not have, or has otherwise.
#[derive(Debug, Clone, Copy, Default)]
pub struct EngineDemands {
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

    /// How the engine can search this text to the same effect, if it can.
    fn search_form(self, text: &str) -> Option<RegexForm> {
        if self.backtracking
            || self.word_edges && has_disputed_word_characters(text)
            // Python, up to 3.13, lets `\B` fail on an empty text.
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

/// Whether the text has characters that are part of a word here and not there: Python counts
/// letters and numbers, the engine marks and joiners too, but fewer numbers.
fn has_disputed_word_characters(text: &str) -> bool {
    static DISPUTED_CHARACTERS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"[\w~~[\p{L}\p{N}_]]").ok());
    !text.is_ascii() && DISPUTED_CHARACTERS.as_ref().is_none_or(|disputed| disputed.is_match(text))
}

/// Two ways to write the same pattern. The engine's line ends are where a byte of one's choice
/// is: with the last newline replaced by NUL, and no other NUL in the text, "at a line's end" is
/// exactly Python's `$`, and sets take NUL for the newline that it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RegexForm {
    Plain,
    NulForLastNewline,
}

/// The regexes for a pattern, made when first asked for. `None` inside: the engine refuses.
#[derive(Debug, Default)]
pub struct LinearRegexes {
    plain: OnceLock<Option<Regex>>,
    plain_whole: OnceLock<Option<Regex>>,
    nul: OnceLock<Option<Regex>>,
    nul_whole: OnceLock<Option<Regex>>,
}

/// A regex, and the text as it must be given to it.
pub struct LinearSearch<'p, 't> {
    pub regex: &'p Regex,
    pub text: std::borrow::Cow<'t, str>,
}

impl LinearRegexes {
    /// What to search instead of `text`, byte for byte at the same places. `whole`: the match
    /// must span the text.
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
        // Kept out by `EngineDemands`.
        PatternNode::Atomic(_)
        | PatternNode::LookAround { .. }
        | PatternNode::BackReference { .. }
        | PatternNode::IfMatched { .. } => {}
    }
}

/// A piece that stays one piece beside others.
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

/// A row of sets, one character each.
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
        // Empty (all but nothing, or surrogates only), which the engine's syntax cannot say.
        out.push_str("[a&&b]");
    }
    out.push_str(match form {
        RegexForm::Plain => "]",
        RegexForm::NulForLastNewline => "]]",
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
