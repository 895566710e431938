//! Code that several formats share for reading: ids, files, skills, trigger sets, unused keys.

pub mod case_keys;
mod expected_activation;
mod fixtures;
pub mod graders;
mod ids;
pub mod parts;
mod skills;
mod triggers;
mod unused_keys;

use std::collections::BTreeMap;

pub use expected_activation::{
    FORBIDDEN_SKILLS_KEY, add_schema_keys as activation_schema, has_activation_key, other_expected_skills,
    read_expected_activation as expected_activation, schema_conditions as activation_conditions,
};
pub use fixtures::{
    FixtureFolders, FolderPrefix, leads_out_of, lies_in_none, lies_outside, read_files, read_fixtures,
};
pub use ids::{UniqueIds, slug};
pub use skills::{
    SkillHint, has_skill, is_skill, report_missing_skill, skill_in_folder as skill_at,
    skill_of_evals as skill_beside,
};
pub use triggers::{
    DEFAULT_RUNS as TRIGGER_RUNS, DEFAULT_THRESHOLD as TRIGGER_THRESHOLD, TriggerReader,
    are_sorted_lists as are_sorted_triggers, is_trigger_list as are_triggers,
    is_wrapped_list as are_wrapped_triggers, refuse_mapping as refuse_mapped_triggers,
    schema as trigger_schema, sorted_schema as sorted_trigger_schema,
};
pub use unused_keys::UnusedKeys;

use practicum_core::model::{
    ActivationCheck, ActivationExpectation, ActivationSource, Case, CasePrompt, Check, CheckKind, CheckNeed,
    CheckTarget, CheckWeight, Diagnostics, Gate, JudgePolicy, JudgedStatement, Mocks, Origin, PassRule,
    RunPolicy, ScoreScale, Suite, WorkspaceSpec,
};
use practicum_core::tree::{ObjectReader, SourceFile};

/// Names a suite of a skill's evals: after the skill, and also after the file if the folder has several such
/// files.
pub fn suite_name(skill: &str, source: &SourceFile) -> String {
    match source.path.file_stem().map(|stem| stem.to_string_lossy()) {
        Some(stem) if stem != "evals" => format!("{skill}-{stem}"),
        Some(_) | None => skill.to_owned(),
    }
}

/// Makes a suite that has nothing but its origin.
pub fn blank_suite(dialect: &str, source: &SourceFile, name: String) -> Suite {
    Suite {
        name,
        origin: Origin { dialect: dialect.to_owned(), path: source.path.clone(), digest: source.digest() },
        description: None,
        skills: Vec::new(),
        rivals: Vec::new(),
        plugins: Vec::new(),
        skill_statements: Vec::new(),
        cases: Vec::new(),
        run_policy: RunPolicy::default(),
        format_defaults: RunPolicy::default(),
        judge_policy: JudgePolicy::default(),
        gates: Vec::new(),
        meta: BTreeMap::new(),
    }
}

/// Makes a case with one message, an empty workspace and no checks.
pub fn blank_case(id: String, prompt: String) -> Case {
    Case {
        id,
        group: None,
        note: None,
        prompt: CasePrompt::Turns(vec![prompt]),
        user: None,
        workspace: WorkspaceSpec::default(),
        mocks: Mocks::default(),
        checks: Vec::new(),
        context: None,
        timeout: None,
        repeat: None,
        pass_rule: PassRule::EveryRequiredCheck,
        known_good_output: None,
        unsupported: None,
        meta: BTreeMap::new(),
    }
}

/// Gives the only gate of most formats: all cases pass.
pub fn all_cases_pass() -> Vec<Gate> {
    vec![Gate::ALL_CASES_PASS]
}

/// Makes a check for a judge, who sees everything that the agent said and did.
pub fn judged_check(id: String, statement: &str) -> Check {
    Check {
        id,
        name: None,
        need: CheckNeed::Required,
        weight: CheckWeight::ONE,
        target: CheckTarget::WholeRun,
        kind: CheckKind::Judged(JudgedStatement {
            statement: statement.trim().to_owned(),
            context: None,
            scale: ScoreScale::PassFail,
        }),
    }
}

/// Makes a check of whether skills are activated in the run. Its id is the one that the native `activation` key
/// makes.
pub fn activation_check(skills: Vec<String>, expect: ActivationExpectation) -> Check {
    Check {
        id: "activation".to_owned(),
        name: None,
        need: CheckNeed::Required,
        weight: CheckWeight::ONE,
        target: CheckTarget::WholeRun,
        kind: CheckKind::Activation(ActivationCheck { skills, expect, source: ActivationSource::Observed }),
    }
}

/// Reads a text under one of two keys; the first is the documented one.
pub fn either_text<'n>(
    object: &mut ObjectReader<'n>,
    [key, other]: [&'static str; 2],
    diagnostics: &mut Diagnostics,
) -> Option<&'n str> {
    let key = pick_key(object, [key, other], diagnostics);
    object.required_text(key, diagnostics)
}

/// Gives the one of two keys that is present. Both together are an error; if neither is present, gives the first,
/// which is then reported as missing.
pub fn pick_key(
    object: &mut ObjectReader<'_>,
    [key, other]: [&'static str; 2],
    diagnostics: &mut Diagnostics,
) -> &'static str {
    match (object.get_non_null(key), object.get_non_null(other)) {
        (None, Some(_)) => other,
        (Some(_), Some(node)) => {
            diagnostics.error_with_help(
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
