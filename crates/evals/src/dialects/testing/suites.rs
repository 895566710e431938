//! Random suites that use everything in the model that can be written at all.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use crate::checks::RULES;
use crate::dialects::native::report_unknown_mocks;
use crate::dialects::rules;
use practicum_core::model::{
    ActivationCheck, ActivationExpectation, ActivationSource, Arm, Case, CasePrompt, Check, CheckKind,
    CheckNeed, CheckTarget, CheckWeight, CommandArguments, CommandMock, CommandRule, Diagnostics, Digest,
    Fixture, FixtureAccess, Gate, GateName, InlineFile, InputCondition, JudgePolicy, JudgeTransportChoice,
    JudgedStatement, McpAnswer, McpReply, McpServerMock, McpToolMock, Mocks, Origin, OutputSection, PassRule,
    Provider, Ratio, RelPath, ReplyCondition, ReplyRule, ReplyRules, Rule, RuleReply, RunPolicy, ScoreOf,
    ScoreRule, ScoreScale, ScriptedAnswer, SectionField, SectionTier, ServerRole, SimulatedUser, SkillRef,
    SkillStatement, SkillUseMode, Span, StagedSkillName, Suite, UserPersona, WorkspaceBase, WorkspaceSpec,
};

/// The folder that all paths of these suites are near.
pub const FOLDER: &str = "/home/a/project/evals";

pub fn suite() -> impl Strategy<Value = Suite> {
    let about =
        (words(), of(words()), vec(skill(), 0..3), (vec(skill(), 0..2), plugins()), vec(about_skill(), 0..3));
    let rest = (policy(), policy(), judge(), gates(), meta());
    (about, rest, vec(case(), 1..4)).prop_map(
        |((name, description, skills, (rivals, plugins), mut about_skill), rest, mut cases)| {
            let (run, defaults, judge, gates, meta) = rest;
            for (n, case) in cases.iter_mut().enumerate() {
                case.id = format!("{}{n}", case.id);
            }
            for (n, about) in about_skill.iter_mut().enumerate() {
                about.id = format!("{}{n}", about.id);
            }
            Suite {
                name: in_one_line(&name),
                origin: Origin {
                    dialect: "native".to_owned(),
                    path: PathBuf::from(FOLDER).join("a.practicum.json"),
                    digest: Digest::of_bytes(b""),
                },
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
            }
        },
    )
}

/// Gives text that is not blank and contains characters that could be mistaken for syntax.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z][a-z ]{0,12}[a-z]",
        "\\PC{0,10}[a-z0-9]",
        select(vec!["true", "12", "null", "- a", "a: b", "# x", "\"q\"", "ünï\ncode", "{}", "../up", "a/b"])
            .prop_map(str::to_owned),
    ]
}

fn path() -> impl Strategy<Value = PathBuf> {
    let root = select(vec!["/home/a/project/evals", "/home/a/project", "/elsewhere", "/home/b"]);
    (root, vec("[a-z]{1,4}", 1..3))
        .prop_map(|(root, parts)| parts.iter().fold(PathBuf::from(root), |p, x| p.join(x)))
}

/// A path inside the project, as every file that an agent is given has one.
fn path_in_project() -> impl Strategy<Value = PathBuf> {
    vec("[a-z]{1,4}", 1..3)
        .prop_map(|parts| parts.iter().fold(PathBuf::from("/home/a/project/evals"), |p, x| p.join(x)))
}

fn rel_path() -> impl Strategy<Value = RelPath> {
    "[a-z]{1,5}(/[a-z]{1,4}\\.md)?".prop_map(|text| RelPath::new(&text).expect("relative"))
}

fn ratio() -> impl Strategy<Value = Ratio> {
    (0u32..=100).prop_map(|n| Ratio::new(f64::from(n) / 100.0).expect("a share"))
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![(1u64..100_000).prop_map(Duration::from_millis), (1u64..9000).prop_map(Duration::from_secs)]
}

fn meta() -> impl Strategy<Value = BTreeMap<String, Value>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1000i32..1000).prop_map(|n| json!(f64::from(n) / 8.0)),
        words().prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map("[a-z_]{1,5}", inner, 0..3).prop_map(|map| json!(map))
        ]
    });
    btree_map("[a-z_]{1,8}", value, 0..3)
}

fn plugins() -> impl Strategy<Value = Vec<PathBuf>> {
    vec(path(), 0..2)
}

fn skill() -> impl Strategy<Value = SkillRef> {
    (words(), of(path()), of(words())).prop_map(|(name, path, plugin)| SkillRef { name, path, plugin })
}

fn policy() -> impl Strategy<Value = RunPolicy> {
    let arm = prop_oneof![Just(Arm::WithSkill), Just(Arm::WithoutSkill), (0u32..9).prop_map(Arm::Version)];
    let mode = prop_oneof![
        Just(SkillUseMode::Baseline),
        Just(SkillUseMode::Smart),
        Just(SkillUseMode::Forced),
        "own-[a-z]{1,4}".prop_map(SkillUseMode::Named)
    ];
    let first = (vec(words(), 0..2), of(words()), of(1u32..=1000), of(duration()), vec(arm, 0..3), of(mode));
    let second = (of(path()), of(ratio()), of(any::<bool>()), of(any::<bool>()), of(words()));
    let full = (first, second).prop_map(
        |(
            (agents, model, repeat, timeout, arms, mode),
            (script, trigger_threshold, sync_tasks, detect_questions, system_prompt),
        )| RunPolicy {
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
            workspace: None,
        },
    );
    prop_oneof![Just(RunPolicy::default()), full]
}

fn judge() -> impl Strategy<Value = JudgePolicy> {
    let provider = select(vec![Provider::Auto, Provider::Anthropic, Provider::Openai]);
    let transport =
        select(vec![JudgeTransportChoice::Auto, JudgeTransportChoice::Api, JudgeTransportChoice::Cli]);
    (of(words()), of(provider), of(transport), of((0u32..49).prop_map(|n| 2 * n + 1)), of(words())).prop_map(
        |(model, provider, transport, votes, user_prompt)| JudgePolicy {
            model,
            provider,
            transport,
            votes,
            user_prompt,
        },
    )
}

fn gates() -> impl Strategy<Value = Vec<Gate>> {
    let names = subsequence(GateName::ALL.to_vec(), 0..=GateName::ALL.len());
    (names, ratio(), of(0.5f64..0.99)).prop_map(|(names, ratio, sure)| {
        let threshold = |name| match name {
            // These gates always have the threshold 1.
            GateName::AllCasesPass | GateName::ActivationCasesPass => Ratio::new(1.0).expect("a share"),
            GateName::PassRate
            | GateName::CriteriaPassRate
            | GateName::MeanScore
            | GateName::Stability
            | GateName::Precision
            | GateName::Recall
            | GateName::F1
            | GateName::Accuracy
            | GateName::NoRegression => ratio,
        };
        let surely = |gate: Gate| sure.and_then(|sure| gate.with_confidence(sure).ok()).unwrap_or(gate);
        names.into_iter().map(|name| surely(Gate::new(name, threshold(name)))).collect()
    })
}

fn case() -> impl Strategy<Value = Case> {
    let stimulus = prop_oneof![
        vec(words(), 1..3).prop_map(CasePrompt::Turns),
        words().prop_map(|args| CasePrompt::SkillCommand { args })
    ];
    let rule = prop_oneof![
        Just(PassRule::EveryRequiredCheck),
        of(ratio()).prop_map(PassRule::ActivationRate),
        (ratio(), ratio())
            .prop_map(|(pass_rate, mean_score)| PassRule::JudgedThresholds { pass_rate, mean_score }),
        (ratio(), select(vec![ScoreOf::EachTrial, ScoreOf::MeanOfTrials]))
            .prop_map(|(at_least, of)| PassRule::Score(ScoreRule { at_least, of })),
        Just(PassRule::CountOnly)
    ];
    let first = (words(), of(words()), of(words()), (stimulus, of(user())), (workspace(), mocks()), checks());
    let second = (of(words()), of(duration()), of(1u32..=1000), rule, of(path()), of(words()), meta());
    (first, second).prop_map(
        |(
            (id, group, note, (stimulus, user), (room, mocks), checks),
            (context, timeout, repeat, pass_when, oracle, unsupported, meta),
        )| {
            let mut checks: Vec<Check> = checks;
            // A check about a mock that the case does not have is refused.
            checks.retain(|check| {
                let mut diagnostics = Diagnostics::default();
                let checks = std::slice::from_ref(check);
                report_unknown_mocks(checks, &mocks, Span { start: 0, end: 0 }, &mut diagnostics);
                !diagnostics.has_errors()
            });
            if !matches!(pass_when, PassRule::Score(_)) {
                // Only a case that passes by its score has weights.
                checks.iter_mut().for_each(|check| check.weight = CheckWeight::ONE);
            }
            Case {
                id: in_one_line(&id),
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
            }
        },
    )
}

/// Names of several lines are refused.
fn in_one_line(name: &str) -> String {
    name.replace(char::is_control, " ")
}

fn user() -> impl Strategy<Value = SimulatedUser> {
    let condition = || {
        (any::<bool>(), of("[a-z]{1,5}")).prop_map(|(must_ask, pattern)| ReplyCondition { must_ask, pattern })
    };
    let answer = (words(), condition()).prop_map(|(text, condition)| ScriptedAnswer { text, condition });
    let reply = prop_oneof![vec(words(), 1..3).prop_map(RuleReply::Say), Just(RuleReply::Done)];
    let rule = (condition(), reply).prop_map(|(condition, reply)| ReplyRule { condition, reply });
    let rules = (vec(rule, 1..3), of(words()), 1u32..=100)
        .prop_map(|(rules, otherwise, max_turns)| ReplyRules { rules, otherwise, max_turns });
    let persona = (vec(words(), 0..3), vec(words(), 0..3), of(words()), 1u32..=100)
        .prop_map(|(personas, facts, goal, max_turns)| UserPersona { personas, facts, goal, max_turns });
    prop_oneof![
        vec(answer, 1..3).prop_map(SimulatedUser::Answers),
        rules.prop_map(SimulatedUser::Rules),
        persona.prop_map(SimulatedUser::Model),
    ]
}

fn workspace() -> impl Strategy<Value = WorkspaceSpec> {
    let access = select(vec![FixtureAccess::ReadOnly, FixtureAccess::Mutable]);
    let fixture = (path_in_project(), rel_path(), access).prop_map(|(from, to, access)| Fixture {
        source: from,
        destination: to,
        access,
    });
    (
        select(vec![WorkspaceBase::Project, WorkspaceBase::Empty]),
        vec(path_in_project(), 0..2),
        select(vec![StagedSkillName::Own, StagedSkillName::Alias]),
        vec(fixture, 0..3),
        vec((rel_path(), words()).prop_map(|(path, content)| InlineFile { path, content }), 0..2),
        of(words()),
        of(words()),
    )
        .prop_map(|(base, overlays, skill, files, inline_files, setup, teardown)| WorkspaceSpec {
            base,
            overlays,
            skill_name: skill,
            files,
            inline_files,
            setup,
            teardown,
        })
}

/// Mocks that every check of `sample_values` about mocks can find.
fn mocks() -> impl Strategy<Value = Mocks> {
    let condition = (words(), words())
        .prop_map(|(path, expected)| InputCondition { path, expected: json!([expected, "string", 3]) });
    // `fail_when` would add a check to the case.
    let role =
        (words(), vec(words(), 0..2)).prop_map(|(role, facts)| ServerRole { role, facts, fail_when: None });
    let reply = prop_oneof![
        words().prop_map(McpReply::Result),
        words().prop_map(McpReply::Error),
        role.prop_map(McpReply::Model),
    ];
    let answer = (vec(condition, 0..=1), of(words()), reply).prop_map(|(when, input, reply)| McpAnswer {
        when,
        input: input.map(|text| json!({"text": text})),
        reply,
    });
    let buy = (of(words()), any::<bool>(), vec(answer, 1..3)).prop_map(|(description, schema, answers)| {
        let input_schema = schema.then(|| json!({"type": "object"}));
        McpToolMock { name: "buy".to_owned(), description, input_schema, expect: Vec::new(), answers }
    });
    let args = prop_oneof![
        Just(CommandArguments::Any),
        vec(words(), 0..2).prop_map(CommandArguments::Begin),
        "[a-z]{1,4}".prop_map(CommandArguments::Pattern),
    ];
    let file = (rel_path(), words()).prop_map(|(path, content)| InlineFile { path, content });
    let rule = (args, words(), words(), any::<u8>(), vec(file, 0..2)).prop_map(
        |(args, stdout, stderr, exit_code, files)| CommandRule { args, stdout, stderr, exit_code, files },
    );
    (buy, vec(rule, 0..3)).prop_map(|(buy, rules)| Mocks {
        servers: vec![McpServerMock { name: "shop".to_owned(), tools: vec![buy], recording: None }],
        commands: vec![CommandMock { name: "az".to_owned(), rules }],
    })
}

fn checks() -> impl Strategy<Value = Vec<Check>> {
    vec(check(), 1..5).prop_map(|mut checks| {
        for (n, check) in checks.iter_mut().enumerate() {
            // The first check may be the one that the case's own `activation` key makes.
            if n > 0 || check.id != "activation" {
                check.id = format!("{}{n}", check.id);
            }
        }
        checks
    })
}

fn check() -> impl Strategy<Value = Check> {
    let looks_at = prop_oneof![
        Just(CheckTarget::Output),
        Just(CheckTarget::LastTurn),
        Just(CheckTarget::AllText),
        Just(CheckTarget::WholeRun),
        rel_path().prop_map(CheckTarget::File),
        vec("[a-z*]{1,5}", 1..3).prop_map(CheckTarget::Files),
    ];
    let id = prop_oneof![words(), Just("activation".to_owned())];
    let weight =
        select(vec![0.0, 0.5, 1.0, 3.0]).prop_map(|weight| CheckWeight::new(weight).expect("a weight"));
    (id, of(words()), select(vec![CheckNeed::Required, CheckNeed::Advisory]), weight, looks_at, kind())
        .prop_map(|(id, name, need, weight, target, kind)| {
            // Only a judge can look at pictures.
            let target = match target {
                CheckTarget::Files(globs) if matches!(kind, CheckKind::Judged(_)) && name.is_some() => {
                    CheckTarget::Pictures(globs)
                }
                target => target,
            };
            Check { id, name, need, weight, target, kind }
        })
}

fn judged() -> impl Strategy<Value = JudgedStatement> {
    (words(), of(words()), select(ScoreScale::ALL.to_vec()))
        .prop_map(|(statement, context, scale)| JudgedStatement { statement, context, scale })
}

fn about_skill() -> impl Strategy<Value = SkillStatement> {
    (words(), judged()).prop_map(|(id, judged)| SkillStatement { id, judged })
}

fn kind() -> impl Strategy<Value = CheckKind> {
    let judged = judged().prop_map(CheckKind::Judged);
    let activation = (
        vec(words(), 0..3),
        select(vec![
            ActivationExpectation::Must,
            ActivationExpectation::MustNot,
            ActivationExpectation::Either,
        ]),
        select(vec![ActivationSource::Observed, ActivationSource::Predicted]),
    )
        .prop_map(|(skills, expect, by)| {
            CheckKind::Activation(ActivationCheck { skills, expect, source: by })
        });
    let field = (words(), words(), any::<bool>(), of(words()))
        .prop_map(|(id, name, required, format)| SectionField { id, name, required, format });
    let tier = (words(), of(words()), any::<u32>(), of(any::<u32>()), vec(field, 0..3)).prop_map(
        |(label, description, min_entries, max_entries, fields)| SectionTier {
            label,
            description,
            min_entries,
            // A range that can never be met is refused.
            max_entries: max_entries.map(|most| most.max(min_entries)),
            fields,
        },
    );
    let section = (words(), vec(tier, 0..2)).prop_map(|(name, tiers)| OutputSection { name, tiers });
    prop_oneof![
        3 => judged,
        2 => activation,
        1 => vec(section, 0..2).prop_map(CheckKind::Sections),
        4 => select(exact_rules().to_vec()).prop_map(CheckKind::Rule),
    ]
}

/// Gives sample values for the keys of checks; each kind of check accepts at least one.
fn sample_values() -> Vec<Value> {
    vec![
        json!("abc"),
        json!("a/b.md"),
        json!("email"),
        json!(3),
        json!(["Read", "Write"]),
        json!({"text": "Abc", "ignore_case": true}),
        json!({"path": "a/b.md"}),
        json!({"path": "a.md", "exists": false}),
        json!({"path": "a.md", "contains": ["x", "y"], "matches": "^a+$"}),
        json!({"pattern": "^- ", "count": 2}),
        json!({"pattern": "a+", "expect": "absent"}),
        json!({"pattern": "a+", "expect": "present"}),
        json!({"format": "email", "count": 2}),
        json!({"count": 2}),
        json!({"name": "Write", "args": {"file_path": "*.md"}}),
        json!({"name": "Write"}),
        json!({"path": "a.json", "schema": {"type": "object"}}),
        json!({"path": "a.json", "pointer": "/a", "equals": 1}),
        json!({"seconds": 3}),
        json!({"tool_calls": 3}),
        json!({"turns": 3}),
        json!({"tokens": 3000}),
        json!({"run": "true"}),
        json!({"file": "a.png", "expected": "b.png", "at_most": 0.5, "tolerance": 3, "expected_content": "AAAA"}),
        json!([{"contains": "abc"}, {"regex": "a+"}]),
        json!({"contains": "abc"}),
        json!({"server": "shop", "tool": "buy", "input": {"item": "string"}}),
        json!({"command": "az", "args": ["group"]}),
        json!([{"command": "az"}, {"server": "shop", "tool": "buy"}]),
        json!(true),
    ]
}

/// Gives every rule that accepts one of the samples.
fn exact_rules() -> &'static [Arc<dyn Rule>] {
    static SAMPLE_RULES: OnceLock<Vec<Arc<dyn Rule>>> = OnceLock::new();
    SAMPLE_RULES.get_or_init(|| RULES.iter().flat_map(|kind| rules_of(kind.key)).collect())
}

fn rules_of(key: &str) -> Vec<Arc<dyn Rule>> {
    let values = sample_values();
    let made = values.iter().filter_map(|value| {
        let mut diagnostics = Diagnostics::default();
        match rules::build_rule(key, value, Span::default(), &mut diagnostics) {
            rules::BuiltRule::Rule(rule, _) if !diagnostics.has_errors() => Some(rule),
            rules::BuiltRule::Rule(..) | rules::BuiltRule::Invalid | rules::BuiltRule::NoSuchKind => None,
        }
    });
    made.collect()
}

#[test]
fn every_kind_of_check_has_a_sample() {
    let without: Vec<&str> =
        RULES.iter().map(|kind| kind.key).filter(|key| rules_of(key).is_empty()).collect();
    assert!(without.is_empty(), "add a sample value for {}", without.join(", "));
}
