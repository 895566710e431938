//! The difference of two texts as a unified diff.

/// The number of unchanged lines that are shown around a change.
const CONTEXT_LINES: usize = 3;

/// The greatest number of pairs of lines to compare. A larger block is shown as replaced as a whole.
const MAX_LINE_PAIRS: usize = 4_000_000;

#[derive(Debug, Clone, Copy, PartialEq)]
enum DiffLine<'t> {
    Same(&'t str),
    Removed(&'t str),
    Added(&'t str),
}

/// Writes a unified diff of one file; empty if nothing differs.
pub fn unified_diff(path: &str, before: &str, after: &str) -> String {
    let lines = diff_lines(&split_lines(before), &split_lines(after));
    let changes: Vec<usize> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| !matches!(line, DiffLine::Same(_)))
        .map(|(at, _)| at)
        .collect();
    if changes.is_empty() {
        return String::new();
    }
    let mut out = format!("--- a/{path}\n+++ b/{path}\n");
    let mut from = 0;
    while from < changes.len() {
        let mut to = from;
        while changes.get(to + 1).is_some_and(|next| next - changes[to] <= 2 * CONTEXT_LINES) {
            to += 1;
        }
        let start = changes[from].saturating_sub(CONTEXT_LINES);
        let end = (changes[to] + CONTEXT_LINES + 1).min(lines.len());
        out.push_str(&format_hunk(&lines, start, end));
        from = to + 1;
    }
    out
}

fn format_hunk(lines: &[DiffLine<'_>], start: usize, end: usize) -> String {
    let old =
        |lines: &[DiffLine<'_>]| lines.iter().filter(|line| !matches!(line, DiffLine::Added(_))).count();
    let new =
        |lines: &[DiffLine<'_>]| lines.iter().filter(|line| !matches!(line, DiffLine::Removed(_))).count();
    let (before, shown) = (&lines[..start], &lines[start..end]);
    let place = |before: usize, count: usize| format!("{},{count}", before + usize::from(count > 0));
    let mut out = format!("@@ -{} +{} @@\n", place(old(before), old(shown)), place(new(before), new(shown)));
    for line in shown {
        let (mark, text) = match line {
            DiffLine::Same(text) => (' ', text),
            DiffLine::Removed(text) => ('-', text),
            DiffLine::Added(text) => ('+', text),
        };
        out.push(mark);
        out.push_str(text);
        if !text.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
    out
}

fn split_lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Compares two lists of lines and keeps as many lines as possible unchanged.
fn diff_lines<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<DiffLine<'t>> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (middle_old, middle_new) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut lines: Vec<DiffLine<'t>> = old[..head].iter().map(|line| DiffLine::Same(line)).collect();
    lines.extend(diff_by_common_subsequence(middle_old, middle_new));
    lines.extend(old[old.len() - tail..].iter().map(|line| DiffLine::Same(line)));
    lines
}

/// Compares two lists of lines by their longest common subsequence.
fn diff_by_common_subsequence<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<DiffLine<'t>> {
    if old.len().saturating_mul(new.len()) > MAX_LINE_PAIRS {
        let gone = old.iter().map(|line| DiffLine::Removed(line));
        return gone.chain(new.iter().map(|line| DiffLine::Added(line))).collect();
    }
    let width = new.len() + 1;
    let mut longest = vec![0u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            longest[i * width + j] = match old[i] == new[j] {
                true => longest[(i + 1) * width + j + 1] + 1,
                false => longest[(i + 1) * width + j].max(longest[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            lines.push(DiffLine::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            lines.push(DiffLine::Removed(old[i]));
            i += 1;
        } else {
            lines.push(DiffLine::Added(new[j]));
            j += 1;
        }
    }
    lines.extend(old[i..].iter().map(|line| DiffLine::Removed(line)));
    lines.extend(new[j..].iter().map(|line| DiffLine::Added(line)));
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn a_change_is_shown_with_what_is_around_it() {
        let before: String = (1..=12).map(|n| format!("line {n}\n")).collect();
        let after = before.replace("line 6\n", "line six\nand a half\n").replace("line 12\n", "end");
        let shown = "--- a/SKILL.md\n+++ b/SKILL.md\n@@ -3,10 +3,11 @@\n line 3\n line 4\n line 5\n-line 6\n+line six\n+and a half\n line 7\n line 8\n line 9\n line 10\n line 11\n-line 12\n+end\n\\ No newline at end of file\n";
        assert_eq!(unified_diff("SKILL.md", &before, &after), shown);
        assert_eq!(unified_diff("SKILL.md", "a\n", "a\n"), "");
        assert_eq!(unified_diff("n", "", "a\n"), "--- a/n\n+++ b/n\n@@ -0,0 +1,1 @@\n+a\n");
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_from_the_lines(
            old in prop::collection::vec("[abc]", 0..12), new in prop::collection::vec("[abc]", 0..12)
        ) {
            let (old, new): (Vec<&str>, Vec<&str>) =
                (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
            let lines = diff_lines(&old, &new);
            let side = |left_out: fn(&DiffLine<'_>) -> bool| -> Vec<String> {
                lines.iter().filter(|line| !left_out(line)).map(|line| match line {
                    DiffLine::Same(text) | DiffLine::Removed(text) | DiffLine::Added(text) => (*text).to_owned(),
                }).collect()
            };
            prop_assert_eq!(side(|line| matches!(line, DiffLine::Added(_))), old);
            prop_assert_eq!(side(|line| matches!(line, DiffLine::Removed(_))), new);
        }
    }
}
