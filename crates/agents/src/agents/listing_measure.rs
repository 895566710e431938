//! Measures how much of the descriptions of skills an agent tells its model.

use super::skill_text::normalise;
use practicum_core::studies::{CutDescription, SkillListing};

/// The greatest number of letters and digits between a skill's name and its description in a listing.
const LONGEST_GAP: usize = 48;
/// So many letters and digits of a description show that it begins.
const BEGINNING: usize = 12;
/// A name with fewer letters and digits may stand anywhere by chance.
const SHORTEST_NAME: usize = 4;
/// The greatest number of places where a name is looked at.
const MOST_PLACES: usize = 10_000;

/// How agents that list skills as elements write some characters.
const ESCAPES: [(&str, &str); 6] =
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"), ("&amp;", "&")];

/// Measures the listing in what a model received before any tool answered. `skills` are pairs of a name and a
/// description. Only letters and digits are compared, because each agent writes and escapes the rest in its own way.
pub fn measure_listing(received: &str, skills: &[(String, String)]) -> SkillListing {
    let unescaped =
        ESCAPES.iter().fold(received.to_owned(), |text, (escape, char)| text.replace(escape, char));
    let received = normalise(&unescaped);
    let mut listing = SkillListing { skills: skills.len() as u64, ..SkillListing::default() };
    for (skill, description) in skills {
        let (name, wanted) = (normalise(skill), normalise(description));
        let shown = shown_part(&received, &name, &wanted);
        let of = wanted.chars().count();
        let is_named = name.chars().count() >= SHORTEST_NAME && received.contains(&name);
        let characters = description.chars().count() * shown.unwrap_or(0) / of.max(1);
        match shown {
            Some(shown) if shown == of => listing.whole += 1,
            Some(shown) => {
                let (shown, of) = (shown as u64, of as u64);
                listing.cut.push(CutDescription { skill: skill.clone(), shown, of });
            }
            None if is_named => listing.without_description.push(skill.clone()),
            None => {
                listing.missing.push(skill.clone());
                continue;
            }
        }
        listing.characters += (skill.chars().count() + characters) as u64;
    }
    listing
}

/// Gives how many letters and digits of a description follow its skill's name somewhere. `None` if it does not begin
/// after the name anywhere.
fn shown_part(received: &str, name: &str, wanted: &str) -> Option<usize> {
    if name.is_empty() {
        return None;
    }
    let beginning: String = wanted.chars().take(BEGINNING).collect();
    let mut longest = None;
    for (at, _) in received.match_indices(name).take(MOST_PLACES) {
        let rest = &received[at + name.len()..];
        let gap_end = rest.char_indices().nth(LONGEST_GAP + BEGINNING).map_or(rest.len(), |(end, _)| end);
        let Some(start) = rest[..gap_end].find(&beginning) else { continue };
        let common =
            rest[start..].chars().zip(wanted.chars()).take_while(|(one, other)| one == other).count();
        longest = longest.max(Some(common));
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_cut_unnamed_and_missing_descriptions() {
        let skill = |name: &str, description: &str| (name.to_owned(), description.to_owned());
        let skills = [
            skill("release-notes", "Writes release notes. Use when a version is published."),
            skill("sourdough", "Bakes bread. Use when the user has a starter & \"flour\"."),
            skill("knife-care", "Sharpens knives, with a whetstone."),
            skill("compost", "Turns garden waste into soil."),
            skill("tide", ""),
        ];
        for (received, form) in [
            (
                "- release-notes: Writes release notes. Use when a version is published.\n- sourdough: Bakes bread. Use when…\n- knife-care",
                "a list",
            ),
            (
                "<name>release-notes</name><description>Writes release notes. Use when a version is published.</description>\n\
                 <name>sourdough</name><description>Bakes bread. Use when...</description><name>knife-care</name>",
                "elements",
            ),
        ] {
            let found = measure_listing(received, &skills);
            assert_eq!((found.skills, found.whole), (5, 1), "{form}: {found:?}");
            let cut: Vec<(&str, u64)> = found.cut.iter().map(|of| (of.skill.as_str(), of.shown)).collect();
            assert_eq!(cut, [("sourdough", 17)], "{form}");
            assert_eq!(found.without_description, ["knife-care"], "{form}");
            assert_eq!(found.missing, ["compost", "tide"], "{form}");
        }
        // Characters that are escaped make no difference.
        let escaped = "sourdough: Bakes bread. Use when the user has a starter &amp; \\\"flour\\\".";
        assert_eq!(measure_listing(escaped, &skills[1..2]).whole, 1);
        assert_eq!(
            measure_listing("- tide: \n", &skills[4..]).whole,
            1,
            "an empty description is there as a whole"
        );
    }
}
