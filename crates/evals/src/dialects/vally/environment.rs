//! The environment of a stimulus: skills, files, commands, and limits on the run.

use std::path::PathBuf;

use serde_json::json;

use super::super::EvalFileLocation;
use super::super::reading::graders::Unsupported;
use super::super::reading::{self, UnusedKeys};
use super::{has_parameter, read_duration, required_activation, required_rule, spec_path};
use crate::dialects::copilot_tools::agent_tool;
use practicum_core::model::{
    ActivationExpectation, Check, Diagnostics, Fixture, FixtureAccess, RelPath, SkillRef,
};
use practicum_core::tree::{ObjectReader, SourceFile, TreeNode};

/// What the agent of a stimulus has around it.
#[derive(Default, Clone)]
pub struct Environment {
    pub skills: Vec<SkillRef>,
    pub files: Vec<Fixture>,
    pub overlays: Vec<PathBuf>,
    pub commands: Vec<String>,
    pub constraints: Option<TreeNode>,
    /// Why a stimulus in this environment cannot run.
    pub unsupported: Vec<String>,
}

impl Environment {
    /// Reads an environment over this one: a mapping, or the name of one in .vally.yaml.
    pub fn read(
        &mut self,
        node: &TreeNode,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) {
        if let Some(name) = node.as_text() {
            self.read_named(name, source, place);
            return;
        }
        let Some(mut object) = ObjectReader::new(node, "\"environment\"", diagnostics) else { return };
        if let Some(paths) = object.texts("skills", diagnostics) {
            let skills = paths.into_iter().map(|(path, _)| find_skill(path, source, place, diagnostics));
            self.skills = skills.collect();
        }
        for item in object.list("files", diagnostics).unwrap_or_default() {
            self.read_file(item, source, place, diagnostics);
        }
        let commands = object.texts("commands", diagnostics).unwrap_or_default();
        self.commands.extend(commands.into_iter().map(|(command, _)| command.to_owned()));
        if self.commands.iter().any(|command| has_parameter(command)) {
            self.unsupported
                .push("its commands have a parameter ${NAME}, which vally gets with --param".to_owned());
        }
        for key in ["mcpServers", "mcp_servers"] {
            if object.get_non_null(key).is_some_and(|node| !node.as_map().is_some_and(<[_]>::is_empty)) {
                self.unsupported.push(format!("\"{key}\": MCP servers of a stimulus are not started"));
            }
        }
        for key in ["env", "variables"] {
            if object.get_non_null(key).is_some_and(|node| !node.as_map().is_some_and(<[_]>::is_empty)) {
                self.unsupported
                    .push(format!("\"{key}\": environment variables cannot be given to the agent"));
            }
        }
        UnusedKeys::default().collect_unused(&object, "\"environment\"", diagnostics);
    }

    /// Reads an environment that .vally.yaml defines.
    fn read_named(&mut self, name: &str, source: &SourceFile, place: &EvalFileLocation) {
        let around = source.folder().ancestors().take_while(|above| above.starts_with(&place.project));
        let file = around.map(|above| above.join(".vally.yaml")).find(|path| path.is_file());
        let config = file.and_then(|file| SourceFile::read(&file, &mut Diagnostics::default()).1);
        let found =
            config.as_ref().and_then(|config| Some((config, config.root.get("environments")?.get(name)?)));
        match found {
            // Paths in that file start from it.
            Some((config, node)) => self.read(node, config, place, &mut Diagnostics::default()),
            None => {
                self.unsupported.push(format!("no .vally.yaml around it defines the environment \"{name}\""));
            }
        }
    }

    fn read_file(
        &mut self,
        item: &TreeNode,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) {
        let text = |keys: &[&str]| keys.iter().find_map(|key| item.get(key)?.as_text());
        let Some(src) = item.as_text().or_else(|| text(&["src", "source", "path"])) else {
            diagnostics.error(
                "missing-key",
                item.span,
                "a file of the environment has a \"src\" and a \"dest\"",
            );
            return;
        };
        let from = spec_path(source, src);
        if reading::lies_in_none(&[&place.project, &place.root, source.folder()], &from) {
            diagnostics.error("escaping-path", item.span, format!("{src:?} lies outside the project"));
            return;
        }
        let name = from.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let dest = text(&["dest", "destination"]).unwrap_or(&name);
        if !from.exists() {
            diagnostics.warning("file-not-found", item.span, format!("{src} does not exist"));
        }
        let is_root = dest.chars().all(|c| c == '.' || c == '/');
        let to = match (is_root, dest.ends_with('/')) {
            (true, _) if from.is_dir() => {
                self.overlays.push(from);
                return;
            }
            (true, _) => name.clone(),
            (false, true) if from.is_file() => format!("{dest}{name}"),
            (false, _) => dest.to_owned(),
        };
        match RelPath::new(&to) {
            Some(destination) => {
                self.files.push(Fixture { source: from, destination, access: FixtureAccess::Mutable });
            }
            None => diagnostics.error(
                "escaping-path",
                item.span,
                format!("{dest:?} is not a path inside the workspace"),
            ),
        }
    }

    /// Makes the checks of the limits on the run. Whether vally fails a run that breaks them is not documented; here
    /// it does.
    pub fn constraint_checks(
        &self,
        activation: Option<bool>,
        skill: &str,
        unsupported: &mut Unsupported,
        diagnostics: &mut Diagnostics,
    ) -> Vec<Check> {
        let mut checks = Vec::new();
        if let Some(should) = activation {
            let expect = if should { ActivationExpectation::Must } else { ActivationExpectation::MustNot };
            checks.push(required_activation("expect_activation", skill, expect));
        }
        let Some(node) = &self.constraints else { return checks };
        let Some(mut object) = ObjectReader::new(node, "\"constraints\"", diagnostics) else { return checks };
        let mut add = |made: Result<Check, String>| match made {
            Ok(check) => checks.push(check),
            Err(why) => unsupported.add(why),
        };
        for (key, measure) in
            [("max_turns", "turns"), ("max_tokens", "tokens"), ("max_tool_calls", "tool_calls")]
        {
            if let Some(number) = object.int(key, 1, i64::from(u32::MAX), diagnostics) {
                add(required_rule(key, "limit", &json!({measure: number})));
            }
        }
        if let Some(node) = object.get_non_null("max_duration")
            && let Some(most) = read_duration(node, "max_duration", diagnostics)
        {
            add(required_rule("max_duration", "limit", &json!({"seconds": most.as_secs_f64()})));
        }
        for (key, rule) in [("expect_tools", "tool_used"), ("reject_tools", "tool_not_used")] {
            for (tool, _) in object.texts(key, diagnostics).unwrap_or_default() {
                add(required_rule(&format!("{key}-{tool}"), rule, &json!(agent_tool(tool))));
            }
        }
        for (key, expect) in [
            ("expect_skills", ActivationExpectation::Must),
            ("reject_skills", ActivationExpectation::MustNot),
        ] {
            for (skill, _) in object.texts(key, diagnostics).unwrap_or_default() {
                add(Ok(required_activation(&format!("{key}-{skill}"), skill, expect)));
            }
        }
        UnusedKeys::default().collect_unused(&object, "\"constraints\"", diagnostics);
        checks
    }
}

/// Finds a skill that a spec names by its folder or its name.
fn find_skill(
    named: &str,
    source: &SourceFile,
    place: &EvalFileLocation,
    diagnostics: &mut Diagnostics,
) -> SkillRef {
    let path = spec_path(source, named);
    let name = named.trim_end_matches('/').rsplit('/').next().unwrap_or(named).to_owned();
    if reading::lies_in_none(&[&place.project, &place.root, source.folder()], &path) {
        diagnostics.warning("skill-not-found", None, format!("the skill {named} lies outside the project"));
        return SkillRef { name, path: None, plugin: None };
    }
    if reading::is_skill(&path) {
        return reading::skill_at(&path, &place.skills, diagnostics);
    }
    diagnostics.warning("skill-not-found", None, format!("there is no skill at {named}"));
    SkillRef { name, path: None, plugin: None }
}
