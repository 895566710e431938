//! A suite: the cases of one eval file or folder, and how to run and judge them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ActivationSource, Arm, Case, CheckKind, Diagnostics, Digest, Gate, GateName, JudgedStatement, PassRule,
    Ratio, SkillUseMode, WorkspaceBase,
};

/// One eval file (or one folder of them) in the form that every later stage uses.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// The name of the suite.
    pub name: String,
    /// The file that the suite was read from.
    pub origin: Origin,
    /// A description for people.
    pub description: Option<String>,
    /// The skills under test. There are several only if a suite measures which of them the agent picks.
    pub skills: Vec<SkillRef>,
    /// Skills staged beside those under test, because the question is which of them the agent picks.
    pub rivals: Vec<SkillRef>,
    /// Folders of plugins that are staged whole, with their commands and agents, for agents that load plugins.
    /// Their skills are also among the skills under test or the rivals.
    pub plugins: Vec<PathBuf>,
    /// The statements about each skill's own text that a judge decides, whatever the trials show. No gate counts
    /// them.
    pub skill_statements: Vec<SkillStatement>,
    /// The cases of the suite.
    pub cases: Vec<Case>,
    /// Settings from the file itself.
    pub run_policy: RunPolicy,
    /// Defaults of the file's format, used if the file, the project and the user say nothing.
    pub format_defaults: RunPolicy,
    /// How the judge is asked.
    pub judge_policy: JudgePolicy,
    /// The gates, which decide whether a run of the suite passes.
    pub gates: Vec<Gate>,
    /// Content of the file that no stage uses. It is kept so that converting loses nothing.
    pub meta: BTreeMap<String, Value>,
}

impl Suite {
    /// Makes a suite without content, for settings that do not depend on a file.
    pub fn empty(name: &str, origin: Origin) -> Self {
        Self {
            name: name.to_owned(),
            origin,
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

    /// Lets a model predict activation instead of observing it in a run. A case with no other checks then runs
    /// once, because a repeated prediction shows nothing new.
    pub fn switch_to_predicted_activation(&mut self) {
        for case in &mut self.cases {
            let mut others = case.checks.is_empty();
            for check in &mut case.checks {
                match &mut check.kind {
                    CheckKind::Activation(activation) => activation.source = ActivationSource::Predicted,
                    CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => others = true,
                }
            }
            if !others {
                case.repeat = Some(1);
                case.pass_rule = PassRule::EveryRequiredCheck;
            }
        }
    }

    /// Says whether a model predicts any activation.
    pub fn predicts_activation(&self) -> bool {
        let mut checks = self.cases.iter().flat_map(|case| &case.checks);
        checks.any(|check| {
            matches!(&check.kind, CheckKind::Activation(activation) if activation.source == ActivationSource::Predicted)
        })
    }

    /// Tests this skill instead of the one the file names. Checks that name the old skill then name the new one,
    /// because they could never pass otherwise. In a suite about several skills, only one of them can be replaced,
    /// by its name. Says whether the skill was set.
    pub fn set_tested_skill(&mut self, skill: SkillRef) -> bool {
        if self.skills.len() > 1 {
            let same = self.skills.iter_mut().find(|known| known.name == skill.name);
            return same.map(|known| known.path = skill.path).is_some();
        }
        let old = self.skills.first().map(|old| old.name.clone());
        for check in self.cases.iter_mut().flat_map(|case| &mut case.checks) {
            if let CheckKind::Activation(activation) = &mut check.kind {
                // A check about another skill than the one under test stays as it is.
                for name in activation.skills.iter_mut().filter(|name| Some(&**name) == old.as_ref()) {
                    name.clone_from(&skill.name);
                }
                if activation.skills.is_empty() {
                    activation.skills.push(skill.name.clone());
                }
            }
        }
        self.rivals.retain(|rival| rival.name != skill.name);
        self.skills = vec![skill];
        true
    }

    /// Stages a skill beside those under test. A skill under test is not added, because it cannot be its own
    /// rival. Says whether the skill was added.
    pub fn add_rival(&mut self, rival: SkillRef) -> bool {
        if self.skills.iter().any(|skill| skill.name == rival.name) {
            return false;
        }
        self.rivals.retain(|known| known.name != rival.name);
        self.rivals.push(rival);
        true
    }

    /// Changes every path of the suite: its origin, its skills and plugins, and the files of its cases.
    pub fn change_paths(&mut self, mut change: impl FnMut(&mut PathBuf)) {
        change(&mut self.origin.path);
        self.skills
            .iter_mut()
            .chain(&mut self.rivals)
            .filter_map(|skill| skill.path.as_mut())
            .for_each(&mut change);
        self.plugins.iter_mut().for_each(&mut change);
        [&mut self.run_policy, &mut self.format_defaults]
            .into_iter()
            .filter_map(|policy| policy.script.as_mut())
            .for_each(&mut change);
        for case in &mut self.cases {
            case.workspace.overlays.iter_mut().for_each(&mut change);
            case.workspace.files.iter_mut().for_each(|file| change(&mut file.source));
            case.known_good_output.iter_mut().for_each(&mut change);
        }
    }

    /// Gives the case with this id.
    pub fn case(&self, id: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.id == id)
    }

    /// Gives the prompt that replaces the skill's own command in an arm without the skill: the request in the
    /// author's words, else the arguments of the command. `None` if both are empty.
    pub fn prompt_without_skill<'s>(&'s self, args: &'s str) -> Option<&'s str> {
        let filled = |text: &&str| !text.trim().is_empty();
        self.judge_policy.user_prompt.as_deref().filter(filled).or(Some(args).filter(filled))
    }

    /// Says whether the suite has checks that a gate of this name measures.
    pub fn has_checks_for(&self, gate: GateName) -> bool {
        self.can_measure_on(gate, &self.cases)
    }

    /// Says whether these cases of the suite have checks that a gate of this name measures. Stability leaves out
    /// the activation cases if they have a gate of their own.
    pub fn can_measure_on<'c>(&self, gate: GateName, cases: impl IntoIterator<Item = &'c Case>) -> bool {
        let of_activation = GateName::ActivationCasesPass;
        let has_own_gate =
            gate == GateName::Stability && self.gates.iter().any(|own| own.name == of_activation);
        gate.applies_to(cases.into_iter().filter(|case| !(has_own_gate && of_activation.applies_to([*case]))))
    }
}

/// Where a suite came from. For reports and messages only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// The name of the eval format.
    pub dialect: String,
    /// The path of the eval file or folder.
    pub path: PathBuf,
    /// The digest of the content.
    pub digest: Digest,
}

/// A skill that a suite names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillRef {
    /// The name of the skill.
    pub name: String,
    /// The skill's folder, its SKILL.md or a command file; `None` if only the name is known.
    pub path: Option<PathBuf>,
    /// The plugin that the skill belongs to.
    pub plugin: Option<String>,
}

/// A statement about the text of a skill, with an id that is unique in its suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillStatement {
    /// The id of the statement.
    pub id: String,
    /// The statement that a judge decides.
    pub judged: JudgedStatement,
}

/// The id of the statement that a skill has what its type needs. Grading files contain this name.
pub const TYPE_ALIGNMENT_ID: &str = "type_alignment";

/// The settings of a suite for running it. Every field is optional, because each source of settings is one layer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunPolicy {
    /// The agents to run.
    pub agents: Vec<String>,
    /// The model that the agents use.
    pub model: Option<String>,
    /// The number of trials of each case.
    pub repeat: Option<u32>,
    /// The time limit of a trial.
    pub timeout: Option<Duration>,
    /// The arms to run.
    pub arms: Vec<Arm>,
    /// How strongly the system prompt urges the agent to use skills.
    pub mode: Option<SkillUseMode>,
    /// A script that answers in place of the model.
    pub script: Option<PathBuf>,
    /// The share of trials that must activate a skill.
    pub trigger_threshold: Option<Ratio>,
    /// Whether background tasks of the agent are made to run in the foreground.
    pub sync_tasks: Option<bool>,
    /// Whether a run that ends with a question counts as `AskedUser`.
    pub detect_questions: Option<bool>,
    /// Text put before the user's message for agents that know no skill command.
    pub system_prompt: Option<String>,
    /// The initial contents of workspaces, if the format leaves that to the settings.
    pub workspace: Option<WorkspaceBase>,
}

/// What an eval file says about the judge.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JudgePolicy {
    /// The model that judges.
    pub model: Option<String>,
    /// The provider of the model.
    pub provider: Option<Provider>,
    /// The way to reach the model.
    pub transport: Option<JudgeTransportChoice>,
    /// The number of votes for each statement.
    pub votes: Option<u32>,
    /// The request as a blind comparison shows it to the judge.
    pub user_prompt: Option<String>,
}

/// The provider of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Chosen by the name of the model.
    Auto,
    /// Anthropic.
    Anthropic,
    /// OpenAI.
    Openai,
}

impl Provider {
    /// The names of the providers, for help and messages.
    pub const NAMES: [&'static str; 3] = ["anthropic", "openai", "auto"];

    /// Reads the name of a provider; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Provider::Auto),
            "anthropic" => Some(Provider::Anthropic),
            "openai" => Some(Provider::Openai),
            _ => None,
        }
    }

    /// Finds the provider of a model by the model's name.
    pub fn of_model(model: &str) -> Option<Self> {
        let is_o_series = |model: &str| {
            model.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        match model {
            _ if model.starts_with("claude-") => Some(Provider::Anthropic),
            _ if model.starts_with("gpt-") || is_o_series(model) => Some(Provider::Openai),
            _ => None,
        }
    }

    /// Gives the name of the provider in settings.
    pub fn name(self) -> &'static str {
        match self {
            Provider::Auto => "auto",
            Provider::Anthropic => "anthropic",
            Provider::Openai => "openai",
        }
    }
}

/// How a judge is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JudgeTransportChoice {
    /// Chosen by what is available: keys, and installed agent CLIs.
    Auto,
    /// The API of the provider, with a key.
    Api,
    /// An agent CLI that is logged in.
    Cli,
}

impl JudgeTransportChoice {
    /// The names of the choices, for help and messages.
    pub const NAMES: [&'static str; 3] = ["api", "cli", "auto"];

    /// Reads the name of a choice; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(JudgeTransportChoice::Auto),
            "api" => Some(JudgeTransportChoice::Api),
            "cli" => Some(JudgeTransportChoice::Cli),
            _ => None,
        }
    }

    /// Gives the name of the choice in settings.
    pub fn name(self) -> &'static str {
        match self {
            JudgeTransportChoice::Auto => "auto",
            JudgeTransportChoice::Api => "api",
            JudgeTransportChoice::Cli => "cli",
        }
    }
}

/// The treatment of a pass for which the judge quotes no evidence from the record, even when asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsupportedPassPolicy {
    /// The statement is not scored.
    NotScored,
    /// The pass counts, with a flag.
    Accept,
}

impl UnsupportedPassPolicy {
    /// The names of the choices, for help and messages.
    pub const NAMES: [&'static str; 2] = ["not-scored", "accept"];

    /// Reads the name of a choice; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "not-scored" => Some(UnsupportedPassPolicy::NotScored),
            "accept" => Some(UnsupportedPassPolicy::Accept),
            _ => None,
        }
    }

    /// Gives the name of the choice in settings.
    pub fn name(self) -> &'static str {
        match self {
            UnsupportedPassPolicy::NotScored => "not-scored",
            UnsupportedPassPolicy::Accept => "accept",
        }
    }
}

/// The result of reading one source: a suite if the source could be understood, and all diagnostics.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedSuite {
    /// The suite; `None` if the file cannot be used.
    pub suite: Option<Suite>,
    /// What there is to say about the file.
    pub diagnostics: Diagnostics,
}
