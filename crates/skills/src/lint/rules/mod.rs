//! The lint rules, one file for each.

mod body_empty;
mod body_tokens;
mod body_too_long;
mod command_empty;
mod compatibility_length;
mod description_missing;
mod description_no_trigger;
mod description_person;
mod description_too_long;
mod description_vague;
mod description_workflow;
pub(super) mod discipline_without_counters;
mod evals_ids;
mod file_name;
mod frontmatter_missing;
mod frontmatter_not_yaml;
mod frontmatter_unclosed;
mod frontmatter_yaml;
mod large_block;
mod link_broken;
mod link_chain;
mod link_outside;
mod mentioned_file_missing;
mod name_characters;
mod name_folder;
mod name_missing;
mod name_not_ascii;
mod name_reserved;
mod name_too_long;
mod no_headings;
mod no_references;
mod script_not_runnable;
mod unknown_key;
mod unreadable_file;
pub(super) mod word_count;
mod wrong_type;
mod xml_tag;

use super::{LintRule, SkillFileDraft};
use practicum_core::model::Span;

/// Every rule, grouped by the part of a skill that it checks.
pub static RULES: &[&LintRule] = &[
    &unreadable_file::RULE,
    &file_name::RULE,
    &frontmatter_missing::RULE,
    &frontmatter_unclosed::RULE,
    &frontmatter_yaml::RULE,
    &frontmatter_not_yaml::RULE,
    &unknown_key::RULE,
    &wrong_type::RULE,
    &name_missing::RULE,
    &name_too_long::RULE,
    &name_characters::RULE,
    &name_not_ascii::RULE,
    &name_folder::RULE,
    &name_reserved::RULE,
    &description_missing::RULE,
    &description_too_long::RULE,
    &description_vague::RULE,
    &description_no_trigger::RULE,
    &description_workflow::RULE,
    &description_person::RULE,
    &xml_tag::RULE,
    &compatibility_length::RULE,
    &body_empty::RULE,
    &command_empty::RULE,
    &body_too_long::RULE,
    &body_tokens::RULE,
    &word_count::RULE,
    &no_headings::RULE,
    &no_references::RULE,
    &large_block::RULE,
    &link_broken::RULE,
    &link_outside::RULE,
    &link_chain::RULE,
    &mentioned_file_missing::RULE,
    &script_not_runnable::RULE,
    &evals_ids::RULE,
    &discipline_without_counters::RULE,
];

/// The codes of the rules that apply to command files. A command file needs neither frontmatter nor name, no agent
/// chooses it by its description alone, and the paths in it are relative to the project.
pub const COMMAND_FILE_RULES: &[&str] = &[
    "unreadable-file",
    "frontmatter-unclosed",
    "frontmatter-yaml",
    "frontmatter-not-yaml",
    "unknown-key",
    "wrong-type",
    "description-too-long",
    "body-empty",
    "command-empty",
    "body-too-long",
    "body-tokens",
    "large-block",
];

/// Gives the rule with this code.
pub fn find_rule(code: &str) -> Option<&'static LintRule> {
    RULES.iter().copied().find(|rule| rule.code == code)
}

/// Gives the position at which to report that a required key is absent, null or blank. `None` if the key has a
/// value, even one of a wrong type, or if there is no frontmatter.
fn blank_key_span(draft: &SkillFileDraft, key: &str) -> Option<Span> {
    draft.frontmatter_entries()?;
    match draft.frontmatter_value(key) {
        None => Some(draft.opening_fence()),
        Some(node) if node.is_null() => {
            let entries = draft.frontmatter_entries().unwrap_or_default();
            entries.iter().find(|entry| entry.key == key).map(|entry| entry.key_span)
        }
        Some(node) => node.as_text().is_some_and(|text| text.trim().is_empty()).then_some(node.span),
    }
}

/// Shortens a piece of the user's text so that it fits into a sentence.
fn shorten_quote(text: &str) -> String {
    const MAX_QUOTE_LENGTH: usize = 80;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_QUOTE_LENGTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
