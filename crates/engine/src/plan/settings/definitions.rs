//! The definitions of all settings: names, variables, defaults and how their values are read.

use std::time::Duration;

use serde_json::{Value, json};

use super::limits;
use practicum_agents::agents::translate_agent_name;
use practicum_core::model::{
    Arm, JudgeTransportChoice, Provider, Ratio, SandboxMode, SkillUseMode, Suite, UnsupportedPassPolicy,
    WorkspaceBase, parse_duration,
};
use practicum_core::tree::json_schema;
use practicum_evals::dialects::{AGENT_VARIABLE, PROVIDER_VARIABLE, TRANSPORT_VARIABLE};

/// The definition of one setting: its name in a project file, the variables that set it, how its text is read, and
/// the values from an eval file and its format.
pub struct SettingDefinition<T: 'static> {
    /// The name, which is also the key in a project file; a dot separates a table from a key.
    pub name: &'static str,
    /// The environment variables: our own first, then those of the tools whose files we read.
    pub env: &'static [&'static str],
    /// One sentence for people.
    pub doc: &'static str,
    /// The allowed values in a project file, as JSON Schema.
    pub schema: fn() -> Value,
    pub parse: fn(&str) -> Result<T, String>,
    pub from_suite: fn(&Suite) -> Option<T>,
    pub format_default: fn(&Suite) -> Option<T>,
    pub default: fn() -> T,
}

/// A key of a project file: the part of a setting's definition that does not depend on the type of its value.
pub struct SettingDescription {
    pub name: &'static str,
    pub env: &'static [&'static str],
    pub doc: &'static str,
    pub schema: fn() -> Value,
}

impl<T> SettingDefinition<T> {
    pub(super) const fn description(&self) -> SettingDescription {
        SettingDescription { name: self.name, env: self.env, doc: self.doc, schema: self.schema }
    }
}

/// All settings, to recognise an unknown key in a project file.
pub static SETTING_DESCRIPTIONS: &[SettingDescription] = &[
    AGENT.description(),
    MODEL.description(),
    REPEAT.description(),
    TIMEOUT.description(),
    ARM.description(),
    MODE.description(),
    TRIGGER_THRESHOLD.description(),
    SYNC_TASKS.description(),
    DETECT_QUESTIONS.description(),
    TOOLS.description(),
    WORKSPACE.description(),
    JUDGE_MODEL.description(),
    JUDGE_PROVIDER.description(),
    JUDGE_TRANSPORT.description(),
    JUDGE_VOTES.description(),
    JUDGE_UNSUPPORTED.description(),
    JUDGE_JOBS.description(),
    JOBS.description(),
    SANDBOX.description(),
    PROBE.description(),
    MAX_COST.description(),
    MAX_TOKENS.description(),
    RETRIES.description(),
    RETRY_WAIT.description(),
    limits::MEMORY.description(),
    limits::PROCESSES.description(),
    limits::CPU.description(),
    limits::OPEN_FILES.description(),
    limits::DISK.description(),
    limits::FILES.description(),
];

pub static AGENT: SettingDefinition<Vec<String>> = SettingDefinition {
    name: "agent",
    env: &["PRACTICUM_AGENT", AGENT_VARIABLE],
    doc: "The agents to examine with, by name; auto is the first that is installed, all are those that are \
          installed and logged in.",
    schema: json_schema::text_or_texts,
    parse: |text| Ok(list(text).map(|name| translate_agent_name(name).to_owned()).collect()),
    from_suite: |suite| non_empty(suite.run_policy.agents.clone()),
    format_default: |suite| non_empty(suite.format_defaults.agents.clone()),
    default: || vec!["auto".to_owned()],
};

pub static MODEL: SettingDefinition<Option<String>> = SettingDefinition {
    name: "model",
    env: &["PRACTICUM_MODEL"],
    doc: "The agent's model.",
    schema: json_schema::text,
    parse: |text| Ok(Some(text.to_owned())),
    from_suite: |suite| suite.run_policy.model.clone().map(Some),
    format_default: |suite| suite.format_defaults.model.clone().map(Some),
    default: || None,
};

pub static REPEAT: SettingDefinition<u32> = SettingDefinition {
    name: "repeat",
    env: &["PRACTICUM_REPEAT"],
    doc: "How often each case is run.",
    schema: || json_schema::integer_between(1, 1000),
    parse: |text| parse_whole_number(text, 1, 1000),
    from_suite: |suite| suite.run_policy.repeat,
    format_default: |suite| suite.format_defaults.repeat,
    default: || 1,
};

pub static TIMEOUT: SettingDefinition<Duration> = SettingDefinition {
    name: "timeout",
    env: &["PRACTICUM_TIMEOUT"],
    doc: "The time limit of a trial.",
    schema: json_schema::duration,
    parse: parse_setting_duration,
    from_suite: |suite| suite.run_policy.timeout,
    format_default: |suite| suite.format_defaults.timeout,
    default: || Duration::from_secs(600),
};

pub static ARM: SettingDefinition<Vec<Arm>> = SettingDefinition {
    name: "arm",
    env: &["PRACTICUM_ARM"],
    doc: "With the skill, without it, or both.",
    schema: json_schema::text_or_texts,
    parse: |text| {
        list(text)
            .map(|arm| {
                Arm::parse(arm)
                    .ok_or_else(|| format!("there is no arm \"{arm}\"; there are with and without"))
            })
            .collect()
    },
    from_suite: |suite| non_empty(suite.run_policy.arms.clone()),
    format_default: |suite| non_empty(suite.format_defaults.arms.clone()),
    default: || vec![Arm::WithSkill],
};

pub static MODE: SettingDefinition<SkillUseMode> = SettingDefinition {
    name: "mode",
    env: &["PRACTICUM_MODE"],
    doc: "How much the agent is pushed to use skills: baseline, smart, forced, or one of [modes].",
    schema: json_schema::text,
    parse: |text| Ok(SkillUseMode::from(text.to_owned())),
    from_suite: |suite| suite.run_policy.mode.clone(),
    format_default: |suite| suite.format_defaults.mode.clone(),
    default: || SkillUseMode::Baseline,
};

pub static TRIGGER_THRESHOLD: SettingDefinition<Ratio> = SettingDefinition {
    name: "trigger-threshold",
    env: &["PRACTICUM_TRIGGER_THRESHOLD"],
    doc: "The share of runs, above 0, from which on a skill counts as activated.",
    schema: || json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
    parse: |text| {
        let reaches_nothing =
            "it must be above 0 and at most 1: a skill that is never activated reaches 0 too";
        parse_ratio(text).ok().filter(|share| share.get() > 0.0).ok_or_else(|| reaches_nothing.to_owned())
    },
    from_suite: |suite| suite.run_policy.trigger_threshold,
    format_default: |suite| suite.format_defaults.trigger_threshold,
    default: || Ratio::new(0.5).expect("a half is a share"),
};

pub static SYNC_TASKS: SettingDefinition<bool> = SettingDefinition {
    name: "sync-tasks",
    env: &["PRACTICUM_SYNC_TASKS"],
    doc: "Whether the agent's background tasks are made to run in the foreground.",
    schema: json_schema::boolean,
    parse: parse_yes_or_no,
    from_suite: |suite| suite.run_policy.sync_tasks,
    format_default: |suite| suite.format_defaults.sync_tasks,
    default: || false,
};

pub static DETECT_QUESTIONS: SettingDefinition<bool> = SettingDefinition {
    name: "detect-questions",
    env: &["PRACTICUM_DETECT_QUESTIONS"],
    doc: "Whether a run that ends by asking a question counts as one that asked, not as finished.",
    schema: json_schema::boolean,
    parse: parse_yes_or_no,
    from_suite: |suite| suite.run_policy.detect_questions,
    format_default: |suite| suite.format_defaults.detect_questions,
    default: || false,
};

pub static TOOLS: SettingDefinition<Option<Vec<String>>> = SettingDefinition {
    name: "tools",
    env: &["PRACTICUM_TOOLS"],
    doc: "The only tools that the agent may use, by its own names for them.",
    schema: json_schema::text_or_texts,
    parse: |text| {
        let tools: Vec<String> = list(text).map(str::to_owned).collect();
        if tools.is_empty() { Err("it must name a tool".to_owned()) } else { Ok(Some(tools)) }
    },
    from_suite: |_| None,
    format_default: |_| None,
    default: || None,
};

/// The base of workspaces for formats that do not say it. Other eval files say it for each case.
pub static WORKSPACE: SettingDefinition<Option<WorkspaceBase>> = SettingDefinition {
    name: "workspace",
    env: &["PRACTICUM_WORKSPACE"],
    doc: "What an agent's workspace begins as, where the eval's format leaves it open: empty, or a copy of the project.",
    schema: || json_schema::one_of_words(&["empty", "project"]),
    parse: |text| match text {
        "empty" => Ok(Some(WorkspaceBase::Empty)),
        "project" => Ok(Some(WorkspaceBase::Project)),
        _ => Err("it must be empty or project".to_owned()),
    },
    from_suite: |suite| suite.run_policy.workspace.map(Some),
    format_default: |suite| suite.format_defaults.workspace.map(Some),
    default: || None,
};

pub static JUDGE_MODEL: SettingDefinition<Option<String>> = SettingDefinition {
    name: "judge.model",
    env: &["PRACTICUM_JUDGE_MODEL"],
    doc: "The judge's model.",
    schema: json_schema::text,
    parse: |text| Ok(Some(text.to_owned())),
    from_suite: |suite| suite.judge_policy.model.clone().map(Some),
    format_default: |_| None,
    default: || None,
};

pub static JUDGE_PROVIDER: SettingDefinition<Provider> = SettingDefinition {
    name: "judge.provider",
    env: &["PRACTICUM_GRADING_PROVIDER", PROVIDER_VARIABLE],
    doc: "The provider of the judge's model; auto derives it from the model's name.",
    schema: || json_schema::one_of_words(&Provider::NAMES),
    parse: |text| parse_one_of(text, &Provider::NAMES, Provider::parse),
    from_suite: |suite| suite.judge_policy.provider,
    format_default: |_| None,
    default: || Provider::Auto,
};

pub static JUDGE_TRANSPORT: SettingDefinition<JudgeTransportChoice> = SettingDefinition {
    name: "judge.transport",
    env: &["PRACTICUM_TRANSPORT", TRANSPORT_VARIABLE],
    doc: "How the judge is reached: over the provider's API, or through an agent CLI.",
    schema: || json_schema::one_of_words(&JudgeTransportChoice::NAMES),
    parse: |text| parse_one_of(text, &JudgeTransportChoice::NAMES, JudgeTransportChoice::parse),
    from_suite: |suite| suite.judge_policy.transport,
    format_default: |_| None,
    default: || JudgeTransportChoice::Auto,
};

pub static JUDGE_VOTES: SettingDefinition<u32> = SettingDefinition {
    name: "judge.votes",
    env: &["PRACTICUM_JUDGE_VOTES"],
    doc: "How often each statement is judged. Odd, so that there is a majority.",
    schema: || json!({"type": "integer", "minimum": 1, "maximum": 99, "not": {"multipleOf": 2}}),
    parse: |text| {
        parse_whole_number(text, 1, 99).and_then(|votes| {
            if votes % 2 == 1 {
                Ok(votes)
            } else {
                Err("votes must be odd, so that there is a majority".to_owned())
            }
        })
    },
    from_suite: |suite| suite.judge_policy.votes,
    format_default: |_| None,
    default: || 1,
};

/// The policy for passes without support. No suite can set it, because an eval file must not make its own passes
/// easier.
pub static JUDGE_UNSUPPORTED: SettingDefinition<UnsupportedPassPolicy> = SettingDefinition {
    name: "judge.unsupported",
    env: &["PRACTICUM_JUDGE_UNSUPPORTED"],
    doc: "What becomes of a pass without a quote from the record: not-scored, or accept with a flag.",
    schema: || json_schema::one_of_words(&UnsupportedPassPolicy::NAMES),
    parse: |text| parse_one_of(text, &UnsupportedPassPolicy::NAMES, UnsupportedPassPolicy::parse),
    from_suite: |_| None,
    format_default: |_| None,
    default: || UnsupportedPassPolicy::NotScored,
};

/// The number of judges at once, for the whole run: the judges of all suites use the same account.
pub static JUDGE_JOBS: SettingDefinition<usize> = SettingDefinition {
    name: "judge.jobs",
    env: &["PRACTICUM_JUDGE_JOBS"],
    doc: "How many judges are asked at once.",
    schema: || json_schema::integer_between(1, 256),
    parse: |text| parse_whole_number(text, 1, 256).map(|jobs| jobs as usize),
    from_suite: |_| None,
    format_default: |_| None,
    default: || 8,
};

pub static JOBS: SettingDefinition<usize> = SettingDefinition {
    name: "jobs",
    env: &["PRACTICUM_JOBS"],
    doc: "How many trials run at once.",
    schema: || json_schema::integer_between(1, 256),
    parse: |text| parse_whole_number(text, 1, 256).map(|jobs| jobs as usize),
    from_suite: |_| None,
    format_default: |_| None,
    // An agent mostly waits for its model, so more agents run than there are cores.
    default: || std::thread::available_parallelism().map_or(4, |cores| (2 * cores.get()).clamp(2, 8)),
};

/// The sandbox of agents. No suite can set it, because an eval file must not weaken the sandbox of its own agent.
pub static SANDBOX: SettingDefinition<SandboxMode> = SettingDefinition {
    name: "sandbox",
    env: &["PRACTICUM_SANDBOX"],
    doc: "The sandbox of agents. auto: the strongest available on this machine; strict: isolate files and network, or refuse to run; off: none.",
    schema: || json_schema::one_of_words(&SandboxMode::NAMES),
    parse: |text| parse_one_of(text, &SandboxMode::NAMES, SandboxMode::parse),
    from_suite: |_| None,
    format_default: |_| None,
    default: || SandboxMode::Auto,
};

/// Whether probes are run, for the whole run: they decide whether anything is measured at all.
pub static PROBE: SettingDefinition<bool> = SettingDefinition {
    name: "probe",
    env: &["PRACTICUM_PROBE"],
    doc: "Whether a probe tests, before activation is measured, that each agent can activate each skill.",
    schema: json_schema::boolean,
    parse: parse_yes_or_no,
    from_suite: |_| None,
    format_default: |_| None,
    default: || true,
};

pub static MAX_COST: SettingDefinition<Option<f64>> = SettingDefinition {
    name: "max-cost",
    env: &["PRACTICUM_MAX_COST"],
    doc: "The most a run may cost, in USD.",
    schema: || json!({"type": "number", "exclusiveMinimum": 0}),
    parse: |text| {
        let usd = text.trim().trim_start_matches('$').parse().ok();
        let usd = usd.filter(|usd: &f64| usd.is_finite() && *usd > 0.0);
        usd.map(Some).ok_or_else(|| "it must be an amount of USD, such as 2.50".to_owned())
    },
    from_suite: |_| None,
    format_default: |_| None,
    default: || None,
};

pub static MAX_TOKENS: SettingDefinition<Option<u64>> = SettingDefinition {
    name: "max-tokens",
    env: &["PRACTICUM_MAX_TOKENS"],
    doc: "The most tokens a run may use.",
    schema: || json!({"type": "integer", "minimum": 1}),
    parse: |text| {
        let tokens = text.trim().parse().ok().filter(|tokens: &u64| *tokens > 0);
        tokens.map(Some).ok_or_else(|| "it must be a whole number of tokens, at least 1".to_owned())
    },
    from_suite: |_| None,
    format_default: |_| None,
    default: || None,
};

pub static RETRIES: SettingDefinition<u32> = SettingDefinition {
    name: "retries",
    env: &["PRACTICUM_RETRIES"],
    doc: "How often a trial is tried again that a rate limit or a failed API broke.",
    schema: || json_schema::integer_between(0, 20),
    parse: |text| parse_whole_number(text, 0, 20),
    from_suite: |_| None,
    format_default: |_| None,
    default: || 2,
};

pub static RETRY_WAIT: SettingDefinition<Duration> = SettingDefinition {
    name: "retry-wait",
    env: &["PRACTICUM_RETRY_WAIT"],
    doc: "How long to wait before the first such try; twice as long before each further one.",
    schema: json_schema::duration,
    parse: parse_setting_duration,
    from_suite: |_| None,
    format_default: |_| None,
    default: || Duration::from_secs(20),
};

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn non_empty<T>(items: Vec<T>) -> Option<Vec<T>> {
    (!items.is_empty()).then_some(items)
}

fn parse_whole_number(text: &str, least: u32, most: u32) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| format!("it must be a whole number from {least} to {most}"))
}

fn parse_ratio(text: &str) -> Result<Ratio, String> {
    text.parse().ok().and_then(Ratio::new).ok_or_else(|| "it must be between 0 and 1".to_owned())
}

fn parse_setting_duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .ok_or_else(|| "it must be a number of seconds, or like 500ms, 20s, 5m, 1h, and not 0".to_owned())
}

fn parse_yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" | "yes" => Ok(true),
        "false" | "0" | "no" => Ok(false),
        _ => Err("it must be true or false".to_owned()),
    }
}

fn parse_one_of<T>(text: &str, names: &[&str], parse: fn(&str) -> Option<T>) -> Result<T, String> {
    parse(text).ok_or_else(|| format!("it must be one of {}", names.join(", ")))
}
