//! The simulated user of one trial: decides what is said to the agent next, and when the conversation ends.
//!
//! In: the agent's messages, one after the other. Out: the replies, and a `UserRecord`. Never: knows what the case
//! expects, except to notice that a reply gives it away.

mod given_away;
mod model_user;

use std::future::Future;
use std::pin::Pin;

use self::given_away::find_expected_text;
use self::model_user::{ModelUser, PersonAction};
use crate::grade::judge::{Judge, JudgeContext};
use crate::workspace::run::{AgentMessage, ConversationUser, UserMove};
use crate::workspace::secrets::Scrubber;
use practicum_agents::gateway::PriceTable;
use practicum_core::model::{
    Check, JudgeUsage, ReplyCondition, ReplyRules, RuleReply, ScriptedAnswer, SimulatedUser, TokenUsage,
    UserEnding, UserRecord, count_with_noun,
};
use practicum_evals::checks::PythonPattern;

/// The longest reply of a model, in bytes. A person answers in sentences; more would be the agent's work.
const LONGEST_REPLY: usize = 2000;

/// The inputs of a simulated user.
pub struct UserInputs<'u> {
    pub user: &'u SimulatedUser,
    /// The messages of the case, which are sent before the user answers.
    pub prompts: Vec<String>,
    /// The checks of the trial, and the text that its judge may read. A reply must not give them away.
    pub checks: Vec<&'u Check>,
    pub context: Option<&'u str>,
    /// The number of the repetition, from 1. It chooses among several personas or texts.
    pub attempt: u32,
    /// The model that plays the user, at the address where it is asked.
    pub model: Option<(Judge, JudgeContext<'u>)>,
    /// The prices of models; `None` if their answers cost nothing.
    pub prices: Option<&'u PriceTable>,
    pub scrubber: &'u Scrubber,
}

/// A simulated user in its conversation.
pub struct UserSession<'u> {
    inputs: UserInputs<'u>,
    /// What was said since the messages of the case, the agent first.
    exchanges: Vec<Exchange>,
    ending: Option<(UserEnding, Option<String>)>,
    usage: TokenUsage,
}

/// A message of the agent, and the reply that was sent.
pub struct Exchange {
    pub agent: String,
    pub reply: Option<String>,
}

impl ConversationUser for UserSession<'_> {
    fn reply<'r>(&'r mut self, message: AgentMessage) -> Pin<Box<dyn Future<Output = UserMove> + Send + 'r>> {
        Box::pin(async move {
            let decided = match self.inputs.user {
                SimulatedUser::Answers(answers) => self.next_answer(answers, &message),
                SimulatedUser::Rules(rules) => self.reply_by_rules(rules, &message),
                SimulatedUser::Model(_) => {
                    let text = self.inputs.scrubber.scrub_text(&message.text);
                    self.exchanges.push(Exchange { agent: text, reply: None });
                    self.ask_model().await
                }
            };
            match decided {
                Ok(text) => {
                    match (self.inputs.user, self.exchanges.last_mut()) {
                        (SimulatedUser::Model(_), Some(last)) => last.reply = Some(text.clone()),
                        _ => self.exchanges.push(Exchange { agent: message.text, reply: Some(text.clone()) }),
                    }
                    UserMove::Say(text)
                }
                Err(ending) => {
                    self.ending = Some(ending);
                    UserMove::End
                }
            }
        })
    }
}

/// A reply, or how the conversation ends.
type Decision = Result<String, (UserEnding, Option<String>)>;

impl<'u> UserSession<'u> {
    pub fn new(inputs: UserInputs<'u>) -> Self {
        Self { inputs, exchanges: Vec::new(), ending: None, usage: TokenUsage::default() }
    }

    fn replies(&self) -> usize {
        self.exchanges.iter().filter(|exchange| exchange.reply.is_some()).count()
    }

    fn next_answer(&self, answers: &[ScriptedAnswer], message: &AgentMessage) -> Decision {
        let Some(answer) = answers.get(self.replies()) else { return Err((UserEnding::AnswersUsed, None)) };
        if answer.condition.must_ask && !message.asks {
            return Err((UserEnding::AgentDidNotAsk, None));
        }
        match fits(&answer.condition, message)? {
            true => Ok(answer.text.clone()),
            false => Err((UserEnding::AgentDidNotMatch, answer.condition.pattern.clone())),
        }
    }

    fn reply_by_rules(&self, rules: &ReplyRules, message: &AgentMessage) -> Decision {
        let ReplyRules { rules, otherwise, max_turns } = rules;
        let mut chosen = None;
        for rule in rules {
            if fits(&rule.condition, message)? {
                chosen = Some(&rule.reply);
                break;
            }
        }
        let text = match (chosen, otherwise) {
            (Some(RuleReply::Done), _) => return Err((UserEnding::Done, None)),
            (Some(RuleReply::Say(texts)), _) => self.choose(texts).cloned().unwrap_or_default(),
            (None, Some(text)) if message.asks => text.clone(),
            (None, None) if message.asks => return Err((UserEnding::NoAnswer, None)),
            (None, _) => return Err((UserEnding::AgentDidNotAsk, None)),
        };
        self.within_limit(*max_turns, text)
    }

    /// Gives the text, unless the user has sent as many replies as it may.
    fn within_limit(&self, max_turns: u32, text: String) -> Decision {
        let limit = usize::try_from(max_turns).unwrap_or(usize::MAX);
        let limit_note = || Some(format!("it may send {}", count_with_noun(max_turns, "reply")));
        if self.replies() < limit { Ok(text) } else { Err((UserEnding::NeverDone, limit_note())) }
    }

    /// Chooses one of several by the number of the repetition, so that every run of it chooses the same.
    fn choose<'t>(&self, texts: &'t [String]) -> Option<&'t String> {
        let turn = usize::try_from(self.inputs.attempt.saturating_sub(1)).unwrap_or(0);
        texts.get(turn.checked_rem(texts.len())?)
    }

    async fn ask_model(&mut self) -> Decision {
        let SimulatedUser::Model(persona) = self.inputs.user else { return Err((UserEnding::Done, None)) };
        let Some((judge, context)) = &self.inputs.model else {
            return Err((UserEnding::ModelFailed, Some("there is no model".to_owned())));
        };
        let user = ModelUser {
            persona: self.choose(&persona.personas).map(String::as_str),
            facts: &persona.facts,
            goal: persona.goal.as_deref(),
            prompts: &self.inputs.prompts,
            attempt: self.inputs.attempt,
        };
        let (reply, usage) = user.ask(judge, context, &self.exchanges).await;
        self.usage.add(usage);
        match reply {
            Err(why) => Err((UserEnding::ModelFailed, Some(why.describe()))),
            Ok(PersonAction::Done) => Err((UserEnding::Done, None)),
            Ok(PersonAction::CannotAnswer(why)) => Err((UserEnding::NoAnswer, Some(why))),
            Ok(PersonAction::Answer(text)) => {
                self.refuse_unusable(&text)?;
                self.refuse_given_away(&text, &user.known_texts())?;
                self.within_limit(persona.max_turns, text)
            }
        }
    }

    /// Refuses a reply that no person would give, or that shows that the conversation goes in circles.
    fn refuse_unusable(&self, text: &str) -> Result<(), (UserEnding, Option<String>)> {
        let earlier = self.exchanges.iter().rev().find_map(|exchange| exchange.reply.as_deref());
        let why = if text.trim().is_empty() {
            "it is blank".to_owned()
        } else if text.len() > LONGEST_REPLY {
            format!("it has more than {LONGEST_REPLY} bytes")
        } else if text.contains("```") {
            "it contains code".to_owned()
        } else if earlier.is_some_and(|earlier| earlier.trim() == text.trim()) {
            "it repeats the reply before it".to_owned()
        } else {
            return Ok(());
        };
        Err((UserEnding::UnusableReply, Some(why)))
    }

    /// Refuses a reply with what a check expects, if neither the user was told nor the agent said it.
    fn refuse_given_away(&self, text: &str, known: &str) -> Result<(), (UserEnding, Option<String>)> {
        let said =
            self.exchanges.iter().flat_map(|exchange| [Some(&exchange.agent), exchange.reply.as_ref()]);
        let known = said.flatten().fold(known.to_owned(), |known, text| known + "\n" + text);
        match find_expected_text(text, &known, &self.inputs.checks, self.inputs.context) {
            Some(found) => Err((UserEnding::GaveAnswerAway, Some(found))),
            None => Ok(()),
        }
    }

    /// Gives the record of the user's part in the trial.
    pub fn into_record(self) -> UserRecord {
        let replies = u32::try_from(self.replies()).unwrap_or(u32::MAX);
        let (ended, because) = self.ending.unzip();
        let model = self.inputs.model.as_ref().map(|(judge, _)| judge.model().to_owned());
        let spending = model.zip(self.inputs.prices).filter(|_| !self.usage.is_none());
        let spending = spending.map(|(model, prices)| JudgeUsage {
            cost_usd: prices.cost(&model, self.usage),
            model,
            usage: self.usage,
        });
        UserRecord { replies, ended, because: because.flatten(), spending }
    }
}

/// Says whether an answer fits the agent's message.
fn fits(condition: &ReplyCondition, message: &AgentMessage) -> Result<bool, (UserEnding, Option<String>)> {
    if condition.must_ask && !message.asks {
        return Ok(false);
    }
    let Some(source) = &condition.pattern else { return Ok(true) };
    let unusable = |why: String| (UserEnding::UnusableReply, Some(format!("its pattern /{source}/ {why}")));
    let pattern =
        PythonPattern::new(source).map_err(|error| unusable(format!("does not compile: {error}")))?;
    let found = pattern.find(&message.text).map_err(|error| unusable(error.to_string()))?;
    Ok(found.is_some())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use practicum_core::model::ReplyRule;

    /// Gives what a user says to these messages of an agent, and how the conversation ends.
    async fn play(
        user: &SimulatedUser,
        attempt: u32,
        messages: &[&str],
    ) -> (Vec<String>, Option<UserEnding>) {
        let scrubber = Scrubber::new(&BTreeMap::new());
        let mut session = UserSession::new(UserInputs {
            user,
            prompts: vec!["Plan a trip.".to_owned()],
            checks: Vec::new(),
            context: None,
            attempt,
            model: None,
            prices: None,
            scrubber: &scrubber,
        });
        let mut said = Vec::new();
        for text in messages {
            let message = AgentMessage { text: (*text).to_owned(), asks: text.contains('?') };
            match session.reply(message).await {
                UserMove::Say(text) => said.push(text),
                UserMove::End => break,
            }
        }
        let record = session.into_record();
        assert_eq!(usize::try_from(record.replies).expect("few"), said.len());
        (said, record.ended)
    }

    fn condition(must_ask: bool, pattern: Option<&str>) -> ReplyCondition {
        ReplyCondition { must_ask, pattern: pattern.map(str::to_owned) }
    }

    #[tokio::test]
    async fn answers_come_in_their_order_and_stop_where_the_agent_does_not_ask() {
        let answer = |text: &str, condition| ScriptedAnswer { text: text.to_owned(), condition };
        let user = SimulatedUser::Answers(vec![
            answer("Lisbon.", condition(true, Some("(?i)city"))),
            answer("Three days.", condition(false, None)),
        ]);
        for (messages, said, ended) in [
            (
                &["Which city?", "How long?", "Done."][..],
                &["Lisbon.", "Three days."][..],
                UserEnding::AnswersUsed,
            ),
            (&["Here is your plan for a city."], &[], UserEnding::AgentDidNotAsk),
            (&["Which country?"], &[], UserEnding::AgentDidNotMatch),
        ] {
            let (found, end) = play(&user, 1, messages).await;
            assert_eq!((found, end), (said.iter().map(|text| (*text).to_owned()).collect(), Some(ended)));
        }
    }

    #[tokio::test]
    async fn rules_answer_questions_until_the_limit_and_repetitions_take_turns() {
        let rule = |pattern: &str, reply| ReplyRule { condition: condition(true, Some(pattern)), reply };
        let say = |texts: &[&str]| RuleReply::Say(texts.iter().map(|text| (*text).to_owned()).collect());
        let done = ReplyRule { condition: condition(false, Some("^Done")), reply: RuleReply::Done };
        let rules =
            vec![done, rule("(?i)city", say(&["Lisbon.", "Porto."])), rule("(?i)days", say(&["Three."]))];
        let user = |otherwise: Option<&str>| {
            let otherwise = otherwise.map(str::to_owned);
            SimulatedUser::Rules(ReplyRules { rules: rules.clone(), otherwise, max_turns: 2 })
        };
        let (plain, vague) = (user(None), user(Some("I don't mind.")));
        for (who, attempt, messages, said, ended) in [
            (
                &plain,
                1,
                &["Which city?", "How many days?", "Done: three days."][..],
                &["Lisbon.", "Three."][..],
                UserEnding::Done,
            ),
            (&plain, 2, &["Which city?", "A trip to a city."], &["Porto."], UserEnding::AgentDidNotAsk),
            (&plain, 3, &["Which city?", "Which hotel?"], &["Lisbon."], UserEnding::NoAnswer),
            (
                &vague,
                1,
                &["Which hotel?", "Which airline?", "Which seat?"],
                &["I don't mind."; 2],
                UserEnding::NeverDone,
            ),
        ] {
            let (found, end) = play(who, attempt, messages).await;
            assert_eq!((found, end), (said.iter().map(|text| (*text).to_owned()).collect(), Some(ended)));
        }
    }
}
