//! Finds what is lost when a suite is written in another format.

use std::collections::HashMap;

use practicum_core::model::{
    Case, CasePrompt, CheckNeed, Fixture, FixtureAccess, Gate, JudgePolicy, PassRule, RunPolicy,
    StagedSkillName, Suite, WorkspaceBase, WorkspaceSpec,
};

/// A feature that a format may have, beyond prompts and checks, which each format writes in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatFeature {
    Description,
    Skill,
    SeveralSkills,
    Rivals,
    AboutSkill,
    SuiteMeta,
    CaseMeta,
    /// The number of runs of every case.
    Repeat,
    /// A time limit for each case; a limit for all is then written to each.
    CaseTimeout,
    Group,
    Note,
    Context,
    Turns,
    Overlays,
    Files,
    Scripts,
    Alias,
    ActivationRate,
    Advisory,
    /// Weights of checks, and a score that a case must reach.
    Score,
    /// The number of runs of single cases.
    CaseRepeat,
    /// Files whose content stands in the eval file.
    InlineFiles,
    /// Files that the agent may change; a change is not reported.
    MutableFiles,
}

/// The loss of a format that does not have the skill's text judged, or judges other statements about it.
pub const ABOUT_SKILL_LOSS: &str = "what a judge is to decide of the skill's own text";

/// The capabilities of a format, for finding losses.
pub struct FormatCapabilities<'f> {
    pub features: &'f [FormatFeature],
    /// The workspace that its cases begin with.
    pub base: WorkspaceBase,
    /// The settings that apply if its file sets none.
    pub defaults: RunPolicy,
    pub gates: Vec<Gate>,
}

/// The parts of a suite that a format cannot express, one sentence each. Cases that lose the same thing share a
/// sentence.
#[derive(Debug, Default)]
pub struct Losses {
    suite_losses: Vec<String>,
    case_losses: Vec<(String, Vec<String>)>,
    /// The cases of which nothing is written.
    lost_cases: Vec<String>,
    /// The position of each loss in `case_losses`.
    index: HashMap<String, usize>,
}

impl Losses {
    /// Records a loss of the whole suite.
    pub fn add_for_suite(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.suite_losses.contains(&what) {
            self.suite_losses.push(what);
        }
    }

    /// Records a loss of one case.
    pub fn add_for_case(&mut self, case: &str, what: impl Into<String>) {
        let what = what.into();
        let at = *self.index.entry(what.clone()).or_insert(self.case_losses.len());
        match self.case_losses.get_mut(at) {
            // Several checks of one case may lose the same thing.
            Some((_, cases)) if cases.last().is_some_and(|last| last == case) => {}
            Some((_, cases)) => cases.push(case.to_owned()),
            None => self.case_losses.push((what, vec![case.to_owned()])),
        }
    }

    /// Records that nothing of a case is written.
    pub fn add_whole_case(&mut self, case: &str, why: &str) {
        self.add_for_case(case, format!("the whole case, because {why}"));
        self.lost_cases.push(case.to_owned());
    }

    /// Gives the ids of the cases of which nothing is written.
    pub fn lost_cases(&self) -> Vec<String> {
        self.lost_cases.clone()
    }

    pub fn extend(&mut self, other: Self) {
        self.lost_cases.extend(other.lost_cases);
        for what in other.suite_losses {
            self.add_for_suite(what);
        }
        for (what, cases) in other.case_losses {
            for case in cases {
                self.add_for_case(&case, what.clone());
            }
        }
    }

    /// Gives one sentence for each loss. A sentence names at most a few cases.
    pub fn into_sentences(self) -> Vec<String> {
        const MOST_SHOWN: usize = 5;
        let cases = self.case_losses.into_iter().map(|(what, cases)| match cases.as_slice() {
            [one] => format!("case {one}: {what}"),
            several if several.len() <= MOST_SHOWN => format!("cases {}: {what}", several.join(", ")),
            several => {
                format!(
                    "cases {} and {} more: {what}",
                    several[..MOST_SHOWN].join(", "),
                    several.len() - MOST_SHOWN
                )
            }
        });
        self.suite_losses.into_iter().chain(cases).collect()
    }

    /// Finds everything in a suite that the format cannot express, except prompts and checks.
    pub fn from_suite(suite: &Suite, format: &FormatCapabilities<'_>) -> Self {
        let mut losses = Self::default();
        // Without `..`, the compiler reports a new field that is missing here.
        let Suite {
            name: _,
            origin: _,
            description,
            skills,
            rivals,
            plugins,
            skill_statements: about_skill,
            cases,
            run_policy: run,
            format_defaults: defaults,
            judge_policy: judge,
            gates,
            meta,
        } = suite;
        let says = |what| format.features.contains(&what);
        let mut lose = |lost: bool, what: &str| {
            if lost {
                losses.add_for_suite(what);
            }
        };
        lose(description.is_some() && !says(FormatFeature::Description), "the description");
        lose(
            !skills.is_empty() && !says(FormatFeature::Skill),
            "the skill, which is named on the command line",
        );
        lose(
            skills.len() > 1 && says(FormatFeature::Skill) && !says(FormatFeature::SeveralSkills),
            "every skill but the first",
        );
        lose(!rivals.is_empty() && !says(FormatFeature::Rivals), "the skills staged as rivals");
        lose(!plugins.is_empty() && !says(FormatFeature::Rivals), "the plugins");
        lose(!about_skill.is_empty() && !says(FormatFeature::AboutSkill), ABOUT_SKILL_LOSS);
        lose(*judge != JudgePolicy::default(), "the judge's settings");
        lose(*gates != format.gates, "the gates");
        lose(!meta.is_empty() && !says(FormatFeature::SuiteMeta), "the extra keys of the file");
        for setting in changed_settings(run, defaults, format) {
            losses.add_for_suite(format!("the setting \"{setting}\""));
        }
        for case in cases {
            losses.add_losses_of_case(case, format);
        }
        losses
    }

    fn add_losses_of_case(&mut self, case: &Case, format: &FormatCapabilities<'_>) {
        let Case {
            id,
            group,
            note,
            prompt: stimulus,
            user,
            workspace: room,
            mocks,
            checks,
            context,
            timeout,
            repeat,
            pass_rule: pass_when,
            known_good_output: oracle,
            unsupported,
            meta,
        } = case;
        let WorkspaceSpec { base, overlays, skill_name: skill, files, inline_files, setup, teardown } = room;
        let says = |what| format.features.contains(&what);
        let mutable = files.iter().any(|Fixture { access, .. }| *access == FixtureAccess::Mutable);
        let starts_in = match base {
            WorkspaceBase::Project => "it starts in the project, and here cases start in an empty folder",
            WorkspaceBase::Empty => "it starts in an empty folder, and here cases start in the project",
        };
        let (turns, command) = match stimulus {
            CasePrompt::Turns(turns) => (turns.len() > 1, false),
            CasePrompt::SkillCommand { .. } => (false, true),
        };
        let rate = match pass_when {
            PassRule::EveryRequiredCheck => None,
            PassRule::ActivationRate(None) if says(FormatFeature::ActivationRate) => None,
            PassRule::ActivationRate(Some(_)) if says(FormatFeature::ActivationRate) => {
                Some("the rate of its own to pass by")
            }
            PassRule::ActivationRate(_) => Some("that it passes by the activation rate of the skill"),
            PassRule::JudgedThresholds { .. } => {
                Some("the share and the mean score its judged checks must reach")
            }
            PassRule::Score(_) if says(FormatFeature::Score) => None,
            PassRule::Score(_) => Some("the weights of its checks, and the score that it must reach"),
            PassRule::CountOnly => Some("that it only counts towards rates"),
        };
        for (lost, what) in [
            (group.is_some() && !says(FormatFeature::Group), "the group"),
            (note.is_some() && !says(FormatFeature::Note), "the note"),
            (context.is_some() && !says(FormatFeature::Context), "what the judge should know"),
            (turns && !says(FormatFeature::Turns), "its turns became one message"),
            (command, "its skill command became a message"),
            (user.is_some(), "the simulated user that answers the agent"),
            (*base != format.base, starts_in),
            (!overlays.is_empty() && !says(FormatFeature::Overlays), "its overlays"),
            (
                *skill == StagedSkillName::Alias && !says(FormatFeature::Alias),
                "that the skill has another name",
            ),
            (!files.is_empty() && !says(FormatFeature::Files), "its files"),
            (
                !inline_files.is_empty() && !says(FormatFeature::InlineFiles),
                "its files whose content stands in the eval file",
            ),
            (!mocks.is_empty(), "its mocks"),
            (unsupported.is_some(), "that it is not run, and why"),
            (
                mutable && says(FormatFeature::Files) && !says(FormatFeature::MutableFiles),
                "that its files may be changed",
            ),
            (
                files.iter().any(|file| file.access == FixtureAccess::ReadOnly)
                    && says(FormatFeature::MutableFiles),
                "that a change of its files is reported",
            ),
            ((setup.is_some() || teardown.is_some()) && !says(FormatFeature::Scripts), "its scripts"),
            (timeout.is_some() && !says(FormatFeature::CaseTimeout), "its time limit"),
            (repeat.is_some() && !says(FormatFeature::CaseRepeat), "how often it runs"),
            (rate.is_some(), rate.unwrap_or_default()),
            (oracle.is_some(), "the output known to be good"),
            (!meta.is_empty() && !says(FormatFeature::CaseMeta), "its extra keys"),
            (
                checks.iter().any(|check| check.need == CheckNeed::Advisory)
                    && !says(FormatFeature::Advisory),
                "that some checks are only advice",
            ),
        ] {
            if lost {
                self.add_for_case(id, what);
            }
        }
    }
}

/// Gives the settings that the suite sets and that would differ under the format's own defaults.
fn changed_settings(
    run: &RunPolicy,
    defaults: &RunPolicy,
    format: &FormatCapabilities<'_>,
) -> Vec<&'static str> {
    fn setting_differs<T: PartialEq>(file: &Option<T>, format: &Option<T>, theirs: &Option<T>) -> bool {
        let said = file.as_ref().or(format.as_ref());
        said.is_some() && said != theirs.as_ref()
    }
    let RunPolicy {
        agents,
        model,
        repeat,
        timeout,
        arms,
        mode,
        script,
        trigger_threshold,
        sync_tasks,
        detect_questions,
        system_prompt,
        // Each case says what its workspace begins with.
        workspace: _,
    } = run;
    let theirs = &format.defaults;
    let says = |what| format.features.contains(&what);
    // No arms means only the arm with the skill, which differs from a format that runs both.
    let arms = if arms.is_empty() { &defaults.arms } else { arms };
    let agents = if agents.is_empty() { &defaults.agents } else { agents };
    [
        // `auto` means any installed agent, which is also the meaning of no agents.
        ("agents", *agents != theirs.agents && *agents != ["auto"]),
        ("model", setting_differs(model, &defaults.model, &theirs.model)),
        ("repeat", !says(FormatFeature::Repeat) && setting_differs(repeat, &defaults.repeat, &theirs.repeat)),
        (
            "timeout",
            !says(FormatFeature::CaseTimeout) && setting_differs(timeout, &defaults.timeout, &theirs.timeout),
        ),
        ("arms", *arms != theirs.arms),
        ("mode", setting_differs(mode, &defaults.mode, &theirs.mode)),
        ("script", setting_differs(script, &defaults.script, &theirs.script)),
        (
            "trigger_threshold",
            setting_differs(trigger_threshold, &defaults.trigger_threshold, &theirs.trigger_threshold),
        ),
        ("sync_tasks", setting_differs(sync_tasks, &defaults.sync_tasks, &theirs.sync_tasks)),
        (
            "detect_questions",
            setting_differs(detect_questions, &defaults.detect_questions, &theirs.detect_questions),
        ),
        ("system_prompt", setting_differs(system_prompt, &defaults.system_prompt, &theirs.system_prompt)),
    ]
    .into_iter()
    .filter(|(_, changed)| *changed)
    .map(|(name, _)| name)
    .collect()
}
