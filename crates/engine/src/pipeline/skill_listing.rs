//! Measures what an agent tells its model about the skills that are there.

use crate::plan::PlannedSuite;
use practicum_agents::agents::measure_listing;
use practicum_agents::gateway::GatewayScope;
use practicum_core::model::Trial;
use practicum_core::studies::SkillListing;
use practicum_skills::skill::Skill;

/// The number of cases of a suite whose trials show the listing. It is the same in every trial, so a few are enough.
const MEASURED_CASES: usize = 10;

/// Says whether the agent's listing of the skills is measured in a trial.
pub fn shows_listing(planned: &PlannedSuite, trial: &Trial) -> bool {
    let several = planned.suite.skills.len() + planned.suite.rivals.len() > 1;
    several && trial.case < MEASURED_CASES && trial.attempt == 1 && trial.condition.arm.has_skill()
}

/// Measures how much of the skills' descriptions the agent told its model. `None` if no request was kept.
pub fn listing_in_requests(planned: &PlannedSuite, scope: &GatewayScope) -> Option<SkillListing> {
    let received = scope.first_request_texts()?;
    let skills = planned.suite.skills.iter().chain(&planned.suite.rivals);
    let read = skills.filter_map(|skill| Skill::read(skill.path.as_ref()?).ok());
    // A skill that only people may call is not listed on purpose.
    let told = read.filter(Skill::is_model_invocable);
    let told: Vec<(String, String)> =
        told.map(|skill| (skill.name, skill.description.unwrap_or_default())).collect();
    Some(measure_listing(&received, &told))
}
