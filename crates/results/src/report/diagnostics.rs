//! Diagnostics of a file for people.

use std::path::Path;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::terminal_safe::{is_direction_mark, terminal_safe};
use practicum_core::model::{Diagnostic, Diagnostics, Severity, Span, count_with_noun};

/// Writes the problems of one file for people: position, excerpt, one sentence, a hint.
pub fn render(diagnostics: &Diagnostics, path: &Path, text: &str, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for diagnostic in diagnostics.iter() {
        out.push_str(&render_one_diagnostic(diagnostic, path, text, &renderer));
        out.push('\n');
    }
    if diagnostics.dropped() > 0 {
        let shown_path = display_path(path);
        out.push_str(&format!(
            "and {} in {shown_path}\n",
            count_with_noun(diagnostics.dropped(), "more problem")
        ));
    }
    out
}

/// Gives a path as one would type it here, without characters that could harm a terminal: an author may have
/// chosen the names of folders, too.
pub fn display_path(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let below = here.as_deref().and_then(|here| path.strip_prefix(here).ok());
    let shortest = below.filter(|below| !below.as_os_str().is_empty()).unwrap_or(path);
    terminal_safe(&shortest.display().to_string())
}

fn render_one_diagnostic(diagnostic: &Diagnostic, path: &Path, text: &str, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Notice => Level::NOTE,
    };
    let message = terminal_safe(&diagnostic.message);
    let shown_path = display_path(path);
    let excerpt = diagnostic.span.map(|span| excerpt_around(text, span));
    let title = level.primary_title(message.as_str()).id(diagnostic.code);
    let mut group = Group::with_title(title);
    let clean;
    match &excerpt {
        Some((lines, first_line, range)) => {
            clean = blank_control_characters(lines);
            let snippet = Snippet::source(clean.as_str())
                .line_start(*first_line)
                .path(shown_path.as_str())
                .annotation(AnnotationKind::Primary.span(range.clone()));
            group = group.element(snippet);
        }
        None => group = group.element(annotate_snippets::Origin::path(shown_path.as_str())),
    }
    let help = diagnostic.help.as_deref().map(terminal_safe);
    if let Some(help) = &help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    renderer.render(&[group])
}

/// Gives the first few lines that a span touches, the number of the first, and the span within them.
fn excerpt_around(text: &str, span: Span) -> (&str, usize, std::ops::Range<usize>) {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(span.start);
    // A long span would fill the screen, and its beginning is enough.
    let first_break = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let end = floor(span.end).clamp(start, first_break);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    // A very long line is cut to a readable length. Columns are counted from the cut, so a line of ordinary length
    // stays whole, and the renderer shortens it.
    const MAX_EXCERPT_BYTES: usize = 4096;
    let shown_start = floor(line_start.max(start.saturating_sub(MAX_EXCERPT_BYTES)));
    let shown_end = floor(first_break.min(end + MAX_EXCERPT_BYTES));
    let line = text[..start].bytes().filter(|&byte| byte == b'\n').count() + 1;
    (&text[shown_start..shown_end], line, start - shown_start..end - shown_start)
}

/// Replaces control characters and direction marks by as many bytes, so that positions stay right.
fn blank_control_characters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' && c != '\t' || is_direction_mark(c) {
            out.extend(std::iter::repeat_n('?', c.len_utf8()));
        } else {
            out.push(c);
        }
    }
    out
}
