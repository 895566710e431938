//! Problems with the texts of a suite's skills, and how a run deals with them.

use std::collections::BTreeMap;
use std::sync::Arc;

use practicum_agents::agents::AgentCli;
use practicum_core::model::{
    ActivationExpectation, ActivationSource, Case, CasePrompt, Check, CheckKind, SkillRef, Suite,
};
use practicum_core::tree::NodeData;
use practicum_skills::skill::{Plugin, Skill, SkillCache, SkillError, SkillForm, name_from_path};

/// Gives warnings about invalid frontmatter of a suite's skills and rivals that agents still accept: each with
/// file, line and what to do.
pub fn skill_warnings(suite: &Suite, cache: &SkillCache) -> Vec<String> {
    let paths = suite.skills.iter().chain(&suite.rivals).filter_map(|skill| skill.path.as_deref());
    paths.filter_map(|path| cache.read(path).ok()).flat_map(|skill| skill.warnings.clone()).collect()
}

/// Describes the skills under test whose frontmatter gives them another name than their folder.
pub fn mismatched_name_notices(suite: &Suite, cache: &SkillCache) -> Vec<String> {
    let paths = suite.skills.iter().filter_map(|skill| skill.path.as_deref());
    let skills =
        paths.filter_map(|path| cache.read(path).ok()).filter(|skill| skill.form == SkillForm::Folder);
    let differs = |skill: Arc<Skill>| {
        let folder = name_from_path(&skill.file, SkillForm::Folder);
        let name = &skill.name;
        (*name != folder).then(|| {
            format!(
                "the skill is called \"{name}\" and its folder \"{folder}\"; an agent may call it by either"
            )
        })
    };
    skills.filter_map(differs).collect()
}

/// Describes the command files under test that an agent does not get, because it looks for no commands where they
/// are staged. A case of a format that calls the command itself gives such an agent the text in its place.
pub(crate) fn unread_command_notices<'a>(
    suite: &Suite,
    cache: &SkillCache,
    agents: impl IntoIterator<Item = &'a AgentCli>,
) -> Vec<String> {
    if !suite.cases.iter().any(|case| matches!(case.prompt, CasePrompt::Turns(_))) {
        return Vec::new();
    }
    let is_command = |known: &&SkillRef| read_form(known, cache) == Some(SkillForm::Command);
    let commands: Vec<&SkillRef> = suite.skills.iter().filter(is_command).collect();
    let reads_none = |agent: &&AgentCli| {
        agent.skill_command.is_none() && agent.skills_dir.as_str() != CLAUDE_SKILLS_FOLDER
    };
    let describe = |agent: &AgentCli, command: &SkillRef| {
        format!(
            "{} reads no command files, so it runs without {}: /{} is plain text for it",
            agent.name, command.name, command.name
        )
    };
    let agents = agents.into_iter().filter(reads_none);
    agents
        .flat_map(|agent| commands.iter().map(|command| describe(agent, command)).collect::<Vec<_>>())
        .collect()
}

/// The folder of skills of the agents that look for commands where they are staged.
const CLAUDE_SKILLS_FOLDER: &str = ".claude/skills";

/// Describes the skills under test that only a user can call although cases check whether a model activates them.
pub fn uncallable_skill_notices(suite: &Suite, cache: &SkillCache) -> Vec<String> {
    let mut checks = suite.cases.iter().flat_map(|case| &case.checks);
    if !checks.any(|check| matches!(check.kind, CheckKind::Activation(_))) {
        return Vec::new();
    }
    let describe = |(_, why): (&str, String)| {
        format!(
            "{why}: a case in which it must be activated always fails, and one in which it must not be activated \
             proves nothing"
        )
    };
    skills_disabled_for_models(suite, cache).map(describe).collect()
}

/// Gives the skills under test that forbid activation by a model, each with its name in the suite and a sentence.
fn skills_disabled_for_models<'s>(
    suite: &'s Suite,
    cache: &'s SkillCache,
) -> impl Iterator<Item = (&'s str, String)> {
    let is_hidden = |skill: &Skill| {
        let said = skill.frontmatter.as_ref().and_then(|front| front.get("disable-model-invocation"));
        said.is_some_and(|said| match &said.data {
            NodeData::Bool(yes) => *yes,
            NodeData::Text(text) => text.eq_ignore_ascii_case("true"),
            _ => false,
        })
    };
    suite.skills.iter().filter_map(move |known| {
        let skill = cache.read(known.path.as_deref()?).ok().filter(|skill| is_hidden(skill))?;
        let problem = format!(
            "{} says disable-model-invocation: true, so no model can activate the skill {}",
            skill.file.display(),
            skill.name
        );
        Some((known.name.as_str(), problem))
    })
}

/// Describes the skills under test without a description in their SKILL.md, which agents do not list properly.
pub fn missing_description_notices(suite: &Suite, cache: &SkillCache) -> Vec<String> {
    skills_without_description(suite, cache).map(|(_, problem)| problem).collect()
}

/// Gives the cases that only check that a skill is not activated although no model could activate it, with the
/// reason.
pub(crate) fn meaningless_negative_cases(suite: &Suite, cache: &SkillCache) -> Vec<(String, String)> {
    let unlisted: Vec<(&str, String)> =
        skills_without_description(suite, cache).chain(skills_disabled_for_models(suite, cache)).collect();
    let proves_nothing = |check: &Check| match &check.kind {
        CheckKind::Activation(activation) => {
            let is_unlisted = |name: &String| unlisted.iter().any(|(known, _)| known == name);
            activation.expect == ActivationExpectation::MustNot && activation.skills.iter().any(is_unlisted)
        }
        CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => false,
    };
    let Some((_, why)) = unlisted.first() else { return Vec::new() };
    let cases = suite.cases.iter();
    let cases = cases.filter(|case| !case.checks.is_empty() && case.checks.iter().all(proves_nothing));
    let describe = |case: &Case| (case.id.clone(), format!("{why}; that it is not activated proves nothing"));
    cases.map(describe).collect()
}

/// Finds the cases about the activation of a command file that some of these agents do not offer to their model:
/// whatever the agent does, such a case says nothing. Gives the reason by case id and agent.
pub fn commands_not_offered(
    suite: &Suite,
    cache: &SkillCache,
    agents: &[&AgentCli],
) -> BTreeMap<(String, String), String> {
    let is_command = |skill: &&SkillRef| read_form(skill, cache) == Some(SkillForm::Command);
    let commands: Vec<&str> =
        suite.skills.iter().filter(is_command).map(|skill| skill.name.as_str()).collect();
    let asked = |check: &Check| match &check.kind {
        CheckKind::Activation(of) if of.source == ActivationSource::Observed => {
            let decides = of.expect != ActivationExpectation::Either;
            of.skills.iter().find_map(|name| commands.iter().find(|known| *known == name)).filter(|_| decides)
        }
        CheckKind::Activation(_) | CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => None,
    };
    let mut reasons = BTreeMap::new();
    for agent in agents.iter().filter(|agent| !agent.offers_commands()) {
        for case in &suite.cases {
            if let Some(command) = case.checks.iter().find_map(asked) {
                let why = format!(
                    "{} does not offer command files to its model, so whether {command} is activated cannot be \
                     measured with it; make it a skill with a SKILL.md, or use --agent claude or --predicted",
                    agent.name
                );
                reasons.insert((case.id.clone(), agent.name.clone()), why);
            }
        }
    }
    reasons
}

/// Says for each case with mocked MCP servers and each agent that cannot be given such servers why the case is not run.
pub fn servers_not_accepted(suite: &Suite, agents: &[&AgentCli]) -> BTreeMap<(String, String), String> {
    let agents = agents.iter().filter(|agent| !agent.can_use_mcp_servers());
    let reasons = agents.flat_map(|agent| {
        let cases = suite.cases.iter().filter(|case| !case.mocks.servers.is_empty());
        cases.map(|case| {
            let why = format!("{} cannot be given MCP servers, and this case mocks some", agent.name);
            ((case.id.clone(), agent.name.clone()), why)
        })
    });
    reasons.collect()
}

fn read_form(skill: &SkillRef, cache: &SkillCache) -> Option<SkillForm> {
    Some(cache.read(skill.path.as_deref()?).ok()?.form)
}

/// Gives the skills under test without a description, each with its name in the suite and a sentence.
fn skills_without_description<'s>(
    suite: &'s Suite,
    cache: &'s SkillCache,
) -> impl Iterator<Item = (&'s str, String)> {
    suite.skills.iter().filter_map(move |known| {
        let skill = cache.read(known.path.as_deref()?).ok()?;
        Some((known.name.as_str(), why_not_listed(&skill, &known.name)?))
    })
}

/// Explains why agents do not list a skill: it has no description. `None` if it has one.
fn why_not_listed(skill: &Skill, name: &str) -> Option<String> {
    let has_description = skill.description.as_deref().is_some_and(|text| !text.trim().is_empty());
    if skill.form == SkillForm::Command || has_description {
        return None;
    }
    let lacks = match &skill.frontmatter {
        None if skill.body.trim().is_empty() => "is empty",
        None => "has no frontmatter",
        Some(_) => "has no description",
    };
    Some(format!("{} {lacks}, so agents do not list the skill {name}", skill.file.display()))
}

/// Removes from a suite the rivals that cannot be staged or that no agent lists, and describes which and why. A
/// rival is another author's skill, so a broken one does not stop the run. A workspace can hold one skill of a
/// name: the skill under test wins, then the rival that is listed first.
pub fn leave_out_unfit_rivals(suite: &mut Suite, cache: &SkillCache) -> Vec<String> {
    let mut notices = Vec::new();
    let paths = suite.skills.iter().filter_map(|skill| skill.path.as_deref());
    let mut staged: Vec<Arc<Skill>> = paths.filter_map(|path| cache.read(path).ok()).collect();
    suite.rivals.retain(|rival| {
        let Some(path) = &rival.path else { return true };
        let skill = match cache.read(path) {
            Ok(skill) => skill,
            Err(error) => {
                notices.push(format!("the skill {} is not staged beside the others: {error}", rival.name));
                return false;
            }
        };
        if let Some(why) = skill.describe_unusable_name().or_else(|| why_not_listed(&skill, &rival.name)) {
            notices.push(format!("a skill is not staged beside the others: {why}"));
            return false;
        }
        if let Some(first) = staged.iter().find(|first| first.name == skill.name) {
            notices.extend(same_name_notice(first, &skill));
            return false;
        }
        staged.push(skill);
        true
    });
    notices
}

/// Says which of two skills of one name is staged; `None` if they are the same.
pub fn same_name_notice(staged: &Skill, left_out: &Skill) -> Option<String> {
    (!staged.is_copy_of(left_out)).then(|| {
        format!(
            "two skills are called \"{}\": {} is staged, {} is not",
            staged.name,
            staged.file.display(),
            left_out.file.display()
        )
    })
}

/// Explains why existing skills under test and plugins cannot be staged. Each problem is reported once.
pub fn unreadable_skills(suite: &Suite, cache: &SkillCache) -> Vec<String> {
    let paths = suite.skills.iter().filter_map(|skill| skill.path.as_deref());
    let problems = paths.filter_map(|path| cache.read(path).err());
    let problems = problems.filter(|problem| !matches!(problem, SkillError::Missing(_)));
    let unfit = suite
        .skills
        .iter()
        .filter_map(|skill| cache.read(skill.path.as_deref()?).ok()?.describe_unusable_name());
    let plugins = suite.plugins.iter().filter_map(|root| Plugin::read(root).err());
    let problems = problems.map(|problem| problem.to_string()).chain(unfit);
    problems.chain(plugins.map(|problem| problem.to_string())).collect()
}
