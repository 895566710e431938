use serde_json::{Value, json};

use super::{Ids, Kept, activation, blank_case, slug};
use crate::model::{Case, Diagnostics, Expect, PassRule, Room, Span};
use crate::tree::shape::{self, Mapping};
use crate::tree::{Entry, Node, Object};

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
    items.iter().any(|item| item.has("query") || item.has("should_trigger"))
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

/// What a trigger set may hold, as JSON Schema.
pub fn schema() -> Value {
    let item = Mapping::open()
        .must("query", "What the user says, in a session of its own.", shape::filled())
        .must("should_trigger", "Whether the skill should fire.", shape::yes_or_no())
        .may(
            "id",
            "A name that stays; by default made from the query.",
            shape::either([shape::filled(), json!({"type": "integer"})]),
        );
    shape::document(
        "Trigger set (triggers.json)",
        "Queries for which a skill's description should or should not fire, as BMad and skill-creator \
         write them.",
        shape::some(item),
        [],
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

    fn case(
        &self,
        node: &Node,
        ids: &mut Ids,
        kept: &mut Kept,
        diagnostics: &mut Diagnostics,
    ) -> Option<Case> {
        let mut item = Object::new(node, "a trigger query", diagnostics)?;
        let query = item.required_text("query", diagnostics);
        let expect = item.bool("should_trigger", diagnostics).map(|should| match should {
            true => Expect::Must,
            false => Expect::MustNot,
        });
        if item.given("should_trigger").is_none() {
            item.missing("should_trigger", diagnostics);
        }
        let id = match item.given("id") {
            Some(_) => ids.given(&mut item, diagnostics),
            None => query.map(|query| ids.derive(&slug(query, "query"))),
        };
        let meta = kept.rest(&item, "a trigger query", diagnostics);
        Some(Case {
            room: self.room.clone(),
            checks: vec![activation(vec![self.skill.to_owned()], expect?)],
            pass_when: PassRule::FireRate(None),
            meta,
            ..blank_case(id?, query?.to_owned())
        })
    }
}
