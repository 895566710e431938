//! The texts that are added to an agent's system prompt to make it use skills more or less eagerly.
//!
//! In: a mode, and the user's own modes. Out: the text, if there is one. Never: replaces the agent's own system
//! prompt.

use std::collections::BTreeMap;

use practicum_core::model::SkillUseMode;

/// The texts of the modes smart and forced are those of skill-test, word for word, so that results can be compared
/// with skill-test's.
const SMART_TEXT: &str = "\
When you receive a request that might benefit from specialized knowledge:
1. Check if you've already activated a relevant skill this session
2. If not, scan <available_skills> for matches and activate before responding
3. Skip re-evaluation for topics you've already covered";

const FORCED_TEXT: &str = "\
Before responding to any user request, you MUST:
1. EVALUATE each skill in <available_skills>
2. ACTIVATE relevant skills
3. Only THEN respond";

/// Gives the text of a mode. An unknown name is an error that lists the known ones.
pub fn mode_text<'m>(
    mode: &'m SkillUseMode,
    own: &'m BTreeMap<String, String>,
) -> Result<Option<&'m str>, String> {
    match mode {
        SkillUseMode::Baseline => Ok(None),
        // A project may replace the texts of the known modes.
        SkillUseMode::Smart => Ok(Some(own.get("smart").map_or(SMART_TEXT, String::as_str))),
        SkillUseMode::Forced => Ok(Some(own.get("forced").map_or(FORCED_TEXT, String::as_str))),
        SkillUseMode::Named(name) => match own.get(name) {
            Some(text) => Ok(Some(text)),
            None => {
                let known: Vec<&str> = ["baseline", "smart", "forced"]
                    .into_iter()
                    .chain(own.keys().map(String::as_str))
                    .collect();
                let hint = match name.as_str() {
                    // BMad's runner has an option of the same name with these values.
                    "trigger" | "triggers" => "; for trigger evals alone say --only activation",
                    "artifact" | "artifacts" => "; for artifact evals alone say --only artifact",
                    "both" => "; both kinds of evals run unless --only says otherwise",
                    _ => "",
                };
                Err(format!("there is no mode \"{name}\"; there are {}{hint}", known.join(", ")))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_their_steps() {
        let own = BTreeMap::from([("gentle".to_owned(), "Perhaps a skill?".to_owned())]);
        for (mode, expected) in [
            (SkillUseMode::Baseline, Ok(None)),
            (SkillUseMode::Smart, Ok(Some("3. Skip re-evaluation for topics you've already covered"))),
            (SkillUseMode::Forced, Ok(Some("1. EVALUATE each skill in <available_skills>"))),
            (SkillUseMode::Named("gentle".into()), Ok(Some("Perhaps"))),
            (SkillUseMode::Named("smrt".into()), Err(())),
        ] {
            let found = mode_text(&mode, &own).map_err(|_| ());
            match (found, expected) {
                (Ok(Some(found)), Ok(Some(part))) => assert!(found.contains(part), "{mode:?}"),
                (found, expected) => assert_eq!(found, expected, "{mode:?}"),
            }
        }
    }
}
