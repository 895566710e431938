//! The difference of two texts, as people read it.

/// Lines around a change that are shown too.
const AROUND: usize = 3;

/// Beyond this many pairs of lines a block is shown as replaced as a whole.
const MOST_PAIRS: usize = 4_000_000;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Line<'t> {
    Same(&'t str),
    Gone(&'t str),
    New(&'t str),
}

/// A unified diff of one file; empty if nothing differs.
pub fn unified(path: &str, before: &str, after: &str) -> String {
    let lines = compared(&split(before), &split(after));
    let changes: Vec<usize> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| !matches!(line, Line::Same(_)))
        .map(|(at, _)| at)
        .collect();
    if changes.is_empty() {
        return String::new();
    }
    let mut out = format!("--- a/{path}\n+++ b/{path}\n");
    let mut from = 0;
    while from < changes.len() {
        let mut to = from;
        while changes.get(to + 1).is_some_and(|next| next - changes[to] <= 2 * AROUND) {
            to += 1;
        }
        let start = changes[from].saturating_sub(AROUND);
        let end = (changes[to] + AROUND + 1).min(lines.len());
        out.push_str(&hunk(&lines, start, end));
        from = to + 1;
    }
    out
}

fn hunk(lines: &[Line<'_>], start: usize, end: usize) -> String {
    let old = |lines: &[Line<'_>]| lines.iter().filter(|line| !matches!(line, Line::New(_))).count();
    let new = |lines: &[Line<'_>]| lines.iter().filter(|line| !matches!(line, Line::Gone(_))).count();
    let (before, shown) = (&lines[..start], &lines[start..end]);
    let place = |before: usize, count: usize| format!("{},{count}", before + usize::from(count > 0));
    let mut out = format!("@@ -{} +{} @@\n", place(old(before), old(shown)), place(new(before), new(shown)));
    for line in shown {
        let (mark, text) = match line {
            Line::Same(text) => (' ', text),
            Line::Gone(text) => ('-', text),
            Line::New(text) => ('+', text),
        };
        out.push(mark);
        out.push_str(text);
        if !text.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
    out
}

fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The lines of both, those that stay as many as can be.
fn compared<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (middle_old, middle_new) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut lines: Vec<Line<'t>> = old[..head].iter().map(|line| Line::Same(line)).collect();
    lines.extend(middle(middle_old, middle_new));
    lines.extend(old[old.len() - tail..].iter().map(|line| Line::Same(line)));
    lines
}

/// By the longest common subsequence.
fn middle<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    if old.len().saturating_mul(new.len()) > MOST_PAIRS {
        let gone = old.iter().map(|line| Line::Gone(line));
        return gone.chain(new.iter().map(|line| Line::New(line))).collect();
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
            lines.push(Line::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            lines.push(Line::Gone(old[i]));
            i += 1;
        } else {
            lines.push(Line::New(new[j]));
            j += 1;
        }
    }
    lines.extend(old[i..].iter().map(|line| Line::Gone(line)));
    lines.extend(new[j..].iter().map(|line| Line::New(line)));
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
        assert_eq!(unified("SKILL.md", &before, &after), shown);
        assert_eq!(unified("SKILL.md", "a\n", "a\n"), "");
        assert_eq!(unified("n", "", "a\n"), "--- a/n\n+++ b/n\n@@ -0,0 +1,1 @@\n+a\n");
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_from_the_lines(
            old in prop::collection::vec("[abc]", 0..12), new in prop::collection::vec("[abc]", 0..12)
        ) {
            let (old, new): (Vec<&str>, Vec<&str>) =
                (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
            let lines = compared(&old, &new);
            let side = |left_out: fn(&Line<'_>) -> bool| -> Vec<String> {
                lines.iter().filter(|line| !left_out(line)).map(|line| match line {
                    Line::Same(text) | Line::Gone(text) | Line::New(text) => (*text).to_owned(),
                }).collect()
            };
            prop_assert_eq!(side(|line| matches!(line, Line::New(_))), old);
            prop_assert_eq!(side(|line| matches!(line, Line::Gone(_))), new);
        }
    }
}
