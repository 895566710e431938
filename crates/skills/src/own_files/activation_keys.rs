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

/// Gives the keys under which a case says whether a skill must be activated.
pub fn activation_keys() -> impl Iterator<Item = &'static str> {
    BOOLEAN_ACTIVATION_KEYS.into_iter().chain(SKILL_NAME_KEYS)
}
