use super::super::reading::{Ids, activation, blank_case, slug};
use super::unused::Unused;
use practicum_core::model::{Base, Case, Diagnostics, Expect, Room};
use practicum_core::tree::{Object, text_of};

/// What a user might say, and whether the skill should then fire.
pub type Query = (String, Expect);

pub const LISTS: [(&str, Expect); 2] =
    [("should_trigger", Expect::Must), ("should_not_trigger", Expect::MustNot)];

pub fn queries(spec: &mut Object<'_>, unused: &mut Unused, diagnostics: &mut Diagnostics) -> Vec<Query> {
    let Some(node) = spec.given("trigger_tests") else { return Vec::new() };
    let Some(mut tests) = Object::new(node, "trigger_tests", diagnostics) else { return Vec::new() };
    let mut queries = Vec::new();
    for (key, expect) in LISTS {
        for node in tests.list(key, diagnostics).unwrap_or_default() {
            let Some(query) = text_of(node, key, diagnostics) else { continue };
            if query.trim().is_empty() {
                let message = format!("a query in \"{key}\" must not be blank");
                diagnostics.error("empty-text", node.span, message);
                continue;
            }
            queries.push((query.to_owned(), expect));
        }
    }
    unused.rest(&tests, "trigger_tests", &["trigger_tests"], diagnostics);
    queries
}

pub fn id(query: &str, ids: &mut Ids) -> String {
    ids.derive(&format!("trigger-{}", slug(query, "query")))
}

/// One case a query, run once, as the format asks once.
pub fn cases(queries: &[Query], skill: &str, ids: &mut Ids) -> Vec<Case> {
    queries
        .iter()
        .map(|(query, expect)| Case {
            room: Room { base: Base::Project, ..Room::default() },
            checks: vec![activation(vec![skill.to_owned()], *expect)],
            repeat: Some(1),
            ..blank_case(id(query, ids), query.clone())
        })
        .collect()
}
