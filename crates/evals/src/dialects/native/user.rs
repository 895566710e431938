//! Reads and writes the simulated user of a case.

use serde_json::{Map, Value, json};

use super::decode::decode_one_of;
use crate::checks::decode_pattern;
use practicum_core::model::{
    DEFAULT_USER_TURNS, Diagnostics, ReplyCondition, ReplyRule, ReplyRules, RuleReply, ScriptedAnswer,
    SimulatedUser, Span, UserPersona,
};
use practicum_core::tree::json_schema::{self, MappingSchema};
use practicum_core::tree::{ObjectReader, TreeNode};

/// The most replies that a case may allow.
pub const MOST_USER_TURNS: i64 = 100;

/// When an answer is sent, as it is written.
const ALWAYS: &str = "always";
const AGENT_ASKS: &str = "agent_asks";

/// Reads `user`: `{answers}`, `{rules, otherwise, max_turns}` or `{persona, facts, goal, max_turns}`.
pub fn decode(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<SimulatedUser> {
    let mut user = ObjectReader::new(node, "user", diagnostics)?;
    let kinds = ["answers", "rules"].into_iter().filter(|key| user.peek(key).is_some()).count()
        + usize::from(["persona", "facts", "goal"].iter().any(|key| user.peek(key).is_some()));
    if kinds != 1 {
        let help = "give \"answers\", or \"rules\", or one or more of \"persona\", \"facts\" and \"goal\"";
        let message = "a user answers in exactly one way";
        diagnostics.error_with_help("contradiction", node.span, message, help);
        return None;
    }
    let decoded = if user.peek("answers").is_some() {
        decode_answers(&mut user, diagnostics).map(SimulatedUser::Answers)
    } else {
        let max_turns = user.int("max_turns", 1, MOST_USER_TURNS, diagnostics);
        let max_turns = max_turns.and_then(|turns| u32::try_from(turns).ok()).unwrap_or(DEFAULT_USER_TURNS);
        match user.peek("rules").is_some() {
            true => decode_rules(&mut user, max_turns, diagnostics).map(SimulatedUser::Rules),
            false => Some(SimulatedUser::Model(UserPersona {
                personas: decode_texts(&mut user, "persona", diagnostics),
                facts: decode_texts(&mut user, "facts", diagnostics),
                goal: user.text("goal", diagnostics).map(str::to_owned),
                max_turns,
            })),
        }
    };
    user.reject_unknown_keys("user", diagnostics);
    decoded
}

/// Reads one text or several, none of them blank.
fn decode_texts(
    user: &mut ObjectReader<'_>,
    key: &'static str,
    diagnostics: &mut Diagnostics,
) -> Vec<String> {
    let texts = user.texts(key, diagnostics).unwrap_or_default();
    texts.into_iter().filter_map(|(text, span)| filled(text, key, span, diagnostics)).collect()
}

fn filled(text: &str, key: &str, span: Span, diagnostics: &mut Diagnostics) -> Option<String> {
    if text.trim().is_empty() {
        diagnostics.error("empty-text", span, format!("\"{key}\" must not be blank"));
        return None;
    }
    Some(text.to_owned())
}

fn report_if_empty(node: Option<&[TreeNode]>, key: &str, span: Span, diagnostics: &mut Diagnostics) {
    if node.is_some_and(<[_]>::is_empty) {
        diagnostics.error("empty-list", span, format!("\"{key}\" must not be empty"));
    }
}

/// Reads answers: each a text, or `{say, when, matches}`.
fn decode_answers(user: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<Vec<ScriptedAnswer>> {
    let items = user.list("answers", diagnostics);
    report_if_empty(items, "answers", user.span, diagnostics);
    let read = |node: &TreeNode, diagnostics: &mut Diagnostics| {
        if let Some(text) = node.as_text() {
            let text = filled(text, "answers", node.span, diagnostics)?;
            return Some(ScriptedAnswer { text, condition: ReplyCondition::default() });
        }
        let mut answer = ObjectReader::new(node, "an answer", diagnostics)?;
        let text = answer.required_text("say", diagnostics).map(str::to_owned);
        let condition = decode_condition(&mut answer, false, diagnostics);
        answer.reject_unknown_keys("an answer", diagnostics);
        Some(ScriptedAnswer { text: text?, condition })
    };
    let items = items.filter(|items| !items.is_empty())?;
    Some(items.iter().filter_map(|node| read(node, diagnostics)).collect())
}

/// Reads when an answer is sent. A pattern that does not compile is reported and left out.
fn decode_condition(
    object: &mut ObjectReader<'_>,
    asks_by_default: bool,
    diagnostics: &mut Diagnostics,
) -> ReplyCondition {
    let when = decode_one_of(object, "when", &[(ALWAYS, false), (AGENT_ASKS, true)], diagnostics);
    let pattern = object.get_non_null("matches");
    let pattern = pattern.and_then(|node| decode_pattern("matches", node, diagnostics));
    ReplyCondition {
        must_ask: when.unwrap_or(asks_by_default),
        pattern: pattern.map(|pattern| pattern.source().to_owned()),
    }
}

/// Reads rules: each `{matches, when, say}` or `{matches, when, done: true}`.
fn decode_rules(
    user: &mut ObjectReader<'_>,
    max_turns: u32,
    diagnostics: &mut Diagnostics,
) -> Option<ReplyRules> {
    let items = user.list("rules", diagnostics);
    report_if_empty(items, "rules", user.span, diagnostics);
    let otherwise = user.get_non_null("otherwise").map(|node| node.span);
    let otherwise = user.text("otherwise", diagnostics).zip(otherwise);
    let otherwise = otherwise.and_then(|(text, span)| filled(text, "otherwise", span, diagnostics));
    let read = |node: &TreeNode, diagnostics: &mut Diagnostics| {
        let mut rule = ObjectReader::new(node, "a rule", diagnostics)?;
        let is_done = rule.bool("done", diagnostics) == Some(true);
        let texts = decode_texts(&mut rule, "say", diagnostics);
        let condition = decode_condition(&mut rule, !is_done, diagnostics);
        rule.reject_unknown_keys("a rule", diagnostics);
        let reply = match (texts.is_empty(), is_done) {
            (false, false) => RuleReply::Say(texts),
            (true, true) => RuleReply::Done,
            (true, false) | (false, true) => {
                let message =
                    "a rule either says something (\"say\") or ends the conversation (\"done: true\")";
                diagnostics.error("contradiction", node.span, message);
                return None;
            }
        };
        Some(ReplyRule { condition, reply })
    };
    let items = items.filter(|items| !items.is_empty())?;
    let rules = items.iter().filter_map(|node| read(node, diagnostics)).collect();
    Some(ReplyRules { rules, otherwise, max_turns })
}

/// Writes a simulated user as a native file would have it.
pub fn encode(user: &SimulatedUser) -> Value {
    match user {
        SimulatedUser::Answers(answers) => {
            json!({"answers": answers.iter().map(encode_answer).collect::<Vec<_>>()})
        }
        SimulatedUser::Rules(ReplyRules { rules, otherwise, max_turns }) => {
            let mut map = Map::new();
            map.insert("rules".to_owned(), rules.iter().map(encode_rule).collect());
            put(&mut map, "otherwise", otherwise.as_ref().map(|text| json!(text)));
            map.insert("max_turns".to_owned(), json!(max_turns));
            Value::Object(map)
        }
        SimulatedUser::Model(UserPersona { personas, facts, goal, max_turns }) => {
            let mut map = Map::new();
            put(&mut map, "persona", (!personas.is_empty()).then(|| one_or_list(personas)));
            // Without any of the three keys nothing would say that a model plays the user.
            let only_facts = personas.is_empty() && goal.is_none();
            put(&mut map, "facts", (!facts.is_empty() || only_facts).then(|| json!(facts)));
            put(&mut map, "goal", goal.as_ref().map(|text| json!(text)));
            map.insert("max_turns".to_owned(), json!(max_turns));
            Value::Object(map)
        }
    }
}

fn put(map: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        map.insert(key.to_owned(), value);
    }
}

fn one_or_list(texts: &[String]) -> Value {
    if let [one] = texts { json!(one) } else { json!(texts) }
}

fn encode_answer(answer: &ScriptedAnswer) -> Value {
    let ScriptedAnswer { text, condition } = answer;
    if *condition == ReplyCondition::default() {
        return json!(text);
    }
    let mut map = Map::new();
    map.insert("say".to_owned(), json!(text));
    encode_condition(condition, &mut map);
    Value::Object(map)
}

fn encode_rule(rule: &ReplyRule) -> Value {
    let mut map = Map::new();
    encode_condition(&rule.condition, &mut map);
    match &rule.reply {
        RuleReply::Say(texts) => map.insert("say".to_owned(), one_or_list(texts)),
        RuleReply::Done => map.insert("done".to_owned(), json!(true)),
    };
    Value::Object(map)
}

fn encode_condition(condition: &ReplyCondition, map: &mut Map<String, Value>) {
    let ReplyCondition { must_ask, pattern } = condition;
    map.insert("when".to_owned(), json!(if *must_ask { AGENT_ASKS } else { ALWAYS }));
    put(map, "matches", pattern.as_ref().map(|pattern| json!(pattern)));
}

/// Gives the schema of `user`.
pub fn schema() -> Value {
    let when = || json_schema::one_of_words(&[ALWAYS, AGENT_ASKS]);
    let pattern = "A pattern (Python's `re`) that the agent's last message must match.";
    let answer: Value = MappingSchema::closed()
        .required("say", "What the user says.", json_schema::nonempty_text())
        .optional(
            "when",
            "Whether it is sent only to a message with a question mark; if not sent, the conversation ends.",
            json_schema::with_default(when(), ALWAYS),
        )
        .optional("matches", pattern, json_schema::text())
        .into();
    let rule: Value = MappingSchema::closed()
        .optional("matches", pattern, json_schema::text())
        .optional("when", "Whether the rule fits only a message with a question mark: by default so, unless it ends the conversation.", when())
        .optional("say", "What the user says; of several texts, each repetition of the case takes the next.", json_schema::nonempty_text_or_texts())
        .optional("done", "Whether the conversation ends.", json_schema::boolean())
        .into();
    let max_turns =
        || json_schema::with_default(json_schema::integer_between(1, MOST_USER_TURNS), DEFAULT_USER_TURNS);
    let in_order = MappingSchema::closed().required(
        "answers",
        "Answers that are sent in this order.",
        json_schema::nonempty_list(json_schema::any_of([json_schema::nonempty_text(), answer])),
    );
    let by_rules = MappingSchema::closed()
        .required(
            "rules",
            "Rules; the first that fits the agent's message decides.",
            json_schema::nonempty_list(rule),
        )
        .optional("otherwise", "The answer to a question that no rule fits.", json_schema::nonempty_text())
        .optional("max_turns", "The most replies.", max_turns());
    let by_model = MappingSchema::closed()
        .optional(
            "persona",
            "The person that a model plays; of several, each repetition of the case takes the next.",
            json_schema::nonempty_text_or_texts(),
        )
        .optional("facts", "What the person knows beyond the prompt.", json_schema::text_or_texts())
        .optional("goal", "What the person wants to have reached.", json_schema::text())
        .optional("max_turns", "The most replies.", max_turns())
        .with_keyword(
            "anyOf",
            json!([{"required": ["persona"]}, {"required": ["facts"]}, {"required": ["goal"]}]),
        );
    json_schema::any_of([in_order.into(), by_rules.into(), by_model.into()])
}
