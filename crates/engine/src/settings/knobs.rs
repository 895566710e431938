use std::time::Duration;

use serde_json::{Value, json};

use practicum_core::model::{
    Arm, Base, Mode, Provider, Ratio, SandboxMode, Suite, Transport, UnsupportedPass, parse_duration,
};
use practicum_core::tree::shape;

/// One thing that can be set: its name in a project file, the variables that set it, how its
/// text is read, and what an eval file and its format say about it.
pub struct Knob<T: 'static> {
    /// Also its key in a project file; a dot separates a table from a key.
    pub name: &'static str,
    /// Our own variable first, then those of the tools whose files we read.
    pub env: &'static [&'static str],
    /// One sentence for people.
    pub doc: &'static str,
    /// What a project file may say, as JSON Schema.
    pub shape: fn() -> Value,
    pub parse: fn(&str) -> Result<T, String>,
    pub in_file: fn(&Suite) -> Option<T>,
    pub in_format: fn(&Suite) -> Option<T>,
    pub default: fn() -> T,
}

/// A key of a project file: what every knob has, whatever the type of its value.
pub struct Described {
    pub name: &'static str,
    pub doc: &'static str,
    pub shape: fn() -> Value,
}

impl<T> Knob<T> {
    const fn described(&self) -> Described {
        Described { name: self.name, doc: self.doc, shape: self.shape }
    }
}

/// All knobs, to tell an unknown key in a project file.
pub static KNOBS: &[Described] = &[
    AGENT.described(),
    MODEL.described(),
    REPEAT.described(),
    TIMEOUT.described(),
    ARM.described(),
    MODE.described(),
    TRIGGER_THRESHOLD.described(),
    SYNC_TASKS.described(),
    DETECT_QUESTIONS.described(),
    TOOLS.described(),
    WORKSPACE.described(),
    JUDGE_MODEL.described(),
    JUDGE_PROVIDER.described(),
    JUDGE_TRANSPORT.described(),
    JUDGE_VOTES.described(),
    JUDGE_UNSUPPORTED.described(),
    JUDGE_JOBS.described(),
    JOBS.described(),
    SANDBOX.described(),
    PROBE.described(),
    MAX_COST.described(),
    MAX_TOKENS.described(),
    RETRIES.described(),
    RETRY_WAIT.described(),
];

pub static AGENT: Knob<Vec<String>> = Knob {
    name: "agent",
    env: &["PRACTICUM_AGENT", "CLAUDITOR_HARNESS"],
    doc: "The agents to examine with, by name; auto is the first that is installed.",
    shape: shape::texts,
    parse: |text| Ok(list(text).map(agent_name).collect()),
    in_file: |suite| non_empty(suite.run.agents.clone()),
    in_format: |suite| non_empty(suite.defaults.agents.clone()),
    default: || vec!["auto".to_owned()],
};

pub static MODEL: Knob<Option<String>> = Knob {
    name: "model",
    env: &["PRACTICUM_MODEL"],
    doc: "The agent's model.",
    shape: shape::text,
    parse: |text| Ok(Some(text.to_owned())),
    in_file: |suite| suite.run.model.clone().map(Some),
    in_format: |suite| suite.defaults.model.clone().map(Some),
    default: || None,
};

pub static REPEAT: Knob<u32> = Knob {
    name: "repeat",
    env: &["PRACTICUM_REPEAT"],
    doc: "How often each case is run.",
    shape: || shape::whole(1, 1000),
    parse: |text| whole(text, 1, 1000),
    in_file: |suite| suite.run.repeat,
    in_format: |suite| suite.defaults.repeat,
    default: || 1,
};

pub static TIMEOUT: Knob<Duration> = Knob {
    name: "timeout",
    env: &["PRACTICUM_TIMEOUT"],
    doc: "The time limit of a trial.",
    shape: shape::duration,
    parse: duration,
    in_file: |suite| suite.run.timeout,
    in_format: |suite| suite.defaults.timeout,
    default: || Duration::from_secs(600),
};

pub static ARM: Knob<Vec<Arm>> = Knob {
    name: "arm",
    env: &["PRACTICUM_ARM"],
    doc: "With the skill, without it, or both.",
    shape: shape::texts,
    parse: |text| {
        list(text)
            .map(|arm| {
                Arm::parse(arm)
                    .ok_or_else(|| format!("there is no arm \"{arm}\"; there are with and without"))
            })
            .collect()
    },
    in_file: |suite| non_empty(suite.run.arms.clone()),
    in_format: |suite| non_empty(suite.defaults.arms.clone()),
    default: || vec![Arm::WithSkill],
};

pub static MODE: Knob<Mode> = Knob {
    name: "mode",
    env: &["PRACTICUM_MODE"],
    doc: "How much the agent is pushed to use skills: baseline, smart, forced, or one of [modes].",
    shape: shape::text,
    parse: |text| Ok(Mode::from(text.to_owned())),
    in_file: |suite| suite.run.mode.clone(),
    in_format: |suite| suite.defaults.mode.clone(),
    default: || Mode::Baseline,
};

pub static TRIGGER_THRESHOLD: Knob<Ratio> = Knob {
    name: "trigger-threshold",
    env: &["PRACTICUM_TRIGGER_THRESHOLD"],
    doc: "The share of runs, above 0, from which on a skill counts as activated.",
    shape: || json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
    parse: |text| {
        let reaches_nothing =
            "it must be above 0 and at most 1: a skill that is never activated reaches 0 too";
        ratio(text).ok().filter(|share| share.get() > 0.0).ok_or_else(|| reaches_nothing.to_owned())
    },
    in_file: |suite| suite.run.trigger_threshold,
    in_format: |suite| suite.defaults.trigger_threshold,
    default: || Ratio::new(0.5).expect("a half is a share"),
};

pub static SYNC_TASKS: Knob<bool> = Knob {
    name: "sync-tasks",
    env: &["PRACTICUM_SYNC_TASKS"],
    doc: "Whether the agent's background tasks are made to run in the foreground.",
    shape: shape::yes_or_no,
    parse: yes_or_no,
    in_file: |suite| suite.run.sync_tasks,
    in_format: |suite| suite.defaults.sync_tasks,
    default: || false,
};

pub static DETECT_QUESTIONS: Knob<bool> = Knob {
    name: "detect-questions",
    env: &["PRACTICUM_DETECT_QUESTIONS"],
    doc: "Whether a run that ends by asking a question counts as one that asked, not as finished.",
    shape: shape::yes_or_no,
    parse: yes_or_no,
    in_file: |suite| suite.run.detect_questions,
    in_format: |suite| suite.defaults.detect_questions,
    default: || false,
};

pub static TOOLS: Knob<Option<Vec<String>>> = Knob {
    name: "tools",
    env: &["PRACTICUM_TOOLS"],
    doc: "The only tools that the agent may use, by its own names for them.",
    shape: shape::texts,
    parse: |text| {
        let tools: Vec<String> = list(text).map(str::to_owned).collect();
        if tools.is_empty() { Err("it must name a tool".to_owned()) } else { Ok(Some(tools)) }
    },
    in_file: |_| None,
    in_format: |_| None,
    default: || None,
};

/// What the eval file says is a part of each case; this is for formats that say nothing.
pub static WORKSPACE: Knob<Option<Base>> = Knob {
    name: "workspace",
    env: &["PRACTICUM_WORKSPACE"],
    doc: "What an agent's workspace begins as, where the eval's format leaves it open: empty, or a copy of the project.",
    shape: || shape::words(&["empty", "project"]),
    parse: |text| match text {
        "empty" => Ok(Some(Base::Empty)),
        "project" => Ok(Some(Base::Project)),
        _ => Err("it must be empty or project".to_owned()),
    },
    in_file: |suite| suite.run.workspace.map(Some),
    in_format: |suite| suite.defaults.workspace.map(Some),
    default: || None,
};

pub static JUDGE_MODEL: Knob<Option<String>> = Knob {
    name: "judge.model",
    env: &["PRACTICUM_JUDGE_MODEL"],
    doc: "The judge's model.",
    shape: shape::text,
    parse: |text| Ok(Some(text.to_owned())),
    in_file: |suite| suite.judge.model.clone().map(Some),
    in_format: |_| None,
    default: || None,
};

pub static JUDGE_PROVIDER: Knob<Provider> = Knob {
    name: "judge.provider",
    env: &["PRACTICUM_GRADING_PROVIDER", "CLAUDITOR_GRADING_PROVIDER"],
    doc: "Whose model judges; auto tells it by the model's name.",
    shape: || shape::words(&Provider::NAMES),
    parse: |text| one_of(text, &Provider::NAMES, Provider::parse),
    in_file: |suite| suite.judge.provider,
    in_format: |_| None,
    default: || Provider::Auto,
};

pub static JUDGE_TRANSPORT: Knob<Transport> = Knob {
    name: "judge.transport",
    env: &["PRACTICUM_TRANSPORT", "CLAUDITOR_TRANSPORT"],
    doc: "How the judge is reached: over the provider's API, or through an agent CLI.",
    shape: || shape::words(&Transport::NAMES),
    parse: |text| one_of(text, &Transport::NAMES, Transport::parse),
    in_file: |suite| suite.judge.transport,
    in_format: |_| None,
    default: || Transport::Auto,
};

pub static JUDGE_VOTES: Knob<u32> = Knob {
    name: "judge.votes",
    env: &["PRACTICUM_JUDGE_VOTES"],
    doc: "How often each statement is judged. Odd, so that there is a majority.",
    shape: || json!({"type": "integer", "minimum": 1, "maximum": 99, "not": {"multipleOf": 2}}),
    parse: |text| {
        whole(text, 1, 99).and_then(|votes| {
            if votes % 2 == 1 {
                Ok(votes)
            } else {
                Err("votes must be odd, so that there is a majority".to_owned())
            }
        })
    },
    in_file: |suite| suite.judge.votes,
    in_format: |_| None,
    default: || 1,
};

/// No suite has a say: an eval file must not lower what its own passes need.
pub static JUDGE_UNSUPPORTED: Knob<UnsupportedPass> = Knob {
    name: "judge.unsupported",
    env: &["PRACTICUM_JUDGE_UNSUPPORTED"],
    doc: "What becomes of a pass without a quote from the record: not-scored, or accept with a flag.",
    shape: || shape::words(&UnsupportedPass::NAMES),
    parse: |text| one_of(text, &UnsupportedPass::NAMES, UnsupportedPass::parse),
    in_file: |_| None,
    in_format: |_| None,
    default: || UnsupportedPass::NotScored,
};

/// Of the whole run: all its suites' judges draw on the same account.
pub static JUDGE_JOBS: Knob<usize> = Knob {
    name: "judge.jobs",
    env: &["PRACTICUM_JUDGE_JOBS"],
    doc: "How many judges are asked at once.",
    shape: || shape::whole(1, 256),
    parse: |text| whole(text, 1, 256).map(|jobs| jobs as usize),
    in_file: |_| None,
    in_format: |_| None,
    default: || 8,
};

pub static JOBS: Knob<usize> = Knob {
    name: "jobs",
    env: &["PRACTICUM_JOBS"],
    doc: "How many trials run at once.",
    shape: || shape::whole(1, 256),
    parse: |text| whole(text, 1, 256).map(|jobs| jobs as usize),
    in_file: |_| None,
    in_format: |_| None,
    // An agent waits for its model most of the time, so more run than there are cores.
    default: || std::thread::available_parallelism().map_or(4, |cores| (2 * cores.get()).clamp(2, 8)),
};

/// No suite has a say: an eval file must not tear down the walls around its own agent.
pub static SANDBOX: Knob<SandboxMode> = Knob {
    name: "sandbox",
    env: &["PRACTICUM_SANDBOX"],
    doc: "Walls around the agents: as good as this machine can, none, or files and network or no run.",
    shape: || shape::words(&SandboxMode::NAMES),
    parse: |text| one_of(text, &SandboxMode::NAMES, SandboxMode::parse),
    in_file: |_| None,
    in_format: |_| None,
    default: || SandboxMode::Auto,
};

/// Of the whole run: it decides whether anything is measured at all.
pub static PROBE: Knob<bool> = Knob {
    name: "probe",
    env: &["PRACTICUM_PROBE"],
    doc: "Whether each agent is told once to use each skill before activation is measured.",
    shape: shape::yes_or_no,
    parse: yes_or_no,
    in_file: |_| None,
    in_format: |_| None,
    default: || true,
};

pub static MAX_COST: Knob<Option<f64>> = Knob {
    name: "max-cost",
    env: &["PRACTICUM_MAX_COST"],
    doc: "The most a run may cost, in USD.",
    shape: || json!({"type": "number", "exclusiveMinimum": 0}),
    parse: |text| {
        let usd = text.trim().trim_start_matches('$').parse().ok();
        let usd = usd.filter(|usd: &f64| usd.is_finite() && *usd > 0.0);
        usd.map(Some).ok_or_else(|| "it must be an amount of USD, such as 2.50".to_owned())
    },
    in_file: |_| None,
    in_format: |_| None,
    default: || None,
};

pub static MAX_TOKENS: Knob<Option<u64>> = Knob {
    name: "max-tokens",
    env: &["PRACTICUM_MAX_TOKENS"],
    doc: "The most tokens a run may use.",
    shape: || json!({"type": "integer", "minimum": 1}),
    parse: |text| {
        let tokens = text.trim().parse().ok().filter(|tokens: &u64| *tokens > 0);
        tokens.map(Some).ok_or_else(|| "it must be a whole number of tokens, at least 1".to_owned())
    },
    in_file: |_| None,
    in_format: |_| None,
    default: || None,
};

pub static RETRIES: Knob<u32> = Knob {
    name: "retries",
    env: &["PRACTICUM_RETRIES"],
    doc: "How often a trial is tried again that a rate limit or a failed API broke.",
    shape: || shape::whole(0, 20),
    parse: |text| whole(text, 0, 20),
    in_file: |_| None,
    in_format: |_| None,
    default: || 2,
};

pub static RETRY_WAIT: Knob<Duration> = Knob {
    name: "retry-wait",
    env: &["PRACTICUM_RETRY_WAIT"],
    doc: "How long to wait before the first such try; twice as long before each further one.",
    shape: shape::duration,
    parse: duration,
    in_file: |_| None,
    in_format: |_| None,
    default: || Duration::from_secs(20),
};

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// Other tools call the same agent otherwise.
fn agent_name(name: &str) -> String {
    match name {
        "claude-code" => "claude".to_owned(),
        other => other.to_owned(),
    }
}

fn non_empty<T>(items: Vec<T>) -> Option<Vec<T>> {
    (!items.is_empty()).then_some(items)
}

fn whole(text: &str, least: u32, most: u32) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| format!("it must be a whole number from {least} to {most}"))
}

fn ratio(text: &str) -> Result<Ratio, String> {
    text.parse().ok().and_then(Ratio::new).ok_or_else(|| "it must be between 0 and 1".to_owned())
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .ok_or_else(|| "it must be a number of seconds, or like 500ms, 20s, 5m, 1h, and not 0".to_owned())
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" | "yes" => Ok(true),
        "false" | "0" | "no" => Ok(false),
        _ => Err("it must be true or false".to_owned()),
    }
}

fn one_of<T>(text: &str, names: &[&str], parse: fn(&str) -> Option<T>) -> Result<T, String> {
    parse(text).ok_or_else(|| format!("it must be one of {}", names.join(", ")))
}
