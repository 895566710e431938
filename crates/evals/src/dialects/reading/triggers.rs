use serde_json::{Value, json};

use super::{
    Ids, Kept, activation, activation_conditions, activation_schema, blank_case, expected_activation, slug,
};
use practicum_core::model::{Case, Check, Diagnostics, Expect, PassRule, Room, Span};
use practicum_core::tree::shape::{self, Mapping};
use practicum_core::tree::{Data, Entry, Node, Object, wrong_type};

/// How often a query runs when nobody says.
pub const RUNS: u32 = 3;

/// The share of runs from which on a skill counts as fired, when nobody says.
pub const THRESHOLD: f64 = 0.5;

/// A list of queries, each with whether the skill should fire.
pub struct Triggers<'t> {
    pub skill: &'t str,
    pub room: &'t Room,
}

/// Whether a list is meant as a trigger set.
pub fn are(items: &[Node]) -> bool {
    items.iter().any(|item| item.has("query") || item.has("should_trigger") && !is_checked_otherwise(item))
}

/// Whether an item says more than whether the skill must be activated, so that it is an eval.
fn is_checked_otherwise(item: &Node) -> bool {
    ["expectations", "rubric", "assertions", "expected_output"].iter().any(|key| item.has(key))
}

/// The list in a mapping that is a trigger set, if its author put one around it.
fn wrapped(root: &Node) -> Option<&Entry> {
    let mut entries = root.as_map().unwrap_or_default().iter();
    entries.find(|entry| entry.value.as_list().is_some_and(are))
}

/// Whether a mapping is meant as a trigger set, which is a list.
pub fn are_wrapped(root: &Node) -> bool {
    wrapped(root).is_some() || root.has("query") && root.has("should_trigger")
}

/// Says how a mapping becomes the trigger set that it is meant to be.
pub fn refuse_mapping(root: &Node, diagnostics: &mut Diagnostics) {
    let start = Span::new(root.span.start, root.span.start + 1);
    let help = match wrapped(root) {
        Some(entry) => format!("keep only the list under \"{}\"", entry.key),
        None => r#"write [{"query": "...", "should_trigger": true}]"#.to_owned(),
    };
    diagnostics.error_help("wrong-type", start, "a trigger set must be a list, not a mapping", help);
}

/// The keys of the two lists of queries: those for which the skill must be activated, and must not.
const SORTED: (&str, &str) = ("should_trigger", "should_not_trigger");

/// Queries in two lists, or in one, as JSON Schema.
pub fn sorted_schema() -> Value {
    let query = Mapping::open()
        .must("query", "What the user says, in a session of its own.", shape::filled())
        .may("rationale", "Why, for people.", shape::text())
        .may(
            "id",
            "A name that stays; by default made from the query.",
            shape::either([shape::filled(), json!({"type": "integer"})]),
        );
    let queries = shape::list(shape::either([shape::filled(), query.into()]));
    let (must, must_not) = SORTED;
    let lists = Mapping::open()
        .may(must, "Queries for which the agent must activate the skill.", queries.clone())
        .may(must_not, "Queries for which the agent must not activate the skill.", queries)
        .may("description", "What the queries are about, for people.", json!({}));
    shape::either([lists.into(), shape::list(item())])
}

/// What a trigger set may hold, as JSON Schema.
pub fn schema() -> Value {
    shape::document(
        "Trigger set (triggers.json)",
        "Queries for which a skill's description should or should not fire, as BMad and skill-creator \
         write them.",
        shape::some(item()),
        [],
    )
}

fn item() -> Mapping {
    let item = Mapping::open()
        .may("query", "What the user says, in a session of its own.", shape::filled())
        .may("prompt", "What the user says, by another key.", shape::filled())
        .may(
            "id",
            "A name that stays; by default made from the query.",
            shape::either([shape::filled(), json!({"type": "integer"})]),
        );
    activation_schema(item).with(
        "allOf",
        json!([
            {"anyOf": [{"required": ["query"]}, {"required": ["prompt"]}]},
            {"anyOf": activation_conditions()},
        ]),
    )
}

impl Triggers<'_> {
    pub fn cases(&self, items: &[Node], kept: &mut Kept, diagnostics: &mut Diagnostics) -> Vec<Case> {
        let mut ids = Ids::default();
        if items.is_empty() {
            diagnostics.error("no-cases", None, "there are no queries; a suite without cases proves nothing");
        }
        items.iter().filter_map(|node| self.case(node, &mut ids, kept, diagnostics)).collect()
    }

    /// The cases of queries that stand in a mapping under `should_trigger` and `should_not_trigger`, or in a
    /// list in which each says it of itself.
    pub fn sorted_cases(
        &self,
        node: &Node,
        key: &'static str,
        ids: &mut Ids,
        kept: &mut Kept,
        diagnostics: &mut Diagnostics,
    ) -> Vec<Case> {
        let mut cases = Vec::new();
        if let Data::List(items) = &node.data {
            cases.extend(items.iter().filter_map(|item| self.case(item, ids, kept, diagnostics)));
            return cases;
        }
        let Data::Map(_) = &node.data else {
            wrong_type(node, key, "a list, or a mapping of two lists", diagnostics);
            return cases;
        };
        let Some(mut lists) = Object::new(node, "the trigger queries", diagnostics) else { return cases };
        let (must, must_not) = SORTED;
        for (key, expect) in [(must, Expect::Must), (must_not, Expect::MustNot)] {
            for item in lists.list(key, diagnostics).unwrap_or_default() {
                cases.extend(self.sorted_case(item, expect, ids, kept, diagnostics));
            }
        }
        // Words about the queries, for people.
        lists.get("description");
        kept.rest(&lists, "the trigger queries", diagnostics);
        cases
    }

    /// A query that stands in a list of queries for which the same is expected: a text, or a mapping.
    fn sorted_case(
        &self,
        node: &Node,
        expect: Expect,
        ids: &mut Ids,
        kept: &mut Kept,
        diagnostics: &mut Diagnostics,
    ) -> Option<Case> {
        let checks = vec![activation(vec![self.skill.to_owned()], expect)];
        if let Some(text) = node.as_text().filter(|text| !text.trim().is_empty()) {
            return Some(self.blank(ids.derive(&slug(text, "query")), text, checks));
        }
        let mut item = Object::new(node, "a trigger query", diagnostics)?;
        let query = item.required_text("query", diagnostics);
        let note = item.text("rationale", diagnostics).map(str::to_owned);
        let id = match item.given("id") {
            Some(_) => ids.given(&mut item, diagnostics),
            None => query.map(|query| ids.derive(&slug(query, "query"))),
        };
        let meta = kept.rest(&item, "a trigger query", diagnostics);
        Some(Case { note, meta, ..self.blank(id?, query?, checks) })
    }

    fn blank(&self, id: String, query: &str, checks: Vec<Check>) -> Case {
        let room = self.room.clone();
        let pass_when = PassRule::FireRate(None);
        Case { room, checks, pass_when, ..blank_case(id, query.to_owned()) }
    }

    fn case(
        &self,
        node: &Node,
        ids: &mut Ids,
        kept: &mut Kept,
        diagnostics: &mut Diagnostics,
    ) -> Option<Case> {
        let mut item = Object::new(node, "a trigger query", diagnostics)?;
        let key = if node.has("query") { "query" } else { "prompt" };
        let query = match node.has(key) {
            true => item.required_text(key, diagnostics),
            false => item.required_text("query", diagnostics),
        };
        let expected = expected_activation(&mut item, &[self.skill.to_owned()], diagnostics);
        if !expected.given {
            item.missing("should_trigger", diagnostics);
        }
        let id = match item.given("id") {
            Some(_) => ids.given(&mut item, diagnostics),
            None => query.map(|query| ids.derive(&slug(query, "query"))),
        };
        let meta = kept.rest(&item, "a trigger query", diagnostics);
        if expected.checks.is_empty() {
            return None;
        }
        Some(Case { meta, ..self.blank(id?, query?, expected.checks) })
    }
}
