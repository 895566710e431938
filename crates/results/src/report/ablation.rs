//! The paragraphs of a skill with what each does for its results: on a terminal, and as a page.

use anstyle::{AnsiColor, Style};
use maud::{DOCTYPE, PreEscaped, html};

use super::{figures, html as page, terminal_safe};
use practicum_core::model::{ComparisonVerdict, count_with_noun};
use practicum_core::studies::{AblationDocument, AblationParagraph, AblationProposal, ParagraphRole};
use practicum_skills::own_files::OWN_FILE_MARK;

/// The number of letters of a paragraph that a terminal shows.
const SHOWN_LETTERS: usize = 60;
/// The length of the longest bar.
const BAR: f64 = 8.0;

/// Writes the study for a terminal: a line for each paragraph, with a bar as long as its effect.
pub fn render_text(of: &AblationDocument, colour: bool) -> String {
    let mut out = format!(
        "{}: pass rate {}, {}, {}\n",
        terminal_safe(&of.skill),
        figures::format_estimate(of.pass_rate),
        count_with_noun(of.paragraphs.len(), "paragraph"),
        count_with_noun(of.runs, "run")
    );
    for (at, paragraph) in of.paragraphs.iter().enumerate() {
        let style = if colour { style_of(paragraph.role) } else { Style::new() };
        let beginning: String = paragraph.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let beginning: String = beginning.chars().take(SHOWN_LETTERS).collect();
        out.push_str(&format!(
            "{style}{:>3}  {:<8}  {:<14}  {}  {:>5} tokens{style:#}  {}\n",
            at + 1,
            "█".repeat(bar_length(paragraph)),
            role_words(paragraph.role),
            effect_words(paragraph),
            paragraph.estimated_tokens,
            terminal_safe(&beginning)
        ));
    }
    if of.not_split > 0 {
        let groups = count_with_noun(of.not_split, "needed group");
        out.push_str(&format!("{groups} not split further: --max-runs is reached\n"));
    }
    match &of.proposal {
        Some(proposal) => out.push_str(&format!("{}\n", describe_proposal(proposal))),
        None => out.push_str("nothing was shown to be without effect, so nothing is proposed to be cut\n"),
    }
    out
}

fn bar_length(of: &AblationParagraph) -> usize {
    (of.effect.value.unwrap_or(0.0).abs().min(1.0) * BAR).round() as usize
}

fn effect_words(of: &AblationParagraph) -> String {
    let group = match of.group {
        0 | 1 => String::new(),
        count => format!(" (group of {count})"),
    };
    format!("{}{group}", figures::format_difference(of.effect))
}

fn style_of(role: ParagraphRole) -> Style {
    match role {
        ParagraphRole::Needed => AnsiColor::Green.on_default(),
        ParagraphRole::Harmful => AnsiColor::Red.on_default(),
        ParagraphRole::WithoutEffect => AnsiColor::Yellow.on_default(),
        ParagraphRole::Unclear => Style::new(),
    }
}

fn role_words(role: ParagraphRole) -> &'static str {
    match role {
        ParagraphRole::Needed => "needed",
        ParagraphRole::Harmful => "harmful",
        ParagraphRole::WithoutEffect => "without effect",
        ParagraphRole::Unclear => "unclear",
    }
}

/// Describes what can be cut, and what the skill does without it.
fn describe_proposal(of: &AblationProposal) -> String {
    let numbers: Vec<String> = of.cut.iter().map(|at| (at + 1).to_string()).collect();
    let verdict = match of.verdict {
        ComparisonVerdict::Equivalent => "the results are the same without all of them",
        ComparisonVerdict::Better => "the results are better without all of them",
        ComparisonVerdict::Worse => {
            "but without all of them the results are worse: they replace each other, do not cut all"
        }
        ComparisonVerdict::Inconclusive => {
            "whether the results are the same without all of them is not clear"
        }
    };
    format!(
        "can be cut: {} (about {} tokens, an estimate); {verdict}: {}",
        numbers.join(", "),
        of.estimated_tokens,
        figures::format_difference(of.effect)
    )
}

/// Writes the study as a page: the text of the skill, each paragraph coloured by what it does.
pub fn render_html(of: &AblationDocument) -> String {
    let policy = format!("default-src 'none'; style-src '{}'", page::STYLE_HASH);
    let markup = html! {
        (DOCTYPE)
        (PreEscaped(OWN_FILE_MARK))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Paragraphs of " (of.skill) " · practicum" }
                style { (PreEscaped(page::STYLE)) }
            }
            body { main {
                h1 { "Paragraphs of " (of.skill) }
                p { "Pass rate " (figures::format_estimate(of.pass_rate)) " in " (count_with_noun(of.runs, "run")) " of all versions. "
                    "The effect is the pass rate without the paragraph minus that of the whole skill." }
                @match &of.proposal {
                    Some(proposal) => p class="notice" { (describe_proposal(proposal)) },
                    None => p class="notice" { "Nothing was shown to be without effect, so nothing is proposed to be cut." },
                }
                @for paragraph in &of.paragraphs { (paragraph_card(paragraph)) }
            } }
        }
    };
    // The page's own style must stay as its hash says; it has no control characters.
    terminal_safe(&markup.into_string())
}

fn paragraph_card(of: &AblationParagraph) -> maud::Markup {
    let class = match of.role {
        ParagraphRole::Needed => "pass",
        ParagraphRole::Harmful => "fail",
        ParagraphRole::WithoutEffect => "none",
        ParagraphRole::Unclear => "faint",
    };
    let width = 10 + bar_length(of) * 15;
    let strength = format!("{:.2}", 0.15 + 0.8 * of.effect.value.unwrap_or(0.0).abs().min(1.0));
    html! {
        div class="card" {
            p class=(class) {
                svg width="140" height="14" viewBox="0 0 140 14" role="img" {
                    rect class={ "field " (class) } x="1" y="2" width=(width) height="10" rx="3" fill-opacity=(strength) {}
                }
                " " strong { (role_words(of.role)) } " " (effect_words(of)) " · " (of.estimated_tokens) " tokens"
            }
            pre { (of.text) }
        }
    }
}
