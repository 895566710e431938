//! Finds out whether a reply of a simulated user has what a check expects.

use serde_json::Value;

use practicum_core::model::{Check, CheckKind};
use practicum_evals::checks::PythonPattern;

/// The number of words in a row that two texts share only if one is taken from the other.
const SHARED_WORDS: usize = 8;

/// The fewest letters of an expected text. A shorter one is said by chance.
const FEWEST_LETTERS: usize = 4;

/// Finds an expected text in a reply that is not in `known`: what the user was told, and what the agent said. Gives a
/// sentence that names the text and the check.
pub fn find_expected_text(
    reply: &str,
    known: &str,
    checks: &[&Check],
    context: Option<&str>,
) -> Option<String> {
    let describe =
        |what: &str, check: &str| format!("it says \"{what}\", which {check} expects and it was not told");
    for check in checks {
        let name = format!("the check {}", check.id);
        let found = match &check.kind {
            CheckKind::Rule(rule) => expected_by_rule(rule.key(), &rule.value(), reply, known),
            CheckKind::Judged(judged) => shared_words(reply, known, &judged.statement),
            CheckKind::Sections(_) | CheckKind::Activation(_) => None,
        };
        if let Some(found) = found {
            return Some(describe(&found, &name));
        }
    }
    let found = shared_words(reply, known, context?)?;
    Some(describe(&found, "what the judge reads"))
}

/// Finds a text that a deterministic check requires. What a check forbids, and what it counts, is not looked for.
fn expected_by_rule(key: &str, value: &Value, reply: &str, known: &str) -> Option<String> {
    match key {
        "contains" | "starts_with" | "ends_with" => {
            let text = value.as_str().or_else(|| value["text"].as_str())?;
            let has = |all: &str| words_of(all).contains(&words_of(text));
            (is_long_enough(text) && has(reply) && !has(known)).then(|| text.to_owned())
        }
        "regex" => {
            let pattern = PythonPattern::new(value.as_str()?).ok()?;
            let found = &reply[pattern.find(reply).ok()??];
            let is_known = pattern.find(known).ok()?.is_some();
            (is_long_enough(found) && !is_known).then(|| found.to_owned())
        }
        "all" | "any" => value.as_array()?.iter().find_map(|item| {
            let (key, value) = item.as_object()?.iter().next()?;
            expected_by_rule(key, value, reply, known)
        }),
        _ => None,
    }
}

fn is_long_enough(text: &str) -> bool {
    text.chars().filter(|letter| letter.is_alphanumeric()).count() >= FEWEST_LETTERS
}

/// Gives the words of a text in lower case, each between two blanks, so that only whole words are found in it.
fn words_of(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    format!(" {} ", words.collect::<Vec<&str>>().join(" "))
}

/// Finds words in a row that a reply shares with a text, and that are not in `known`.
fn shared_words(reply: &str, known: &str, text: &str) -> Option<String> {
    let (reply, known, text) = (words_of(reply), words_of(known), words_of(text));
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(SHARED_WORDS).find_map(|row| {
        let row = row.join(" ");
        let has = |all: &str| all.contains(&format!(" {row} "));
        (has(&reply) && !has(&known)).then_some(row)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_expected_and_not_known_is_given_away() {
        for (key, value, reply, known, expected) in [
            ("contains", json!("Lisbon"), "To lisbon!", "Plan a trip.", Some("Lisbon")),
            ("contains", json!({"text": "Lisbon", "ignore_case": true}), "Lisbon", "", Some("Lisbon")),
            ("contains", json!("Lisbon"), "Lisbon", "I live in Lisbon.", None),
            ("contains", json!("Lisbon"), "Lisbonne", "", None),
            ("contains", json!("no"), "no", "", None),
            ("not_contains", json!("Lisbon"), "Lisbon", "", None),
            ("starts_with", json!("# Trip to Faro"), "Write \"# Trip to Faro\".", "", Some("# Trip to Faro")),
            ("regex", json!("(?i)lis\\w+"), "Lisbon", "", Some("Lisbon")),
            ("regex", json!("\\d+"), "3 days", "", None),
            ("any", json!([{"contains": "Porto"}, {"contains": "Faro"}]), "Faro", "", Some("Faro")),
            ("not", json!({"contains": "Porto"}), "Porto", "", None),
            ("min_length", json!(2), "Lisbon", "", None),
        ] {
            let found = expected_by_rule(key, &value, reply, known);
            assert_eq!(found.as_deref(), expected, "{key} {value} {reply}");
        }
        let statement = "The plan names three museums, each with its opening hours and price.";
        let row = "names three museums each with its opening hours";
        for (reply, known, expected) in [
            ("I expect that it names three museums, each with its opening hours.", "", Some(row)),
            ("Three museums, please, each with its price.", "", None),
            ("It names three museums, each with its opening hours.", statement, None),
        ] {
            assert_eq!(shared_words(reply, known, statement).as_deref(), expected, "{reply}");
        }
    }
}
