//! Reads the trigger queries of a clauditor spec.

use super::super::reading::{UniqueIds, activation_check, blank_case, slug};
use super::unused_spec_keys::UnusedSpecKeys;
use practicum_core::model::{ActivationExpectation, Case, Diagnostics, WorkspaceBase, WorkspaceSpec};
use practicum_core::tree::{ObjectReader, node_text};

/// A user's message, and whether the skill should be activated by it.
pub type TriggerQuery = (String, ActivationExpectation);

/// The keys of the two lists of queries, each with its expectation.
pub const QUERY_LISTS: [(&str, ActivationExpectation); 2] =
    [("should_trigger", ActivationExpectation::Must), ("should_not_trigger", ActivationExpectation::MustNot)];

pub fn read_queries(
    spec: &mut ObjectReader<'_>,
    unused: &mut UnusedSpecKeys,
    diagnostics: &mut Diagnostics,
) -> Vec<TriggerQuery> {
    let Some(node) = spec.get_non_null("trigger_tests") else { return Vec::new() };
    let Some(mut tests) = ObjectReader::new(node, "trigger_tests", diagnostics) else { return Vec::new() };
    let mut queries = Vec::new();
    for (key, expect) in QUERY_LISTS {
        for node in tests.list(key, diagnostics).unwrap_or_default() {
            let Some(query) = node_text(node, key, diagnostics) else { continue };
            if query.trim().is_empty() {
                let message = format!("a query in \"{key}\" must not be blank");
                diagnostics.error("empty-text", node.span, message);
                continue;
            }
            queries.push((query.to_owned(), expect));
        }
    }
    unused.keep_rest(&tests, "trigger_tests", &["trigger_tests"], diagnostics);
    queries
}

pub fn query_id(query: &str, ids: &mut UniqueIds) -> String {
    ids.make_unique(&format!("trigger-{}", slug(query, "query")))
}

/// Makes one case for each query. It runs once, as in the original tool.
pub fn query_cases(queries: &[TriggerQuery], skill: &str, ids: &mut UniqueIds) -> Vec<Case> {
    queries
        .iter()
        .map(|(query, expect)| Case {
            workspace: WorkspaceSpec { base: WorkspaceBase::Project, ..WorkspaceSpec::default() },
            checks: vec![activation_check(vec![skill.to_owned()], *expect)],
            repeat: Some(1),
            ..blank_case(query_id(query, ids), query.clone())
        })
        .collect()
}
