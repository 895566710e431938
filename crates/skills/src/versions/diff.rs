//! The difference of two texts as a unified diff.

use std::time::Duration;

use similar::TextDiff;

/// The longest time to look for the smallest difference. After it, the rest of two large texts is shown as replaced.
const MAX_TIME: Duration = Duration::from_secs(1);

/// Writes a unified diff of one file; empty if nothing differs.
pub fn unified_diff(path: &str, before: &str, after: &str) -> String {
    // Lines end with a line feed only: for the crate's own splitting, a carriage return would end one too.
    let (old, new) = (split_lines(before), split_lines(after));
    let diff = TextDiff::configure().timeout(MAX_TIME).diff_slices(&old, &new);
    let mut out = String::new();
    for hunk in diff.unified_diff().iter_hunks() {
        if out.is_empty() {
            out = format!("--- a/{path}\n+++ b/{path}\n");
        }
        out.push_str(&format!("{}\n", hunk.header()));
        for change in hunk.iter_changes() {
            out.push_str(&format!("{}{}", change.tag(), change.value()));
            if !change.value().ends_with('\n') {
                out.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    out
}

fn split_lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn a_change_is_shown_with_what_is_around_it() {
        let before: String = (1..=12).map(|n| format!("line {n}\n")).collect();
        let after = before.replace("line 6\n", "line six\nand a half\n").replace("line 12\n", "end");
        let shown = "--- a/SKILL.md\n+++ b/SKILL.md\n@@ -3,10 +3,11 @@\n line 3\n line 4\n line 5\n-line 6\n+line six\n+and a half\n line 7\n line 8\n line 9\n line 10\n line 11\n-line 12\n+end\n\\ No newline at end of file\n";
        assert_eq!(unified_diff("SKILL.md", &before, &after), shown);
        assert_eq!(unified_diff("SKILL.md", "a\n", "a\n"), "");
        assert_eq!(unified_diff("n", "", "a\n"), "--- a/n\n+++ b/n\n@@ -0,0 +1 @@\n+a\n");
        assert_eq!(
            unified_diff("n", "a\rb\n", "a\rc\r"),
            "--- a/n\n+++ b/n\n@@ -1 +1 @@\n-a\rb\n+a\rc\r\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn large_texts_without_a_common_line_are_shown_in_bounded_time() {
        let text = |word: &str| (0..60_000).map(|n| format!("{word} {n}\n")).collect::<String>();
        let started = std::time::Instant::now();
        let shown = unified_diff("n", &text("old"), &text("new"));
        assert!(shown.starts_with("--- a/n\n+++ b/n\n@@ -1,60000 +1,60000 @@\n-old 0\n"), "{shown:.200}");
        assert_eq!(shown.lines().count(), 120_003);
        assert!(started.elapsed() < 10 * MAX_TIME);
    }

    /// Gives the lines of the diff with one of the prefixes, without the prefix.
    fn one_side(diff: &str, prefixes: [char; 2]) -> String {
        let whole = diff.replace("\n\\ No newline at end of file\n", "\u{0}");
        let lines = whole.split_inclusive(['\n', '\u{0}']).filter(|line| line.starts_with(prefixes));
        lines.filter_map(|line| line.get(1..)).collect::<String>().replace('\u{0}', "")
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_from_the_diff(old in "([ab-]?\r?\n){0,3}[ab\r]?", new in "([ab-]?\r?\n){0,3}[ab\r]?") {
            let diff = unified_diff("n", &old, &new);
            let (_, hunks) = diff.split_once("@@\n").unwrap_or_default();
            let sides = (one_side(hunks, [' ', '-']), one_side(hunks, [' ', '+']));
            let expected = if old == new { Default::default() } else { (old, new) };
            prop_assert_eq!(sides, expected);
        }
    }
}
