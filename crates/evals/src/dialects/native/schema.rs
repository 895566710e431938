//! The native format for editors. The checks are those of `score`, so that a new one is here too.

use serde_json::{Value, json};

use crate::score::RULES;
use practicum_core::model::{GateName, Provider, Scale, Transport};
use practicum_core::tree::shape::{self, Mapping, named};

pub fn schema() -> Value {
    shape::document(
        "Practicum evals (*.practicum.yaml)",
        "A suite of evals in Practicum's own format. Paths start at the file's folder.",
        suite(),
        [
            ("skill", skill()),
            ("run", run()),
            ("case", case()),
            ("check", check()),
            ("activation", activation()),
            ("section", section()),
        ],
    )
}

fn suite() -> Mapping {
    let skills = || shape::either([named("skill"), shape::list(named("skill"))]);
    Mapping::closed()
        .must("practicum", "The version of the format.", json!({"const": 1}))
        .may("name", "What the suite is called; by default as the file, up to its first dot.", shape::text())
        .may("description", "What the suite asks, for people.", shape::text())
        .may("skill", "The skill under test, or several that are told apart.", skills())
        .may(
            "rivals",
            "Skills staged beside those under test, because the question is which is picked.",
            skills(),
        )
        .may(
            "plugins",
            "Folders of plugins that are staged whole for agents that load plugins.",
            shape::either([shape::filled(), shape::list(shape::filled())]),
        )
        .may(
            "about_skill",
            "Statements that a judge decides of the skill's own text. They pass and fail nothing.",
            shape::list(about_skill()),
        )
        .may("workspace", "What every room holds to begin with, unless its case says otherwise.", base())
        .may("run", "How the cases are run.", named("run"))
        .may(
            "defaults",
            "How the cases are run where no flag, variable, file or user says otherwise.",
            named("run"),
        )
        .may("judge", "Who decides what code cannot.", judge())
        .may("gates", "What must hold for exit code 0; without this, every case must pass.", gates())
        .may("meta", "Anything else. It is kept and means nothing.", json!({"type": "object"}))
        .must("cases", "The questions of the exam.", shape::some(named("case")))
}

fn about_skill() -> Mapping {
    Mapping::closed()
        .must("id", "A name that stays.", shape::filled())
        .must("statement", "What is to be so.", shape::filled())
        .may("context", "What the judge needs to know, not scored.", shape::text())
        .may(
            "scale",
            "How it is judged.",
            shape::default(shape::words(&Scale::ALL.map(Scale::name)), Scale::PassFail.name()),
        )
}

fn base() -> Value {
    let words = shape::words(&["project", "empty"]);
    shape::default(words, "project")
}

fn skill() -> Value {
    let path = || shape::such_as(shape::text(), json!(["..", "../skills/release-notes"]));
    let mapping = Mapping::closed()
        .may("name", "The skill's name; by default what the skill calls itself.", shape::text())
        .may("path", "The skill's folder, its SKILL.md or a command file.", path())
        .may("plugin", "The plugin that the skill belongs to.", shape::text())
        .with("anyOf", json!([{"required": ["name"]}, {"required": ["path"]}]));
    shape::either([path(), mapping.into()])
}

fn run() -> Value {
    let arm = json!({"type": "string", "pattern": "^(with|without|v\\+?[0-9]+)$"});
    let arms = shape::either([arm.clone(), shape::list(arm)]);
    let mode = shape::either([shape::words(&["baseline", "smart", "forced"]), shape::text()]);
    let run = Mapping::closed()
        .may(
            "agents",
            "The agents to examine with, by name.",
            shape::such_as(shape::texts(), json!([["claude"], ["builtin"]])),
        )
        .may("model", "The agent's model.", shape::text())
        .may("repeat", "How often each case is run.", repeat())
        .may("timeout", "The time limit of a trial.", shape::duration())
        .may(
            "arms",
            "With the skill, without it, or both; a version like v2 is an arm too.",
            shape::such_as(arms, json!([["with", "without"]])),
        )
        .may(
            "mode",
            "How much the agent is pushed to use skills; a name of your own is one of practicum.toml.",
            mode,
        )
        .may(
            "script",
            "A gateway script that answers in place of the model. Naming another agent drops it.",
            shape::text(),
        )
        .may(
            "trigger_threshold",
            "The share of runs from which on a skill counts as fired.",
            shape::default(shape::share(), 0.5),
        )
        .may(
            "sync_tasks",
            "Whether the agent's background tasks are made to run in the foreground.",
            shape::yes_or_no(),
        )
        .may(
            "detect_questions",
            "Whether a run that ends by asking a question counts as one that asked, not as finished.",
            shape::yes_or_no(),
        )
        .may(
            "system_prompt",
            "Text put before the user's message for agents that know no skill command.",
            shape::text(),
        )
        .may(
            "workspace",
            "What all workspaces begin as, whatever the cases say; settings may say otherwise.",
            shape::words(&["project", "empty"]),
        );
    run.into()
}

fn repeat() -> Value {
    shape::whole(1, 1000)
}

fn judge() -> Mapping {
    let odd = json!({"type": "integer", "minimum": 1, "maximum": 99, "not": {"multipleOf": 2}});
    Mapping::closed()
        .may("model", "The judge's model.", shape::text())
        .may(
            "provider",
            "Whose model it is; auto tells it by the model's name.",
            shape::words(&Provider::NAMES),
        )
        .may(
            "transport",
            "Over the provider's API, or through an agent CLI that is logged in.",
            shape::words(&Transport::NAMES),
        )
        .may(
            "votes",
            "How often each statement is judged. Odd, so that there is a majority.",
            shape::default(odd, 1),
        )
        .may("user_prompt", "The request as a blind comparison shows it to the judge.", shape::text())
}

fn gates() -> Mapping {
    GateName::ALL.into_iter().fold(Mapping::closed(), |gates, gate| {
        let shape = match gate {
            GateName::AllCasesPass | GateName::ActivationCasesPass => {
                shape::either([json!({"const": true}), shape::share()])
            }
            _ => shape::share(),
        };
        gates.may(gate.name(), gate_doc(gate), shape)
    })
}

fn gate_doc(gate: GateName) -> &'static str {
    match gate {
        GateName::AllCasesPass => "Every case passes.",
        GateName::PassRate => "The least share of scored trials that pass.",
        GateName::CriteriaPassRate => "The least share of judged checks that pass.",
        GateName::MeanScore => "The least mean score of judged checks, each on a scale from 0 to 1.",
        GateName::Stability => "The least share of a case's trials that pass, for the worst case.",
        GateName::ActivationCasesPass => {
            "Every case passes that says whether a skill must be activated; `stability` is then about the others."
        }
        GateName::Precision => {
            "Of the runs in which the skill fired, the least share in which it should have."
        }
        GateName::Recall => {
            "Of the runs in which the skill should have fired, the least share in which it did."
        }
        GateName::F1 => "The least harmonic mean of precision and recall.",
        GateName::Accuracy => "The least share of runs in which the skill did as it should.",
    }
}

fn case() -> Value {
    let prompt = shape::filled_texts();
    let file = Mapping::closed()
        .must("from", "The file or folder, seen from the eval file.", shape::filled())
        .may("to", "Its place in the workspace; by default the same path.", shape::text())
        .may(
            "mutable",
            "Whether the agent may change it; if not, a change is reported.",
            shape::default(shape::yes_or_no(), false),
        );
    let files = shape::list(shape::either([shape::text(), file.into()]));
    let named_checks = json!({"required": ["checks"]});
    let case = Mapping::closed()
        .must(
            "id",
            "A name that stays: results are compared by it.",
            shape::either([shape::filled(), json!({"type": "integer"})]),
        )
        .may("group", "What the case belongs to, for reports.", shape::text())
        .may("note", "Why this case exists, for people.", shape::text())
        .may("prompt", "What the user says. A list is a conversation, sent turn by turn.", prompt)
        .may(
            "command",
            "Arguments with which the skill is invoked by its own command, instead of a prompt.",
            shape::text(),
        )
        .may("workspace", "What the room holds to begin with: a copy of the project, or nothing.", base())
        .may("overlays", "Folders laid over the workspace, in order; later ones win.", shape::texts())
        .may(
            "skill_name",
            "Whether the skill is staged under its own name or under one that occurs nowhere else.",
            shape::default(shape::words(&["own", "alias"]), "own"),
        )
        .may(
            "files",
            "Files and folders put into the workspace: a path keeps its place.",
            shape::such_as(files, json!([["fixtures/query.sql"]])),
        )
        .may("setup", "A shell script run before the agent, in its workspace. Needs --trust.", shape::text())
        .may("teardown", "A shell script run after the agent. Needs --trust.", shape::text())
        .may("context", "What the judge may read but does not score.", shape::text())
        .may("timeout", "The time limit of this case.", shape::duration())
        .may("repeat", "How often this case is run.", repeat())
        .may("pass_when", "When the case passes.", pass_when())
        .may("oracle", "A file with an output known to be good.", shape::text())
        .may("meta", "Anything else. It is kept and means nothing.", json!({"type": "object"}))
        .may("activation", "Whether the agent has to take the skill up by itself.", named("activation"))
        .may("checks", "What must be so afterwards.", shape::list(named("check")))
        .with("oneOf", json!([{"required": ["prompt"]}, {"required": ["command"]}]))
        .with("anyOf", json!([{"required": ["activation"]}, named_checks]));
    case.into()
}

fn pass_when() -> Value {
    let rates = Mapping::closed()
        .may(
            "fire_rate",
            "The share of runs in which the skill must fire, or must not reach.",
            shape::share(),
        )
        .may("pass_rate", "The least share of judged checks that pass.", shape::share())
        .may("mean_score", "Their least mean score, on a scale from 0 to 1.", shape::share())
        .with("dependentRequired", json!({"pass_rate": ["mean_score"], "mean_score": ["pass_rate"]}))
        .with("not", json!({"required": ["fire_rate", "pass_rate"]}));
    let words = shape::words(&["checks", "tally", "fire_rate"]);
    shape::default(shape::either([words, rates.into()]), "checks")
}

fn activation() -> Value {
    let expect = || shape::words(&["must", "must_not", "either"]);
    let mapping = Mapping::closed()
        .may("skills", "The skills it is about; by default those under test.", shape::texts())
        .must("expect", "Whether one of them fires, none does, or either may happen.", expect())
        .may(
            "by",
            "Seen in the run, or guessed by a model.",
            shape::default(shape::words(&["observed", "predicted"]), "observed"),
        );
    shape::either([expect(), mapping.into()])
}

/// One thing to check, and what can be said beside it.
fn check() -> Value {
    let check = Mapping::closed()
        .may("id", "A name that stays; by default made from what the check says.", shape::text())
        .may("name", "A name for people.", shape::text())
        .may("required", "Whether the case can pass without it.", shape::default(shape::yes_or_no(), true))
        .may("on", "The text to look at.", on());
    let judged = "A statement that a judge decides from the whole run, with quotes as evidence.";
    let sections = "Parts of the text that a model reads into entries, which code then checks.";
    let check = RULES
        .iter()
        .fold(check, |check, rule| check.may(rule.key, &sentence(rule.doc), (rule.schema)()))
        .may("judge", judged, judged_shape())
        .may("sections", sections, shape::list(named("section")))
        .may("activation", "Whether skills fire.", named("activation"));
    let kinds = RULES.iter().map(|rule| rule.key).chain(["judge", "sections", "activation"]);
    let one: Vec<Value> = kinds.map(|key| json!({"required": [key]})).collect();
    check.with("oneOf", json!(one)).into()
}

fn sentence(doc: &str) -> String {
    let mut letters = doc.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

fn on() -> Value {
    let files = Mapping::closed()
        .may(
            "file",
            "One file that the agent was to write. Missing or untouched is a failure.",
            shape::text(),
        )
        .may(
            "files",
            "Globs for files that were created or changed; each is a text of its own.",
            shape::such_as(shape::texts(), json!([["*.md"]])),
        )
        .with("minProperties", json!(1))
        .with("maxProperties", json!(1));
    let words = shape::words(&["output", "all", "run"]);
    shape::either([
        shape::described("The last message, all that was said, or the whole run.", words),
        files.into(),
    ])
}

fn judged_shape() -> Value {
    let scales = Scale::ALL.map(Scale::name);
    let mapping = Mapping::closed()
        .must(
            "statement",
            "What must be true, so that two readers would agree whether it is.",
            shape::filled(),
        )
        .may("context", "What the judge has to know, not scored.", shape::text())
        .may("scale", "How it is scored.", shape::default(shape::words(&scales), Scale::PassFail.name()))
        .may("required", "Whether the case can pass without it.", shape::default(shape::yes_or_no(), true));
    shape::either([shape::filled(), mapping.into()])
}

fn section() -> Value {
    let count = || shape::whole(0, u32::MAX.into());
    let field = Mapping::closed()
        .must("id", "A name that stays.", shape::filled())
        .must("name", "What the entry calls it.", shape::filled())
        .may("required", "Whether every entry must have it.", shape::default(shape::yes_or_no(), true))
        .may("format", "A known format's name, or a pattern for the whole value.", shape::text());
    let tier = Mapping::closed()
        .must("label", "What the tier is called.", shape::filled())
        .may("description", "What belongs to it, for the model that reads.", shape::text())
        .may("min_entries", "The fewest entries.", shape::default(count(), 0))
        .may("max_entries", "The most entries.", count())
        .may("fields", "What each entry has.", shape::list(field));
    let section = Mapping::closed().must("name", "What the section is called.", shape::filled()).may(
        "tiers",
        "The kinds of entries it has.",
        shape::list(tier),
    );
    section.into()
}
