//! What several formats read alike: ids, files, skills, trigger sets, keys that nobody uses.

mod expected_activation;
mod fixtures;
mod ids;
mod kept;
mod skills;
mod triggers;

use std::collections::BTreeMap;

pub use expected_activation::{
    FORBIDDEN, expected_beside, read as expected_activation, says_activation, schema as activation_schema,
    schema_conditions as activation_conditions,
};
pub use fixtures::{Below, Files, fixtures, leads_out_of};
pub use ids::{Ids, slug};
pub use kept::Kept;
pub use skills::{Hint, at as skill_at, beside as skill_beside, has_skill, is_skill, tell_missing};
pub use triggers::{
    RUNS as TRIGGER_RUNS, THRESHOLD as TRIGGER_THRESHOLD, Triggers, are as are_triggers,
    are_wrapped as are_wrapped_triggers, refuse_mapping as refuse_mapped_triggers, schema as trigger_schema,
    sorted_schema as sorted_trigger_schema,
};

use practicum_core::model::{
    Activation, By, Case, Check, CheckKind, Diagnostics, Expect, Gate, JudgePolicy, Judged, LooksAt, Need,
    Origin, PassRule, Room, RunPolicy, Scale, Stimulus, Suite,
};
use practicum_core::tree::{Object, Source};

/// What a file of a skill's evals is called: after the skill, and after itself where several such
/// files lie side by side.
pub fn suite_name(skill: &str, source: &Source) -> String {
    match source.path.file_stem().map(|stem| stem.to_string_lossy()) {
        Some(stem) if stem != "evals" => format!("{skill}-{stem}"),
        Some(_) | None => skill.to_owned(),
    }
}

/// A suite about which nothing is known but where it came from.
pub fn blank_suite(dialect: &str, source: &Source, name: String) -> Suite {
    Suite {
        name,
        origin: Origin { dialect: dialect.to_owned(), path: source.path.clone(), digest: source.digest() },
        description: None,
        skills: Vec::new(),
        rivals: Vec::new(),
        plugins: Vec::new(),
        about_skill: Vec::new(),
        cases: Vec::new(),
        run: RunPolicy::default(),
        defaults: RunPolicy::default(),
        judge: JudgePolicy::default(),
        gates: Vec::new(),
        meta: BTreeMap::new(),
    }
}

/// One message in an empty room, with nothing to check yet.
pub fn blank_case(id: String, prompt: String) -> Case {
    Case {
        id,
        group: None,
        note: None,
        stimulus: Stimulus::Turns(vec![prompt]),
        room: Room::default(),
        checks: Vec::new(),
        context: None,
        timeout: None,
        repeat: None,
        pass_when: PassRule::EveryRequiredCheck,
        oracle: None,
        meta: BTreeMap::new(),
    }
}

pub fn all_cases_pass() -> Vec<Gate> {
    vec![Gate::ALL_CASES_PASS]
}

/// A statement that the judge decides over everything the agent said and did.
pub fn judged(id: String, statement: &str) -> Check {
    Check {
        id,
        name: None,
        need: Need::Required,
        looks_at: LooksAt::WholeRun,
        kind: CheckKind::Judged(Judged {
            statement: statement.trim().to_owned(),
            context: None,
            scale: Scale::PassFail,
        }),
    }
}

/// Whether skills fire, as seen in the run. Its id is the one the native `activation` key makes.
pub fn activation(skills: Vec<String>, expect: Expect) -> Check {
    Check {
        id: "activation".to_owned(),
        name: None,
        need: Need::Required,
        looks_at: LooksAt::WholeRun,
        kind: CheckKind::Activation(Activation { skills, expect, by: By::Observed }),
    }
}

/// A text under one of two keys, the first being the documented one.
pub fn either_text<'n>(
    object: &mut Object<'n>,
    [key, other]: [&'static str; 2],
    diagnostics: &mut Diagnostics,
) -> Option<&'n str> {
    let key = one_key(object, [key, other], diagnostics);
    object.required_text(key, diagnostics)
}

/// Which of two keys is meant; both at once is a contradiction, none is the first one missing.
pub fn one_key(
    object: &mut Object<'_>,
    [key, other]: [&'static str; 2],
    diagnostics: &mut Diagnostics,
) -> &'static str {
    match (object.given(key), object.given(other)) {
        (None, Some(_)) => other,
        (Some(_), Some(node)) => {
            diagnostics.error_help(
                "contradiction",
                node.span,
                format!("\"{key}\" and \"{other}\" say the same thing, and both are here"),
                "keep one of them",
            );
            key
        }
        (Some(_), None) | (None, None) => key,
    }
}
