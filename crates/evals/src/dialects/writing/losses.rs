use std::collections::HashMap;

use practicum_core::model::{
    Access, Base, Case, Fixture, Gate, JudgePolicy, Need, PassRule, Room, RunPolicy, SkillName, Stimulus,
    Suite,
};

/// What a format can say beyond prompts and checks, which each format writes in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    Description,
    Skill,
    SeveralSkills,
    Rivals,
    AboutSkill,
    SuiteMeta,
    CaseMeta,
    /// How often every case runs.
    Repeat,
    /// How long one case may take; a limit for all is then written to each.
    CaseTimeout,
    Group,
    Note,
    Context,
    Turns,
    Overlays,
    Files,
    Scripts,
    Alias,
    FireRate,
    Advisory,
}

/// What is lost where a format does not have the skill's text judged, or has other things judged of it.
pub const ABOUT_SKILL: &str = "what a judge is to decide of the skill's own text";

/// A format as far as losses go.
pub struct Said<'f> {
    pub says: &'f [Says],
    /// Where its cases begin.
    pub base: Base,
    /// What it does when its file is silent.
    pub defaults: RunPolicy,
    pub gates: Vec<Gate>,
}

/// What a suite says and a format does not, a sentence each; cases that lose the same thing share one.
#[derive(Debug, Default)]
pub struct Losses {
    suite: Vec<String>,
    cases: Vec<(String, Vec<String>)>,
    /// The cases of which nothing is written.
    whole_cases: Vec<String>,
    /// Where in `cases` a loss stands.
    index: HashMap<String, usize>,
}

impl Losses {
    pub fn suite(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.suite.contains(&what) {
            self.suite.push(what);
        }
    }

    pub fn case(&mut self, case: &str, what: impl Into<String>) {
        let what = what.into();
        let at = *self.index.entry(what.clone()).or_insert(self.cases.len());
        match self.cases.get_mut(at) {
            // Several checks of one case may lose the same thing.
            Some((_, cases)) if cases.last().is_some_and(|last| last == case) => {}
            Some((_, cases)) => cases.push(case.to_owned()),
            None => self.cases.push((what, vec![case.to_owned()])),
        }
    }

    /// Notes that nothing of a case is written.
    pub fn whole_case(&mut self, case: &str, why: &str) {
        self.case(case, format!("the whole case, because {why}"));
        self.whole_cases.push(case.to_owned());
    }

    /// The ids of the cases of which nothing is written.
    pub fn lost_cases(&self) -> Vec<String> {
        self.whole_cases.clone()
    }

    pub fn extend(&mut self, other: Self) {
        self.whole_cases.extend(other.whole_cases);
        for what in other.suite {
            self.suite(what);
        }
        for (what, cases) in other.cases {
            for case in cases {
                self.case(&case, what.clone());
            }
        }
    }

    pub fn into_sentences(self) -> Vec<String> {
        const SHOWN: usize = 5;
        let cases = self.cases.into_iter().map(|(what, cases)| match cases.as_slice() {
            [one] => format!("case {one}: {what}"),
            several if several.len() <= SHOWN => format!("cases {}: {what}", several.join(", ")),
            several => {
                format!("cases {} and {} more: {what}", several[..SHOWN].join(", "), several.len() - SHOWN)
            }
        });
        self.suite.into_iter().chain(cases).collect()
    }

    /// Everything of a suite that the format has no word for, except prompts and checks.
    pub fn of(suite: &Suite, format: &Said<'_>) -> Self {
        let mut losses = Self::default();
        // Without `..`, a new field makes the compiler point here.
        let Suite {
            name: _,
            origin: _,
            description,
            skills,
            rivals,
            plugins,
            about_skill,
            cases,
            run,
            defaults,
            judge,
            gates,
            meta,
        } = suite;
        let says = |what| format.says.contains(&what);
        let mut lose = |lost: bool, what: &str| {
            if lost {
                losses.suite(what);
            }
        };
        lose(description.is_some() && !says(Says::Description), "the description");
        lose(!skills.is_empty() && !says(Says::Skill), "the skill, which is named on the command line");
        lose(
            skills.len() > 1 && says(Says::Skill) && !says(Says::SeveralSkills),
            "every skill but the first",
        );
        lose(!rivals.is_empty() && !says(Says::Rivals), "the skills staged as rivals");
        lose(!plugins.is_empty() && !says(Says::Rivals), "the plugins");
        lose(!about_skill.is_empty() && !says(Says::AboutSkill), ABOUT_SKILL);
        lose(*judge != JudgePolicy::default(), "the judge's settings");
        lose(*gates != format.gates, "the gates");
        lose(!meta.is_empty() && !says(Says::SuiteMeta), "the extra keys of the file");
        for setting in changed_settings(run, defaults, format) {
            losses.suite(format!("the setting \"{setting}\""));
        }
        for case in cases {
            losses.of_case(case, format);
        }
        losses
    }

    fn of_case(&mut self, case: &Case, format: &Said<'_>) {
        let Case {
            id,
            group,
            note,
            stimulus,
            room,
            checks,
            context,
            timeout,
            repeat,
            pass_when,
            oracle,
            meta,
        } = case;
        let Room { base, overlays, skill, files, setup, teardown } = room;
        let says = |what| format.says.contains(&what);
        let mutable = files.iter().any(|Fixture { access, .. }| *access == Access::Mutable);
        let starts_in = match base {
            Base::Project => "it starts in the project, and here cases start in an empty folder",
            Base::Empty => "it starts in an empty folder, and here cases start in the project",
        };
        let (turns, command) = match stimulus {
            Stimulus::Turns(turns) => (turns.len() > 1, false),
            Stimulus::SkillCommand { .. } => (false, true),
        };
        let rate = match pass_when {
            PassRule::EveryRequiredCheck => None,
            PassRule::FireRate(None) if says(Says::FireRate) => None,
            PassRule::FireRate(Some(_)) if says(Says::FireRate) => Some("the rate of its own to pass by"),
            PassRule::FireRate(_) => Some("that it passes by the rate at which the skill fires"),
            PassRule::Graded { .. } => Some("the share and the mean score its judged checks must reach"),
            PassRule::Tally => Some("that it only counts towards rates"),
        };
        for (lost, what) in [
            (group.is_some() && !says(Says::Group), "the group"),
            (note.is_some() && !says(Says::Note), "the note"),
            (context.is_some() && !says(Says::Context), "what the judge should know"),
            (turns && !says(Says::Turns), "its turns became one message"),
            (command, "its skill command became a message"),
            (*base != format.base, starts_in),
            (!overlays.is_empty() && !says(Says::Overlays), "its overlays"),
            (*skill == SkillName::Alias && !says(Says::Alias), "that the skill has another name"),
            (!files.is_empty() && !says(Says::Files), "its files"),
            (mutable && says(Says::Files), "that its files may be changed"),
            ((setup.is_some() || teardown.is_some()) && !says(Says::Scripts), "its scripts"),
            (timeout.is_some() && !says(Says::CaseTimeout), "its time limit"),
            (repeat.is_some(), "how often it runs"),
            (rate.is_some(), rate.unwrap_or_default()),
            (oracle.is_some(), "the output known to be good"),
            (!meta.is_empty() && !says(Says::CaseMeta), "its extra keys"),
            (
                checks.iter().any(|check| check.need == Need::Advisory) && !says(Says::Advisory),
                "that some checks are only advice",
            ),
        ] {
            if lost {
                self.case(id, what);
            }
        }
    }
}

/// The settings that are said here, and would be others when the format's own defaults take over.
fn changed_settings(run: &RunPolicy, defaults: &RunPolicy, format: &Said<'_>) -> Vec<&'static str> {
    fn differs<T: PartialEq>(file: &Option<T>, format: &Option<T>, theirs: &Option<T>) -> bool {
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
        // Each case says what its workspace begins as.
        workspace: _,
    } = run;
    let theirs = &format.defaults;
    let says = |what| format.says.contains(&what);
    // Silence means the arm with the skill alone, so it differs from a format that runs both.
    let arms = if arms.is_empty() { &defaults.arms } else { arms };
    let agents = if agents.is_empty() { &defaults.agents } else { agents };
    [
        // Any installed agent is what is meant where nothing is said.
        ("agents", *agents != theirs.agents && *agents != ["auto"]),
        ("model", differs(model, &defaults.model, &theirs.model)),
        ("repeat", !says(Says::Repeat) && differs(repeat, &defaults.repeat, &theirs.repeat)),
        ("timeout", !says(Says::CaseTimeout) && differs(timeout, &defaults.timeout, &theirs.timeout)),
        ("arms", *arms != theirs.arms),
        ("mode", differs(mode, &defaults.mode, &theirs.mode)),
        ("script", differs(script, &defaults.script, &theirs.script)),
        (
            "trigger_threshold",
            differs(trigger_threshold, &defaults.trigger_threshold, &theirs.trigger_threshold),
        ),
        ("sync_tasks", differs(sync_tasks, &defaults.sync_tasks, &theirs.sync_tasks)),
        ("detect_questions", differs(detect_questions, &defaults.detect_questions, &theirs.detect_questions)),
        ("system_prompt", differs(system_prompt, &defaults.system_prompt, &theirs.system_prompt)),
    ]
    .into_iter()
    .filter(|(_, changed)| *changed)
    .map(|(name, _)| name)
    .collect()
}
