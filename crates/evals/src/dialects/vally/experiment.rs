//! Experiments of vally: the stimuli of other files, run in variants. Two variants, with and without skills, become
//! the two arms.

use super::super::EvalFileLocation;
use super::super::reading::graders::Unsupported;
use super::super::reading::{self, UniqueIds, UnusedKeys};
use super::{NAME, lower_spec, spec_path};
use practicum_core::model::{Arm, Diagnostics, Suite};
use practicum_core::tree::{ObjectReader, SourceFile, TreeNode};

pub fn lower(source: &SourceFile, place: &EvalFileLocation, diagnostics: &mut Diagnostics) -> Option<Suite> {
    let mut file = ObjectReader::new(&source.root, "an experiment", diagnostics)?;
    let name = file.required_text("name", diagnostics).unwrap_or(NAME).to_owned();
    let description = file.text("description", diagnostics).map(str::to_owned);
    let paths = file.texts("evals", diagnostics).unwrap_or_default();
    let arms = read_variants(&mut file, diagnostics);
    for key in ["vary", "baseline", "execution", "version"] {
        file.get(key);
    }
    let meta = UnusedKeys::default().collect_unused(&file, "an experiment", diagnostics);
    let mut suite: Option<Suite> = None;
    let mut ids = UniqueIds::default();
    for (path, span) in paths {
        let full = spec_path(source, path);
        if reading::lies_in_none(&[&place.project, &place.root, source.folder()], &full) {
            diagnostics.error("escaping-path", span, format!("{path} lies outside the project"));
            continue;
        }
        let mut problems = Diagnostics::default();
        let (text, spec) = SourceFile::read(&full, &mut problems);
        let found = spec.and_then(|spec| lower_spec(&spec, place, &mut problems));
        super::super::reading::parts::report_part(path, &text, problems, diagnostics);
        let Some(mut found) = found else { continue };
        for case in &mut found.cases {
            case.id = ids.make_unique(&case.id);
            // Settings of several files cannot differ in one suite, so each case has its own.
            case.repeat = case.repeat.or(found.run_policy.repeat);
            case.timeout = case.timeout.or(found.run_policy.timeout);
        }
        match &mut suite {
            Some(suite) => {
                suite.cases.extend(found.cases);
                let new = found
                    .skills
                    .into_iter()
                    .filter(|skill| suite.skills.iter().all(|known| known.name != skill.name));
                let new: Vec<_> = new.collect();
                suite.skills.extend(new);
            }
            None => suite = Some(found),
        }
    }
    let Some(mut suite) = suite else {
        if !diagnostics.has_errors() {
            diagnostics.error("no-cases", source.root.span, "the experiment names no eval");
        }
        return None;
    };
    match arms {
        Ok(arms) => suite.format_defaults.arms = arms,
        Err(why) => {
            let mut unsupported = Unsupported::default();
            unsupported.add(why);
            let why = unsupported.into_reason();
            suite.cases.iter_mut().for_each(|case| case.unsupported.clone_from(&why));
        }
    }
    let blank = reading::blank_suite(NAME, source, name);
    Some(Suite { name: blank.name, origin: blank.origin, description, meta, ..suite })
}

/// Reads the variants: one with skills and one without are the two arms.
fn read_variants(file: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Result<Vec<Arm>, String> {
    let Some(node) = file.get_non_null("variants") else { return Ok(Vec::new()) };
    let entries = node.as_map().unwrap_or_default();
    let has_skills = |variant: &TreeNode| {
        let skills = variant.get("environment").and_then(|environment| environment.get("skills"));
        skills.map(|skills| skills.as_list().is_some_and(|skills| !skills.is_empty()))
    };
    let only_skills = |variant: &TreeNode| {
        let environment = variant.get("environment").and_then(TreeNode::as_map).unwrap_or_default();
        environment.iter().all(|entry| entry.key == "skills")
    };
    let with: Vec<Option<bool>> = entries.iter().map(|entry| has_skills(&entry.value)).collect();
    let plain = entries.iter().all(|entry| only_skills(&entry.value));
    let without = with.iter().filter(|skills| **skills == Some(false)).count();
    match (entries.len(), without, plain) {
        (2, 1, true) => Ok(vec![Arm::WithSkill, Arm::WithoutSkill]),
        _ => {
            let message = "only an experiment with two variants, with and without skills, can run here";
            diagnostics.warning("unsupported-experiment", node.span, message);
            Err("its variants are not one with skills and one without".to_owned())
        }
    }
}
