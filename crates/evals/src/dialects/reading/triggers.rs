//! Reads trigger sets: lists of queries, each with whether the skill should be activated.

use serde_json::{Value, json};

use super::case_keys::PROMPT_KEYS;
use super::{
    UniqueIds, UnusedKeys, activation_check, activation_conditions, activation_schema, blank_case,
    expected_activation, slug,
};
use practicum_core::model::{ActivationExpectation, Case, Check, Diagnostics, PassRule, Span, WorkspaceSpec};
use practicum_core::tree::json_schema::{self, MappingSchema};
use practicum_core::tree::{MapEntry, NodeData, ObjectReader, TreeNode, report_wrong_type};

/// The number of runs of a query that gives none.
pub const DEFAULT_RUNS: u32 = 3;

/// The share of runs from which on a skill counts as activated, if the file gives none.
pub const DEFAULT_THRESHOLD: f64 = 0.5;

/// A reader for a list of queries, each with whether the skill should be activated.
pub struct TriggerReader<'t> {
    pub skill: &'t str,
    pub workspace: &'t WorkspaceSpec,
}

/// Says whether a list is meant as a trigger set.
pub fn is_trigger_list(items: &[TreeNode]) -> bool {
    items.iter().any(|item| item.has("query") || item.has("should_trigger") && !has_other_checks(item))
}

/// Says whether an item has other checks than activation, which makes it an eval.
fn has_other_checks(item: &TreeNode) -> bool {
    ["expectations", "rubric", "assertions", "expected_output"].iter().any(|key| item.has(key))
}

/// Finds the trigger set in a mapping, if its author put a mapping around it.
fn wrapped_list(root: &TreeNode) -> Option<&MapEntry> {
    let mut entries = root.as_map().unwrap_or_default().iter();
    entries.find(|entry| entry.value.as_list().is_some_and(is_trigger_list))
}

/// Says whether a mapping is meant as a trigger set, which must be a list.
pub fn is_wrapped_list(root: &TreeNode) -> bool {
    wrapped_list(root).is_some() || root.has("query") && root.has("should_trigger")
}

/// Reports how to turn a mapping into the trigger set that it is meant to be.
pub fn refuse_mapping(root: &TreeNode, diagnostics: &mut Diagnostics) {
    let start = Span::new(root.span.start, root.span.start + 1);
    let help = match wrapped_list(root) {
        Some(entry) => format!("keep only the list under \"{}\"", entry.key),
        None => r#"write [{"query": "...", "should_trigger": true}]"#.to_owned(),
    };
    diagnostics.error_with_help("wrong-type", start, "a trigger set must be a list, not a mapping", help);
}

/// The keys of the two lists of queries: the skill must be activated, and must not.
const SORTED_LIST_KEYS: (&str, &str) = ("should_trigger", "should_not_trigger");

/// Whether a document is queries in two lists.
pub fn are_sorted_lists(root: &TreeNode) -> bool {
    let (must, must_not) = SORTED_LIST_KEYS;
    [must, must_not].iter().any(|key| root.get(key).is_some_and(|node| node.as_list().is_some()))
}

/// Gives the JSON Schema of trigger queries in two lists or in one.
pub fn sorted_schema() -> Value {
    let query = MappingSchema::open()
        .required("query", "What the user says, in a session of its own.", json_schema::nonempty_text())
        .optional("rationale", "Why, for people.", json_schema::text())
        .optional(
            "id",
            "A name that stays; by default made from the query.",
            json_schema::any_of([json_schema::nonempty_text(), json!({"type": "integer"})]),
        );
    let queries = json_schema::list(json_schema::any_of([json_schema::nonempty_text(), query.into()]));
    let (must, must_not) = SORTED_LIST_KEYS;
    let lists = MappingSchema::open()
        .optional(must, "Queries for which the agent must activate the skill.", queries.clone())
        .optional(must_not, "Queries for which the agent must not activate the skill.", queries)
        .optional("description", "What the queries are about, for people.", json!({}));
    json_schema::any_of([lists.into(), json_schema::list(item_schema())])
}

/// Gives the JSON Schema of a trigger set.
pub fn schema() -> Value {
    json_schema::document(
        "Trigger set (triggers.json)",
        "Queries that should or should not activate a skill, as BMad and skill-creator write them.",
        json_schema::nonempty_list(item_schema()),
        [],
    )
}

fn item_schema() -> MappingSchema {
    let item = MappingSchema::open()
        .optional("query", "What the user says, in a session of its own.", json_schema::nonempty_text())
        .optional("prompt", "What the user says, by another key.", json_schema::nonempty_text())
        .optional(
            "id",
            "A name that stays; by default made from the query.",
            json_schema::any_of([json_schema::nonempty_text(), json!({"type": "integer"})]),
        );
    activation_schema(item).with_keyword(
        "allOf",
        json!([
            {"anyOf": [{"required": ["query"]}, {"required": ["prompt"]}]},
            {"anyOf": activation_conditions()},
        ]),
    )
}

impl TriggerReader<'_> {
    pub fn read_cases(
        &self,
        items: &[TreeNode],
        kept: &mut UnusedKeys,
        diagnostics: &mut Diagnostics,
    ) -> Vec<Case> {
        let mut ids = UniqueIds::default();
        if items.is_empty() {
            diagnostics.error("no-cases", None, "there are no queries; a suite without cases proves nothing");
        }
        items.iter().filter_map(|node| self.read_case(node, &mut ids, kept, diagnostics)).collect()
    }

    /// Reads queries from a mapping with the lists `should_trigger` and `should_not_trigger`, or from one list in
    /// which each query says what it expects.
    pub fn read_sorted_cases(
        &self,
        node: &TreeNode,
        key: &'static str,
        ids: &mut UniqueIds,
        kept: &mut UnusedKeys,
        diagnostics: &mut Diagnostics,
    ) -> Vec<Case> {
        let mut cases = Vec::new();
        if let NodeData::List(items) = &node.data {
            cases.extend(items.iter().filter_map(|item| self.read_case(item, ids, kept, diagnostics)));
            return cases;
        }
        let NodeData::Map(_) = &node.data else {
            report_wrong_type(node, key, "a list, or a mapping of two lists", diagnostics);
            return cases;
        };
        let Some(mut lists) = ObjectReader::new(node, "the trigger queries", diagnostics) else {
            return cases;
        };
        let (must, must_not) = SORTED_LIST_KEYS;
        for (key, expect) in [(must, ActivationExpectation::Must), (must_not, ActivationExpectation::MustNot)]
        {
            for item in lists.list(key, diagnostics).unwrap_or_default() {
                cases.extend(self.read_sorted_case(item, expect, ids, kept, diagnostics));
            }
        }
        // A text about the queries, for people.
        lists.get("description");
        kept.collect_unused(&lists, "the trigger queries", diagnostics);
        cases
    }

    /// Reads a query from a list in which all queries expect the same. A query is a text or a mapping.
    fn read_sorted_case(
        &self,
        node: &TreeNode,
        expect: ActivationExpectation,
        ids: &mut UniqueIds,
        kept: &mut UnusedKeys,
        diagnostics: &mut Diagnostics,
    ) -> Option<Case> {
        let checks = vec![activation_check(vec![self.skill.to_owned()], expect)];
        if let Some(text) = node.as_text().filter(|text| !text.trim().is_empty()) {
            return Some(self.new_case(ids.make_unique(&slug(text, "query")), text, checks));
        }
        let mut item = ObjectReader::new(node, "a trigger query", diagnostics)?;
        let key = PROMPT_KEYS.into_iter().find(|key| node.has(key) && *key != "query");
        let query = item.required_text(key.unwrap_or("query"), diagnostics);
        let note = item.text("rationale", diagnostics).map(str::to_owned);
        let id = match item.get_non_null("id") {
            Some(_) => ids.read_id(&mut item, diagnostics),
            None => query.map(|query| ids.make_unique(&slug(query, "query"))),
        };
        let meta = kept.collect_unused(&item, "a trigger query", diagnostics);
        Some(Case { note, meta, ..self.new_case(id?, query?, checks) })
    }

    fn new_case(&self, id: String, query: &str, checks: Vec<Check>) -> Case {
        let room = self.workspace.clone();
        let pass_when = PassRule::ActivationRate(None);
        Case { workspace: room, checks, pass_rule: pass_when, ..blank_case(id, query.to_owned()) }
    }

    fn read_case(
        &self,
        node: &TreeNode,
        ids: &mut UniqueIds,
        kept: &mut UnusedKeys,
        diagnostics: &mut Diagnostics,
    ) -> Option<Case> {
        let mut item = ObjectReader::new(node, "a trigger query", diagnostics)?;
        let key = PROMPT_KEYS.into_iter().find(|key| node.has(key) && *key != "prompt");
        let key = key.filter(|key| *key == "query" || !node.has("prompt"));
        let query = match (key, node.has("prompt")) {
            (Some(key), _) => item.required_text(key, diagnostics),
            (None, true) => item.required_text("prompt", diagnostics),
            (None, false) => item.required_text("query", diagnostics),
        };
        let expected = expected_activation(&mut item, &[self.skill.to_owned()], diagnostics);
        if !expected.is_given {
            item.report_missing("should_trigger", diagnostics);
        }
        let id = match item.get_non_null("id") {
            Some(_) => ids.read_id(&mut item, diagnostics),
            None => query.map(|query| ids.make_unique(&slug(query, "query"))),
        };
        let meta = kept.collect_unused(&item, "a trigger query", diagnostics);
        if expected.checks.is_empty() {
            return None;
        }
        Some(Case { meta, ..self.new_case(id?, query?, expected.checks) })
    }
}
