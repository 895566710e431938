//! The schema of the native format for editors. It takes the checks from `RULES`, so that it has every new check.

use serde_json::{Value, json};

use super::policy::{MOST_REPEATS, MOST_VOTES};
use super::user;
use crate::checks::RULES;
use practicum_core::model::{GateName, JudgeTransportChoice, Provider, ScoreScale};
use practicum_core::tree::json_schema::{self, MappingSchema, reference};

pub fn schema() -> Value {
    json_schema::document(
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
            ("mocks", super::mocks::schema().into()),
        ],
    )
}

fn suite() -> MappingSchema {
    let skills = || json_schema::any_of([reference("skill"), json_schema::list(reference("skill"))]);
    MappingSchema::closed()
        .required("practicum", "The version of the format.", json!({"const": 1}))
        .optional(
            "name",
            "The name of the suite; by default the file name up to its first dot.",
            json_schema::text(),
        )
        .optional("description", "What the suite tests, for people.", json_schema::text())
        .optional("skill", "The skill under test, or several to choose from.", skills())
        .optional(
            "rivals",
            "Skills staged beside those under test, to see which of them the agent activates.",
            skills(),
        )
        .optional(
            "plugins",
            "Folders of plugins that are staged whole for agents that load plugins.",
            json_schema::any_of([
                json_schema::nonempty_text(),
                json_schema::list(json_schema::nonempty_text()),
            ]),
        )
        .optional(
            "about_skill",
            "Statements about the skill's own text, for a judge. They decide no verdict.",
            json_schema::list(about_skill()),
        )
        .optional(
            "workspace",
            "What every workspace contains at the start, unless its case says otherwise.",
            base(),
        )
        .optional(
            "mocks",
            "Servers and command-line tools that answer in place of the real ones, in every case.",
            reference("mocks"),
        )
        .optional("run", "How the cases are run.", reference("run"))
        .optional(
            "defaults",
            "How the cases are run if no flag, environment variable or settings file says otherwise.",
            reference("run"),
        )
        .optional("judge", "The model that decides judged checks.", judge())
        .optional("gates", "What must hold for exit code 0; without this, every case must pass.", gates())
        .optional("meta", "Anything else. It is kept and means nothing.", json!({"type": "object"}))
        .required("cases", "The cases.", json_schema::nonempty_list(reference("case")))
}

fn about_skill() -> MappingSchema {
    MappingSchema::closed()
        .required(
            "id",
            "An id that stays the same; results are compared by it.",
            json_schema::nonempty_text(),
        )
        .required("statement", "The statement, which must be true.", json_schema::nonempty_text())
        .optional("context", "What the judge needs to know, not scored.", json_schema::text())
        .optional(
            "scale",
            "The scale of the verdict.",
            json_schema::with_default(
                json_schema::one_of_words(&ScoreScale::ALL.map(ScoreScale::name)),
                ScoreScale::PassFail.name(),
            ),
        )
}

fn base() -> Value {
    let words = json_schema::one_of_words(&["project", "empty"]);
    json_schema::with_default(words, "project")
}

fn skill() -> Value {
    let path = || json_schema::with_examples(json_schema::text(), json!(["..", "../skills/release-notes"]));
    let mapping = MappingSchema::closed()
        .optional("name", "The skill's name; by default what the skill calls itself.", json_schema::text())
        .optional("path", "The skill's folder, its SKILL.md or a command file.", path())
        .optional("plugin", "The plugin that the skill belongs to.", json_schema::text())
        .with_keyword("anyOf", json!([{"required": ["name"]}, {"required": ["path"]}]));
    json_schema::any_of([path(), mapping.into()])
}

/// Gives the keys of `run` and `defaults`.
pub fn run_keys() -> Vec<String> {
    run()["properties"].as_object().into_iter().flat_map(serde_json::Map::keys).cloned().collect()
}

fn run() -> Value {
    let arm = json!({"type": "string", "pattern": "^(with|without|v\\+?[0-9]+)$"});
    let arms = json_schema::any_of([arm.clone(), json_schema::list(arm)]);
    let mode = json_schema::any_of([
        json_schema::one_of_words(&["baseline", "smart", "forced"]),
        json_schema::text(),
    ]);
    let run = MappingSchema::closed()
        .optional(
            "agents",
            "The agents to run, by name.",
            json_schema::with_examples(json_schema::text_or_texts(), json!([["claude"], ["builtin"]])),
        )
        .optional("model", "The agent's model.", json_schema::text())
        .optional("repeat", "How often each case is run.", repeat())
        .optional("timeout", "The time limit of a trial.", json_schema::duration())
        .optional(
            "arms",
            "With the skill, without it, or both; a version like v2 is an arm too.",
            json_schema::with_examples(arms, json!([["with", "without"]])),
        )
        .optional(
            "mode",
            "How strongly the system prompt tells the agent to use skills; practicum.toml can define more modes.",
            mode,
        )
        .optional(
            "script",
            "A gateway script that answers in place of the model. Naming another agent drops it.",
            json_schema::text(),
        )
        .optional(
            "trigger_threshold",
            "The least share of runs with an activation at which the skill counts as activated.",
            json_schema::with_default(json_schema::ratio(), 0.5),
        )
        .optional(
            "sync_tasks",
            "Whether the agent's background tasks are made to run in the foreground.",
            json_schema::boolean(),
        )
        .optional(
            "detect_questions",
            "Whether a run that ends by asking a question counts as one that asked, not as finished.",
            json_schema::boolean(),
        )
        .optional(
            "system_prompt",
            "Text put before the user's message for agents that know no skill command.",
            json_schema::text(),
        )
        .optional(
            "workspace",
            "What all workspaces begin as, whatever the cases say; settings may say otherwise.",
            json_schema::one_of_words(&["project", "empty"]),
        );
    run.into()
}

fn repeat() -> Value {
    json_schema::integer_between(1, MOST_REPEATS)
}

fn judge() -> MappingSchema {
    let odd = json!({"type": "integer", "minimum": 1, "maximum": MOST_VOTES, "not": {"multipleOf": 2}});
    MappingSchema::closed()
        .optional("model", "The judge's model.", json_schema::text())
        .optional(
            "provider",
            "The provider of the model; auto derives it from the model's name.",
            json_schema::one_of_words(&Provider::NAMES),
        )
        .optional(
            "transport",
            "Over the provider's API, or through an agent CLI that is logged in.",
            json_schema::one_of_words(&JudgeTransportChoice::NAMES),
        )
        .optional(
            "votes",
            "How often each statement is judged. Odd, so that there is a majority.",
            json_schema::with_default(odd, 1),
        )
        .optional(
            "user_prompt",
            "The request as a blind comparison shows it to the judge.",
            json_schema::text(),
        )
}

fn gates() -> MappingSchema {
    GateName::ALL.into_iter().fold(MappingSchema::closed(), |gates, gate| {
        let sure = || -> Value {
            let confidence = json!({"type": "number", "minimum": 0.5, "exclusiveMaximum": 1});
            let shape = MappingSchema::closed()
                .required("at_least", "What the true value must reach.", json_schema::ratio())
                .required("confidence", "How sure that must be: then the lower bound decides.", confidence);
            shape.into()
        };
        let shape = match gate {
            GateName::AllCasesPass | GateName::ActivationCasesPass => {
                json_schema::any_of([json!({"const": true}), json_schema::ratio(), sure()])
            }
            GateName::NoRegression => json_schema::any_of([json!({"const": true}), json_schema::ratio()]),
            GateName::Stability => json_schema::ratio(),
            _ => json_schema::any_of([json_schema::ratio(), sure()]),
        };
        gates.optional(gate.name(), gate_doc(gate), shape)
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
        GateName::Precision => "Of the runs that activated the skill, the least share that should have.",
        GateName::Recall => "Of the runs that should activate the skill, the least share that did.",
        GateName::F1 => "The least harmonic mean of precision and recall.",
        GateName::Accuracy => {
            "The least share of runs in which the skill was activated, or not, as expected."
        }
        GateName::NoRegression => {
            "No case is worse than in the baseline that `practicum baseline` stored; a number is the least share of its cases."
        }
    }
}

fn case() -> Value {
    let prompt = json_schema::nonempty_text_or_texts();
    let file = MappingSchema::closed()
        .required("from", "The file or folder, seen from the eval file.", json_schema::nonempty_text())
        .optional("to", "Its place in the workspace; by default the same path.", json_schema::text())
        .optional(
            "mutable",
            "Whether the agent may change it; if not, a change is reported.",
            json_schema::with_default(json_schema::boolean(), false),
        );
    let inline = MappingSchema::closed()
        .required("to", "The path of the file in the workspace.", json_schema::nonempty_text())
        .required("content", "The content of the file.", json_schema::text());
    let files = json_schema::list(json_schema::any_of([json_schema::text(), file.into(), inline.into()]));
    let named_checks = json!({"required": ["checks"]});
    let case = MappingSchema::closed()
        .required(
            "id",
            "An id that stays the same; results are compared by it.",
            json_schema::any_of([json_schema::nonempty_text(), json!({"type": "integer"})]),
        )
        .optional("group", "What the case belongs to, for reports.", json_schema::text())
        .optional("note", "Why this case exists, for people.", json_schema::text())
        .optional("prompt", "What the user says. A list is a conversation, sent turn by turn.", prompt)
        .optional(
            "command",
            "Arguments with which the skill is invoked by its own command, instead of a prompt.",
            json_schema::text(),
        )
        .optional(
            "user",
            "Who answers the agent after the prompt: answers in order, rules, or a person that a model plays.",
            user::schema(),
        )
        .optional(
            "workspace",
            "What the workspace contains at the start: a copy of the project, or nothing.",
            base(),
        )
        .optional(
            "overlays",
            "Folders laid over the workspace, in order; later ones win.",
            json_schema::text_or_texts(),
        )
        .optional(
            "skill_name",
            "Whether the skill is staged under its own name or under one that occurs nowhere else.",
            json_schema::with_default(json_schema::one_of_words(&["own", "alias"]), "own"),
        )
        .optional(
            "files",
            "Files and folders put into the workspace: a path keeps its place.",
            json_schema::with_examples(files, json!([["fixtures/query.sql"]])),
        )
        .optional(
            "setup",
            "A shell script run before the agent, in its workspace. Needs --trust.",
            json_schema::text(),
        )
        .optional("teardown", "A shell script run after the agent. Needs --trust.", json_schema::text())
        .optional("mocks", "Mocks of this case, before those of the suite.", reference("mocks"))
        .optional("context", "What the judge may read but does not score.", json_schema::text())
        .optional("timeout", "The time limit of this case.", json_schema::duration())
        .optional("repeat", "How often this case is run.", repeat())
        .optional("pass_when", "When the case passes.", pass_when())
        .optional("oracle", "A file with an output known to be good.", json_schema::text())
        .optional(
            "unsupported",
            "Why this version cannot run the case. It is not started, and not scored.",
            json_schema::text(),
        )
        .optional("meta", "Anything else. It is kept and means nothing.", json!({"type": "object"}))
        .optional(
            "activation",
            "Whether the agent must activate the skill by itself.",
            reference("activation"),
        )
        .optional("checks", "The checks of the result.", json_schema::list(reference("check")))
        .with_keyword("oneOf", json!([{"required": ["prompt"]}, {"required": ["command"]}]))
        .with_keyword("anyOf", json!([{"required": ["activation"]}, named_checks]));
    case.into()
}

fn pass_when() -> Value {
    let rates = MappingSchema::closed()
        .optional(
            "fire_rate",
            "The least share of runs that must activate the skill; for must_not, the share that must not be reached.",
            json_schema::ratio(),
        )
        .optional("pass_rate", "The least share of judged checks that pass.", json_schema::ratio())
        .optional("mean_score", "The least mean score of judged checks, on a scale from 0 to 1.", json_schema::ratio())
        .optional(
            "score",
            "The lowest weighted mean of the scores of all checks with which a run passes.",
            json_schema::ratio(),
        )
        .optional("mean_of_scores", "The lowest mean of these scores over all runs with which a case passes.", json_schema::ratio())
        .with_keyword("dependentRequired", json!({"pass_rate": ["mean_score"], "mean_score": ["pass_rate"]}))
        .with_keyword("not", json!({"required": ["fire_rate", "pass_rate"]}));
    let words = json_schema::one_of_words(&["checks", "tally", "fire_rate"]);
    json_schema::with_default(json_schema::any_of([words, rates.into()]), "checks")
}

fn activation() -> Value {
    let expect = || json_schema::one_of_words(&["must", "must_not", "either"]);
    let mapping = MappingSchema::closed()
        .optional("skills", "The skills to check; by default those under test.", json_schema::text_or_texts())
        .required(
            "expect",
            "Whether one of them must be activated, none may be, or both are accepted.",
            expect(),
        )
        .optional(
            "by",
            "Observed in the run, or predicted by a model from the descriptions.",
            json_schema::with_default(json_schema::one_of_words(&["observed", "predicted"]), "observed"),
        );
    json_schema::any_of([expect(), mapping.into()])
}

/// Gives the schema of a check, and of the keys that may stand beside it.
fn check() -> Value {
    let check = MappingSchema::closed()
        .optional(
            "id",
            "An id that stays the same; by default it is made from the check.",
            json_schema::text(),
        )
        .optional("name", "A name for people.", json_schema::text())
        .optional(
            "required",
            "Whether the case can pass without it.",
            json_schema::with_default(json_schema::boolean(), true),
        )
        .optional(
            "weight",
            "How much it counts, in a case that passes by its score; 0 only reports it.",
            json_schema::with_default(json!({"type": "number", "minimum": 0}), 1),
        )
        .optional("on", "The text to look at.", looks_at());
    let judged = "A statement that a judge decides from the whole run, with quotes as evidence.";
    let sections = "Parts of the text that a model reads into entries, which code then checks.";
    let check = RULES
        .iter()
        .fold(check, |check, rule| check.optional(rule.key, &sentence(rule.doc), (rule.schema)()))
        .optional("judge", judged, judged_shape())
        .optional("sections", sections, json_schema::list(reference("section")))
        .optional("activation", "Whether skills are activated.", reference("activation"));
    let kinds = RULES.iter().map(|rule| rule.key).chain(["judge", "sections", "activation"]);
    let one: Vec<Value> = kinds.map(|key| json!({"required": [key]})).collect();
    check.with_keyword("oneOf", json!(one)).into()
}

fn sentence(doc: &str) -> String {
    let mut letters = doc.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

fn looks_at() -> Value {
    let files = MappingSchema::closed()
        .optional(
            "file",
            "One file that the agent was to write. Missing or untouched is a failure.",
            json_schema::text(),
        )
        .optional(
            "files",
            "Globs for files that were created or changed; each is a text of its own.",
            json_schema::with_examples(json_schema::text_or_texts(), json!([["*.md"]])),
        )
        .optional(
            "pictures",
            "Globs for images, PDF files and presentations that were created or changed; a judge is shown each page as a \
             picture.",
            json_schema::with_examples(json_schema::text_or_texts(), json!([["report.pdf"]])),
        )
        .with_keyword("minProperties", json!(1))
        .with_keyword("maxProperties", json!(1));
    let words = json_schema::one_of_words(&["output", "turn", "all", "run"]);
    json_schema::any_of([
        json_schema::with_description(
            "The last message, all that was said in the last turn or in every turn, or the whole run.",
            words,
        ),
        files.into(),
    ])
}

fn judged_shape() -> Value {
    let scales = ScoreScale::ALL.map(ScoreScale::name);
    let mapping = MappingSchema::closed()
        .required(
            "statement",
            "What must be true, so that two readers would agree whether it is.",
            json_schema::nonempty_text(),
        )
        .optional("context", "What the judge has to know, not scored.", json_schema::text())
        .optional(
            "scale",
            "How it is scored.",
            json_schema::with_default(json_schema::one_of_words(&scales), ScoreScale::PassFail.name()),
        )
        .optional(
            "required",
            "Whether the case can pass without it.",
            json_schema::with_default(json_schema::boolean(), true),
        );
    json_schema::any_of([json_schema::nonempty_text(), mapping.into()])
}

fn section() -> Value {
    let count = || json_schema::integer_between(0, u32::MAX.into());
    let field = MappingSchema::closed()
        .required(
            "id",
            "An id that stays the same; results are compared by it.",
            json_schema::nonempty_text(),
        )
        .required("name", "What the entry calls it.", json_schema::nonempty_text())
        .optional(
            "required",
            "Whether every entry must have it.",
            json_schema::with_default(json_schema::boolean(), true),
        )
        .optional("format", "A known format's name, or a pattern for the whole value.", json_schema::text());
    let tier = MappingSchema::closed()
        .required("label", "What the tier is called.", json_schema::nonempty_text())
        .optional("description", "What belongs to it, for the model that reads.", json_schema::text())
        .optional("min_entries", "The fewest entries.", json_schema::with_default(count(), 0))
        .optional("max_entries", "The most entries.", count())
        .optional("fields", "What each entry has.", json_schema::list(field));
    let section = MappingSchema::closed()
        .required("name", "What the section is called.", json_schema::nonempty_text())
        .optional("tiers", "The kinds of entries it has.", json_schema::list(tier));
    section.into()
}
