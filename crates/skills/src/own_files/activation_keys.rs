//! The keys with which eval files of many formats say whether a skill must be activated.

/// Keys that say with true or false whether the skill under test must be activated.
pub const BOOLEAN_ACTIVATION_KEYS: [&str; 6] = [
    "should_trigger",
    "should_activate",
    "skill_should_trigger",
    "expected_trigger",
    "expect_trigger",
    "expect_activation",
];

/// Keys that name the skill that must be activated; null is none. Some people write true or false there.
pub const SKILL_NAME_KEYS: [&str; 3] = ["expected_skill", "expect_skill", "expected_activation"];

/// Less usual keys for true or false, each with whether the skill must be activated where it is true.
pub const OTHER_BOOLEAN_KEYS: [(&str, bool); 12] = [
    ("must_activate", true),
    ("must_trigger", true),
    ("should_fire", true),
    ("should_use_skill", true),
    ("shouldTrigger", true),
    ("shouldActivate", true),
    ("should_not_trigger", false),
    ("should_not_activate", false),
    ("must_not_trigger", false),
    ("should_not_fire", false),
    ("shouldNotTrigger", false),
    ("shouldNotActivate", false),
];

/// The key that lists the skills that must be activated; an empty list is none.
pub const SKILL_LIST_KEY: &str = "expected_skills";

/// The keys under which a case says whether a skill must be activated.
pub fn activation_keys() -> impl Iterator<Item = &'static str> {
    let others = OTHER_BOOLEAN_KEYS.into_iter().map(|(key, _)| key).chain([SKILL_LIST_KEY]);
    BOOLEAN_ACTIVATION_KEYS.into_iter().chain(SKILL_NAME_KEYS).chain(others)
}
