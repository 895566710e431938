//! From what was seen of a trial to what its checks found.
//!
//! In: a case, an `Observation`, the workspace as far as it is there, a judge if there is one. Out:
//! `Marked`. The one path for trials that have just run and for those that are marked again.
//! Never: runs an agent; finds anything in a run that did not come to its end.

mod about_skill;

pub use about_skill::{SkillText, judge_skill};

use std::collections::HashSet;

use crate::judge::{Exhibit, Judge, Mark, Marks, Offered, Questions, Sitting, Situation, predicted};
use practicum_agents::gateway::{Prices, Scope};
use practicum_core::model::{
    Activated, Activation, Arm, By, Case, Check, CheckKind, CheckResult, CriteriaThresholds, Expect, Finding,
    Fired, Given, JudgedBy, Judging, Leave, LooksAt, Need, Observation, PassRule, Prediction, Remarks, Rule,
    Scale, ShortenedEvidence, SkillUse, Stimulus, Suite, TrialRecord, Usage, Verdict, Why, WorkspaceView,
};
use practicum_evals::score::{self, Names};
use practicum_skills::skill::Skill;

/// What one trial is marked by.
pub struct Sheet<'s> {
    pub suite: &'s Suite,
    pub case: &'s Case,
    /// Those of the case's checks that apply.
    pub checks: Vec<&'s Check>,
    pub arm: Arm,
    /// The skills that were staged: their own names, and those they had in the room.
    pub skills: Vec<(String, String)>,
    /// What checks may do.
    pub leave: Leave<'s>,
    /// The skills that a model is shown where it is to predict which fires.
    pub offered: Vec<Offered>,
}

/// The skills of a suite and their rivals, as agents are offered them; none if nothing is predicted.
pub fn offered(suite: &Suite, checks: &[&Check]) -> Vec<Offered> {
    if !checks.iter().any(|check| predicted(check).is_some()) {
        return Vec::new();
    }
    let placed = suite.skills.iter().chain(&suite.rivals).filter_map(|skill| {
        let read = Skill::read(skill.path.as_ref()?).ok()?;
        Some(Offered { name: skill.name.clone(), description: read.description.unwrap_or_default() })
    });
    placed.collect()
}

/// Who judges, and where.
pub struct Jury<'j> {
    /// Why nobody does, if nobody does.
    pub judge: Result<&'j Judge, Why>,
    pub sitting: Sitting<'j>,
    /// Gives an address of this trial's own, where a gateway stands between us and the judge's model.
    pub address: &'j (dyn Fn() -> Option<Scope> + Sync),
    /// What that gateway is called where it has something to tell.
    pub gateway: &'static str,
    /// What models cost, where their answers cost anything.
    pub prices: Option<&'j Prices>,
}

/// Text of fewer bytes is marked at once.
const AT_ONCE: usize = 64 * 1024;

/// What marking gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Marked {
    pub checks: Vec<CheckResult>,
    pub verdict: Verdict,
    /// Whether the skill that the case is about fired; `None` where nobody can say.
    pub fired: Option<bool>,
    /// Which skills the run was about, and which it took up.
    pub skills: SkillUse,
    /// What a model guessed of activation, where it was to.
    pub predicted: Option<Prediction>,
    /// What the judge noticed beside what it was asked.
    pub remarks: Remarks,
    /// What is worth telling of the judge, and changes no verdict.
    pub notes: Vec<String>,
    /// What the judge was not shown, if anything.
    pub shortened: Option<ShortenedEvidence>,
    pub judging: Option<Judging>,
    /// `None` where no judge was to be asked.
    pub judged_by: Option<JudgedBy>,
}

impl Jury<'_> {
    fn bill(&self, usage: Usage) -> Option<Judging> {
        let (judge, prices) = (self.judge.as_ref().ok()?, self.prices?);
        let model = judge.model().to_owned();
        (!usage.is_none()).then(|| Judging { cost_usd: prices.cost(&model, usage), model, usage })
    }

    /// The judge that was at work since then. `None` if there is none.
    fn judged_by(&self, started: jiff::Timestamp) -> Option<JudgedBy> {
        let model = self.judge.as_ref().ok()?.model().to_owned();
        let seconds = jiff::Timestamp::now().duration_since(started).as_secs_f64().max(0.0);
        Some(JudgedBy { model, started: started.to_string(), seconds })
    }

    /// What the gateway has to tell once the judge is done there.
    fn told_by(&self, scope: &Scope) -> impl Iterator<Item = String> {
        scope.finish().into_iter().map(|note| format!("judge: {}: {note}", self.gateway))
    }
}

impl Sheet<'_> {
    /// Marks with code, then asks the judge about the rest.
    pub async fn mark(
        &self,
        seen: &Observation,
        workspace: &dyn WorkspaceView,
        given: &[Given],
        jury: &Jury<'_>,
    ) -> Marked {
        let findings = self.decide_aside(seen, workspace);
        self.mark_decided(seen, workspace, given, jury, findings).await
    }

    /// Asks the judge about what code left open.
    pub async fn mark_decided(
        &self,
        seen: &Observation,
        workspace: &dyn WorkspaceView,
        given: &[Given],
        jury: &Jury<'_>,
        findings: Vec<Option<Finding>>,
    ) -> Marked {
        let started = jiff::Timestamp::now();
        let marks = self.judge(seen, workspace, given, jury, &findings).await;
        let judging = jury.bill(marks.usage);
        let judged_by = self.needs_judge(seen).then(|| jury.judged_by(started)).flatten();
        Marked { judging, judged_by, ..self.gather(seen, findings, marks) }
    }

    /// What code alone can say. Checks may run programs and read large files, which others need not wait
    /// for; short work is done sooner than another thread could take over what waits.
    pub fn decide_aside(&self, seen: &Observation, workspace: &dyn WorkspaceView) -> Vec<Option<Finding>> {
        let decide = || self.decide(seen, workspace);
        if self.is_short_work(seen) { decide() } else { crate::run::run_blocking(decide) }
    }

    fn is_short_work(&self, seen: &Observation) -> bool {
        let waits = |rule: &dyn Rule| rule.runs_code() || rule.asks_network();
        let code = |check: &&Check| matches!(&check.kind, CheckKind::Exact(rule) if waits(rule.as_ref()));
        let short = seen.output.len() < AT_ONCE && seen.files.is_empty() && seen.steps.len() < AT_ONCE / 1024;
        short && !self.checks.iter().any(code)
    }

    /// Whether somebody is to be asked about what was seen.
    pub fn needs_judge(&self, seen: &Observation) -> bool {
        seen.ended.can_be_marked() && !Questions::of(self.checks.iter().copied()).is_empty()
    }

    /// Marks with code alone; what only a judge can say stays open for this reason.
    pub fn mark_unjudged(&self, seen: &Observation, workspace: &dyn WorkspaceView, why: &Why) -> Marked {
        let unanswered = Questions::of(self.checks.iter().copied()).unanswered(why);
        self.gather(seen, self.decide(seen, workspace), unanswered)
    }

    /// What code alone can say; `None` for what only a judge can.
    pub fn decide(&self, seen: &Observation, workspace: &dyn WorkspaceView) -> Vec<Option<Finding>> {
        if !seen.ended.can_be_marked() {
            let broken_off = || Finding::not_scored(Why::Ended(seen.ended));
            let known = |check: &&Check| {
                self.mark_activation(check, seen).filter(|finding| finding.verdict == Verdict::Fail)
            };
            return self.checks.iter().map(|check| known(check).or_else(|| Some(broken_off()))).collect();
        }
        let mut findings = score::mark(&self.checks, seen, workspace, self.leave);
        for (check, finding) in self.checks.iter().zip(&mut findings) {
            if let Some(found) = self.mark_activation(check, seen) {
                *finding = Some(found);
            }
            if let CheckKind::Judged(judged) = &check.kind {
                *finding = missing_text(check, judged.scale, seen, workspace);
            }
        }
        findings
    }

    /// What was seen of the skills that a check of activation is about. `None` for other checks, and for those of
    /// which a model is asked.
    fn mark_activation(&self, check: &Check, seen: &Observation) -> Option<Finding> {
        let CheckKind::Activation(activation) = &check.kind else { return None };
        let told = self.is_told(&activation.skills, seen);
        let untold = || Finding::not_scored(Why::CheckFailed(INVOKED.to_owned()));
        let found = || score::mark_activation(activation, seen, &self.names());
        (activation.by == By::Observed).then(|| if told { found() } else { untold() })
    }

    async fn judge(
        &self,
        seen: &Observation,
        workspace: &dyn WorkspaceView,
        given: &[Given],
        jury: &Jury<'_>,
        findings: &[Option<Finding>],
    ) -> Marks {
        let is_open = |check: &Check, finding: &Option<Finding>| {
            finding.is_none() || !matches!(check.kind, CheckKind::Judged(_))
        };
        let open = self.checks.iter().zip(findings).filter(|(check, finding)| is_open(check, finding));
        let questions = Questions::of(open.map(|(check, _)| *check)).in_situation(self.situation());
        if questions.is_empty() || !seen.ended.can_be_marked() {
            return questions.unanswered(&Why::Ended(seen.ended));
        }
        let judge = match &jury.judge {
            Err(why) => return questions.unanswered(why),
            Ok(judge) => judge,
        };
        let context = self.case.context.as_deref();
        let exhibit = Exhibit { observation: seen, context, workspace, given };
        let Some(scope) = (jury.address)() else {
            return judge.mark(&questions, &exhibit, &jury.sitting).await;
        };
        let judge = judge.at(|api| scope.base_url_for(api));
        let mut marks = judge.mark(&questions, &exhibit, &jury.sitting).await;
        marks.notes.extend(jury.told_by(&scope));
        marks
    }

    /// Says which patterns for files to check matched none, where others did: the checks then read only a part.
    fn unmatched_outputs(&self, seen: &Observation) -> Option<String> {
        let globs = self.checks.iter().find_map(|check| match &check.looks_at {
            LooksAt::Files(globs) => Some(globs),
            LooksAt::Output | LooksAt::AllText | LooksAt::WholeRun | LooksAt::File(_) => None,
        })?;
        let unmatched = score::unmatched_globs(seen, globs);
        let is_part = seen.ended.can_be_marked() && !unmatched.is_empty() && unmatched.len() < globs.len();
        is_part.then(|| format!("no file was created or changed that matches {}", unmatched.join(", ")))
    }

    /// Puts together what code and judge found.
    fn gather(&self, seen: &Observation, findings: Vec<Option<Finding>>, mut marks: Marks) -> Marked {
        let mut checks = Vec::new();
        for (check, finding) in self.checks.iter().zip(findings) {
            match finding {
                Some(finding) => {
                    let result = result(check, Mark::new(&check.id, &check.id, finding));
                    checks.push(counted_with_others(result, self.case.pass_when));
                }
                None => {
                    let marks = marks.take(&check.id).into_iter().map(|mark| result(check, mark));
                    checks.extend(marks.map(|result| counted_with_others(result, self.case.pass_when)));
                }
            }
        }
        Marked {
            verdict: self.verdict(seen, &checks),
            fired: self.fired(seen),
            skills: self.skill_use(seen),
            predicted: prediction_wanted(self.case)
                .map(|wanted| Prediction { chosen: marks.chosen.take(), ..wanted }),
            checks,
            remarks: marks.remarks,
            notes: marks
                .notes
                .into_iter()
                .chain(marks.shortened.map(|part| part.in_words()))
                .chain(self.unmatched_outputs(seen))
                .collect(),
            shortened: marks.shortened,
            judging: None,
            judged_by: None,
        }
    }

    fn skill_use(&self, seen: &Observation) -> SkillUse {
        let about = match observed_activation(self.case) {
            Some(activation) => activation.skills.clone(),
            None => Vec::new(),
        };
        let names = self.names();
        let own_name = |activated: &Activated| {
            let full = activated.full_name();
            let known = if names.has(&full) { &full } else { &activated.skill };
            names.own(known).to_owned()
        };
        let mut activated: Vec<String> = seen.activated.iter().map(own_name).collect();
        activated.sort_unstable();
        activated.dedup();
        SkillUse { about, activated, invoked: self.is_invoked(&self.skills_meant()) }
    }

    /// Whether the user names one of these skills, which leaves the agent nothing to decide.
    fn is_invoked(&self, skills: &[String]) -> bool {
        let names = self.names();
        let is_meant =
            |name: &str| names.has(name) && skills.iter().any(|skill| names.own(skill) == names.own(name));
        match &self.case.stimulus {
            Stimulus::SkillCommand { .. } => true,
            Stimulus::Turns(turns) => {
                let bare = |name: &str| name.rsplit(':').next().is_some_and(is_meant);
                turns.iter().flat_map(|turn| commanded(turn)).any(|name| is_meant(name) || bare(name))
            }
        }
    }

    /// Whether the run can say that a skill did not fire: one that the user named may have been taken up
    /// without a trace.
    fn is_told(&self, skills: &[String], seen: &Observation) -> bool {
        !self.is_invoked(skills) || score::fired(skills, seen, &self.names()) != Fired::No
    }

    fn situation(&self) -> Situation {
        let turns = match &self.case.stimulus {
            Stimulus::Turns(turns) => turns.clone(),
            Stimulus::SkillCommand { args } => vec![args.clone()],
        };
        Situation { offered: self.offered.clone(), turns }
    }

    fn names(&self) -> Names {
        Names::new(self.skills.clone())
    }

    fn verdict(&self, seen: &Observation, checks: &[CheckResult]) -> Verdict {
        let own: Vec<String> = self.suite.skills.iter().map(|skill| skill.name.clone()).collect();
        // The first name of each skill is the one in the agent's listing.
        let mut listed = HashSet::new();
        let first_names = self.skills.iter().filter(|(own, _)| listed.insert(own));
        let staged: Vec<String> = first_names.map(|(_, staged)| staged.clone()).collect();
        match score::arm_problem(self.arm, &staged, &own, seen) {
            Some(problem) if seen.ended.can_be_marked() => Verdict::NotScored(Why::InvalidArm(problem)),
            Some(_) | None => TrialRecord::verdict_of(seen, checks, self.case.pass_when),
        }
    }

    /// The skills of which a check asks whether they are activated. `None` if no check does.
    fn skills_asked(&self) -> Option<&[String]> {
        self.checks.iter().find_map(|check| match &check.kind {
            CheckKind::Activation(activation) => Some(activation.skills.as_slice()),
            CheckKind::Exact(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => None,
        })
    }

    /// The skills that the case is about: those that are asked about, else those under test.
    fn skills_meant(&self) -> Vec<String> {
        let tested = || self.suite.skills.iter().map(|skill| skill.name.clone()).collect();
        self.skills_asked().map_or_else(tested, <[String]>::to_vec)
    }

    /// Whether the skill that the case is about fired. A skill invoked by its command did not
    /// fire by itself, so that says nothing where nobody asks.
    fn fired(&self, seen: &Observation) -> Option<bool> {
        let by_command = matches!(self.case.stimulus, Stimulus::SkillCommand { .. });
        let nobody_asks = by_command && self.skills_asked().is_none();
        if nobody_asks || self.skills.is_empty() || !needs_agent(&self.checks) {
            return None;
        }
        let skills = self.skills_meant();
        match score::fired(&skills, seen, &self.names()) {
            Fired::Yes(_) => Some(true),
            Fired::No if !self.is_invoked(&skills) => Some(false),
            Fired::No | Fired::Unknown(_) => None,
        }
    }
}

/// The finding that the files which a judged check reads are missing, were not written by the agent or say
/// nothing. `None` where there is something to judge. What the agent said elsewhere is not asked about.
fn missing_text(
    check: &Check,
    scale: Scale,
    seen: &Observation,
    workspace: &dyn WorkspaceView,
) -> Option<Finding> {
    if !matches!(check.looks_at, LooksAt::File(_) | LooksAt::Files(_)) {
        return None;
    }
    let finding = match score::texts_of_check(check, seen, workspace) {
        Ok(texts) if texts.iter().any(|checked| !checked.text.trim().is_empty()) => return None,
        Ok(_) => Finding::new(false, format!("{} is empty", check.looks_at.name())),
        Err(finding) => finding,
    };
    let lowest = match scale {
        Scale::PassFail => None,
        Scale::OneToFive => Some(1.0),
        Scale::Unit => Some(0.0),
    };
    let score = lowest.filter(|_| finding.verdict == Verdict::Fail);
    Some(Finding { score, ..finding })
}

const INVOKED: &str = "the prompt itself names the skill, which may leave no trace of its being taken up";

/// What a prompt names as skills: `/name` at its beginning, `$name` anywhere, with the plugin or folders
/// before it.
fn commanded(prompt: &str) -> impl Iterator<Item = &str> {
    let words = prompt.split_whitespace().enumerate();
    let named = words.filter_map(|(at, word)| match at {
        0 => word.strip_prefix(['/', '$']),
        _ => word.strip_prefix('$'),
    });
    named.map(|name| name.trim_end_matches(['.', ',', '!', '?', ';'])).filter(|name| !name.is_empty())
}

/// Whether anything is asked that only a run can show. What is merely predicted needs none.
pub fn needs_agent(checks: &[&Check]) -> bool {
    checks.is_empty() || checks.iter().any(|check| predicted(check).is_none())
}

/// A check to which nobody can find an answer.
pub fn unanswered(check: &Check, why: &Why) -> CheckResult {
    result(check, Mark::new(&check.id, &check.id, Finding::not_scored(why.clone())))
}

/// What is recorded of one thing that a check found.
fn result(check: &Check, mark: Mark) -> CheckResult {
    let scale = match &check.kind {
        CheckKind::Judged(judged) => Some(judged.scale),
        CheckKind::Exact(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => None,
    };
    // A check of several parts finds something under the id of each.
    let name = check.name.clone().filter(|_| mark.id == check.id);
    CheckResult { name, ..found(check.need, scale, mark) }
}

fn found(need: Need, scale: Option<Scale>, mark: Mark) -> CheckResult {
    let Mark { check: _, id, finding, weak, flags, votes } = mark;
    CheckResult {
        check: id,
        name: None,
        required: need == Need::Required,
        verdict: finding.verdict,
        score: finding.score,
        scale,
        rationale: finding.rationale,
        evidence: finding.evidence,
        weak,
        flags,
        votes,
        criteria: None,
    }
}

/// The result with the thresholds that it counts towards, where judged checks decide together.
fn counted_with_others(result: CheckResult, rule: PassRule) -> CheckResult {
    let criteria = match rule {
        PassRule::Graded { pass_rate, mean_score } if result.scale.is_some() => {
            Some(CriteriaThresholds { min_pass_rate: pass_rate, min_mean_score: mean_score })
        }
        PassRule::Graded { .. } | PassRule::EveryRequiredCheck | PassRule::FireRate(_) | PassRule::Tally => {
            None
        }
    };
    CheckResult { criteria, ..result }
}

/// What a case wants of the skill's activation, if it wants anything. What a model merely guesses is
/// never counted with what was seen.
pub fn expectation(case: &Case) -> Option<Expect> {
    observed_activation(case).map(|activation| activation.expect)
}

/// What of a case is to be guessed of activation, if anything is, before it was.
pub fn prediction_wanted(case: &Case) -> Option<Prediction> {
    let Activation { skills, expect, .. } = case.checks.iter().find_map(predicted)?;
    Some(Prediction { expect: *expect, about: skills.clone(), chosen: None })
}

fn observed_activation(case: &Case) -> Option<&Activation> {
    case.checks.iter().find_map(|check| match &check.kind {
        CheckKind::Activation(activation) => Some(activation).filter(|asked| asked.by == By::Observed),
        CheckKind::Exact(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_that_the_user_names_is_recognised() {
        for (prompt, expected) in [
            ("/greeter Alice", &["greeter"][..]),
            ("  $greeter", &["greeter"]),
            ("/harbour:greeter now", &["harbour:greeter"]),
            ("Greet Alice with $greeter, then $waver.", &["greeter", "waver"]),
            ("Look into /greeter", &[]),
            ("/ nothing", &[]),
            ("greeter", &[]),
        ] {
            assert_eq!(commanded(prompt).collect::<Vec<&str>>(), expected, "{prompt}");
        }
    }
}
