//! The keys with which eval files of many formats say whether a skill must be activated.

/// Keys that say with true or false whether the skill under test must be activated.
pub const ACTIVATED_OR_NOT: [&str; 6] = [
    "should_trigger",
    "should_activate",
    "skill_should_trigger",
    "expected_trigger",
    "expect_trigger",
    "expect_activation",
];

/// Keys that name the skill that must be activated; null is none. Some people write true or false there.
pub const ACTIVATED_SKILL: [&str; 3] = ["expected_skill", "expect_skill", "expected_activation"];

/// The keys under which a case says whether a skill must be activated.
pub fn activation_keys() -> impl Iterator<Item = &'static str> {
    ACTIVATED_OR_NOT.into_iter().chain(ACTIVATED_SKILL)
}
