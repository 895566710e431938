//! Tests of the improvement loop.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::improve::journal::LoopStart;
use crate::improve::testing::record;
use crate::improve::{Analysis, EditSuggestion, RefusedSuggestion};
use practicum_core::model::{Digest, NotScoredReason, Verdict};

const SKILL: &str = "---\nname: gull\ndescription: Speaks.\n---\n\nFirst wrong. Second wrong.\n";

/// A simulation in which a skill's words decide how its cases end, and a function proposes edits.
struct World {
    runs: BTreeMap<String, Vec<TrialRecord>>,
    /// The cases, each with the word that the skill must contain to pass it. After `!` it must not contain the
    /// word; after `~` it passes by luck, and not in fresh runs.
    cases: Vec<(&'static str, &'static str)>,
    propose: fn(&str) -> Vec<EditSuggestion>,
    /// The number of steps begun.
    begun: usize,
    /// The number of the step at which the program is killed.
    killed_at: Option<usize>,
    /// The number of the step at which the user stops the loop.
    stopped_at: Option<usize>,
    usd_each: f64,
    /// The money that was spent in a run before the kill.
    usd_lost: f64,
    /// Whether the model cannot be reached, so that no trial has a verdict.
    mute: bool,
    notices: Vec<String>,
}

impl World {
    fn new(cases: &[(&'static str, &'static str)], propose: fn(&str) -> Vec<EditSuggestion>) -> Self {
        Self {
            runs: BTreeMap::new(),
            cases: cases.to_vec(),
            propose,
            begun: 0,
            killed_at: None,
            stopped_at: None,
            usd_each: 0.1,
            usd_lost: 0.0,
            mute: false,
            notices: Vec::new(),
        }
    }

    fn begin(&mut self) -> Result<(), LoopStop> {
        self.begun += 1;
        match Some(self.begun) {
            now if now == self.killed_at => Err(LoopStop::failed("killed")),
            now if now == self.stopped_at => Err(LoopStop::Interrupted),
            Some(_) | None => Ok(()),
        }
    }

    fn proposal(&self, files: &Path) -> EditProposal {
        let text = std::fs::read_to_string(files.join("SKILL.md")).expect("a skill");
        let mut draft =
            SkillEditDraft::from_contents(&SkillContents::scan(files).expect("a skill")).expect("texts");
        let mut proposal = EditProposal::default();
        for suggestion in (self.propose)(&text) {
            match draft.apply_suggestion(&suggestion, None) {
                Ok(()) => proposal.edits.push(suggestion),
                Err(why) => proposal.refused.push(RefusedSuggestion { suggestion, why }),
            }
        }
        proposal
    }
}

impl LoopServices for World {
    fn run_version(
        &mut self,
        skill: &Path,
        run: &str,
        sample: Option<&str>,
        left: RemainingBudget,
    ) -> Result<StepResult<Result<(), LoopStop>>, LoopStop> {
        self.begin()?;
        if let Some(usd) = left.usd.filter(|usd| *usd < self.usd_each) {
            return Ok(StepResult { value: Err(LoopStop::OutOfMoney), cost_usd: Some(usd) });
        }
        let text = std::fs::read_to_string(skill.join("SKILL.md")).expect("a skill");
        let passes = |wanted: &str| match wanted.strip_prefix('!') {
            Some(unwanted) => !text.contains(unwanted),
            None => match wanted.strip_prefix('~') {
                Some(lucky) => text.contains(lucky) && sample.is_none(),
                None => text.contains(wanted),
            },
        };
        let cases = self.cases.iter();
        let runs = cases.flat_map(|(case, wanted)| (1..=3).map(|n| record(case, n, passes(wanted))));
        let mut records: Vec<TrialRecord> = runs.collect();
        if self.mute {
            records
                .iter_mut()
                .for_each(|record| record.verdict = Verdict::NotScored(NotScoredReason::NotTrusted));
        }
        self.runs.insert(run.to_owned(), records);
        Ok(StepResult { value: Ok(()), cost_usd: Some(self.usd_each) })
    }

    fn cost_of_killed_run(&mut self, _run: &str) -> StepResult<f64> {
        StepResult { value: 5.0, cost_usd: Some(self.usd_lost) }
    }

    fn records(&mut self, run: &str) -> Result<Vec<TrialRecord>, LoopStop> {
        Ok(self.runs[run].clone())
    }

    fn write_gradings(
        &mut self,
        _tested: &TestedVersion,
        _records: &[TrialRecord],
        _folder: &Path,
    ) -> Result<(), LoopStop> {
        Ok(())
    }

    fn propose_edits(
        &mut self,
        best: &TestedVersion,
        split: &CaseSplit,
        _round: u32,
    ) -> Result<StepResult<EditProposal>, LoopStop> {
        self.begin()?;
        assert!(!split.tuning.is_empty());
        Ok(StepResult { value: self.proposal(&best.files), cost_usd: Some(0.0) })
    }

    fn compare_blindly(
        &mut self,
        _best: &TestedVersion,
        _candidate: &TestedVersion,
        _split: &CaseSplit,
        _folder: &Path,
    ) -> Result<StepResult<BlindOpinions>, LoopStop> {
        self.begin()?;
        Ok(StepResult { value: BlindOpinions { verdict: None, reasons: String::new() }, cost_usd: Some(0.0) })
    }

    fn explain_winner(
        &mut self,
        winner: &TestedVersion,
        loser: &TestedVersion,
        _said: &BlindOpinions,
        _split: &CaseSplit,
        _round: u32,
    ) -> Result<StepResult<Option<StepAnalysis>>, LoopStop> {
        self.begin()?;
        let EditProposal { edits, refused } = self.proposal(&winner.files);
        let analysis = Analysis {
            winner_version: format!("v{}", winner.version),
            loser_version: format!("v{}", loser.version),
            strengths: Vec::new(),
            weaknesses: Vec::new(),
            suggestions: edits,
        };
        Ok(StepResult { value: Some(StepAnalysis { analysis, refused }), cost_usd: Some(0.0) })
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn show_message(&mut self, text: &str) {
        self.notices.push(text.to_owned());
    }
}

struct TestSkill {
    _room: tempfile::TempDir,
    versions: SkillVersions,
}

impl TestSkill {
    fn new() -> Self {
        let room = tempfile::tempdir().expect("a folder");
        let skill = room.path().join("gull");
        std::fs::create_dir_all(skill.join("evals")).expect("create");
        std::fs::write(skill.join("SKILL.md"), SKILL).expect("write");
        std::fs::write(skill.join("evals/evals.json"), "the answers").expect("write");
        Self { versions: SkillVersions::for_skill(&skill).expect("a skill"), _room: room }
    }

    fn improve(&self, world: &mut World, options: &LoopOptions) -> ImproveReport {
        std::fs::create_dir_all(self.versions.folder()).expect("create");
        let evals_digest = Digest::of_bytes(b"the evals");
        let begun = LoopStart { schema_version: 1, goal: options.goal, seed: options.seed, evals_digest };
        let journal = LoopJournal::open(self.versions.folder(), &begun, false).expect("a journal");
        ImproveLoop::new(&self.versions, journal, options, world).run().expect("written")
    }

    fn skill(&self) -> String {
        std::fs::read_to_string(self.versions.skill().join("SKILL.md")).expect("a skill")
    }
}

fn options() -> LoopOptions {
    LoopOptions {
        goal: ImproveGoal::Skill,
        seed: 1,
        rounds: 5,
        target: 1.0,
        force: false,
        max_seconds: None,
        max_usd: None,
        noise: None,
    }
}

fn edit(before: &str, after: &str) -> EditSuggestion {
    EditSuggestion { area: "body".into(), before: before.into(), after: after.into(), reasoning: "r".into() }
}

const CASES: [(&str, &str); 6] = [
    ("a", "First right."),
    ("b", "First right."),
    ("c", "Second right."),
    ("d", "Second right."),
    ("e", "gull"),
    ("f", "gull"),
];

/// Proposes edits that fix one thing after the other.
fn diligent(text: &str) -> Vec<EditSuggestion> {
    match text {
        _ if text.contains("First wrong.") => vec![edit("First wrong.", "First right.")],
        _ if text.contains("Second wrong.") => vec![edit("Second wrong.", "Second right.")],
        _ => Vec::new(),
    }
}

#[test]
fn two_defects_are_mended_in_two_rounds() {
    let (skill, mut world) = (TestSkill::new(), World::new(&CASES, diligent));
    let improved = skill.improve(&mut world, &options());
    assert_eq!((improved.stopped, improved.best, improved.applied), (LoopEnd::Target, Some(2), true));
    assert_eq!((improved.baseline_pass_rate, improved.best_pass_rate), (Some(1.0 / 3.0), Some(1.0)));
    assert_eq!(improved.rounds.iter().filter(|round| round.accepted).count(), 2);
    assert!(skill.skill().contains("First right. Second right."));
    for round in [1, 2] {
        let analysis = skill.versions.folder().join(format!("rounds/{round}/analysis.json"));
        assert!(analysis.exists(), "also of the round that ends it: {round}");
    }
    let listed = skill.versions.list().expect("listed");
    assert_eq!((listed.best, listed.current_version, listed.changed), (Some(2), Some(2), false));
}

/// Tests a version that passed by luck. The fresh runs of the confirmation show it, and they are what is reported.
#[test]
fn what_passed_by_luck_is_not_confirmed_and_replaces_nothing() {
    let lucky = [
        ("a", "~First right."),
        ("b", "~First right."),
        ("c", "~First right."),
        ("d", "gull"),
        ("e", "gull"),
    ];
    let (skill, mut world) = (TestSkill::new(), World::new(&lucky, diligent));
    let improved = skill.improve(&mut world, &LoopOptions { rounds: 1, ..options() });
    assert_eq!((improved.best, skill.skill().as_str()), (Some(0), SKILL), "{improved:?}");
    let round = &improved.rounds[0];
    assert!(!round.accepted && round.why.contains("fresh runs do not confirm"), "{round:?}");
    let confirmation = round.confirmation.as_ref().expect("a test");
    assert_eq!((confirmation.number, confirmation.pass_rate), (1, Some(0.4)));
    assert_eq!((improved.baseline_pass_rate, improved.best_pass_rate), (Some(0.4), Some(0.4)));
    let listed = skill.versions.list().expect("listed");
    assert_eq!((listed.best, listed.current_version), (Some(0), Some(0)));
}

/// Tests a stop after the target was reached. Only the analysis is left at that point, and it does not matter.
#[test]
fn who_stops_it_after_the_target_is_reached_has_reached_it() {
    let (skill, mut world) = (TestSkill::new(), World::new(&CASES, diligent));
    world.stopped_at = Some(12);
    let improved = skill.improve(&mut world, &options());
    assert_eq!((improved.stopped, improved.best, improved.applied), (LoopEnd::Target, Some(2), true));
    assert_eq!(world.begun, 12);
    assert!(!skill.versions.folder().join("rounds/2/analysis.json").exists());
}

#[test]
fn what_does_not_help_ends_after_two_flat_rounds_and_leaves_the_skill() {
    fn busy(text: &str) -> Vec<EditSuggestion> {
        let words = text.matches("very ").count();
        vec![edit("Second", &format!("{}Second", "very ".repeat(words + 1)))]
    }
    fn lazy(_: &str) -> Vec<EditSuggestion> {
        Vec::new()
    }
    fn malicious(_: &str) -> Vec<EditSuggestion> {
        vec![edit("the answers", "x"), edit("---\nname: gull\ndescription: Speaks.\n---\n", "")]
    }
    for (propose, tried, refused) in
        [(busy as fn(&str) -> _, true, 0), (lazy, false, 0), (malicious, false, 2)]
    {
        let (skill, mut world) = (TestSkill::new(), World::new(&CASES, propose));
        let improved = skill.improve(&mut world, &options());
        assert_eq!((improved.stopped, improved.best), (LoopEnd::Flat, Some(0)));
        assert_eq!(improved.rounds.len(), 2);
        assert_eq!(improved.rounds[0].version.is_some(), tried);
        assert_eq!(improved.rounds[0].refused.len(), refused);
        assert_eq!(skill.skill(), SKILL);
        assert_eq!(skill.versions.history().expect("one").current_version, 0);
    }
}

#[test]
fn who_learns_the_answers_by_heart_is_not_accepted() {
    let (skill, mut world) =
        (TestSkill::new(), World::new(&[], |_| vec![edit("First wrong.", "First right.")]));
    // The held-out cases get worse. Which cases these are is known, because the split is seeded.
    let all: Vec<TrialRecord> =
        CASES.iter().map(|(case, wanted)| record(case, 1, SKILL.contains(wanted))).collect();
    let split = CaseSplit::from_records(&all, 1);
    world.cases = CASES
        .iter()
        .map(|(case, wanted)| match (split.is_tuning("s", case), SKILL.contains(wanted)) {
            (false, true) => (*case, "!First right."),
            (false, false) => (*case, "what nobody proposes"),
            (true, _) => (*case, *wanted),
        })
        .collect();
    assert!(world.cases.iter().any(|(_, wanted)| wanted.starts_with('!')), "{split:?}");
    let improved = skill.improve(&mut world, &options());
    let why = &improved.rounds[0].why;
    let is_refused = ["held-out", "do not confirm", "does no better"].iter().any(|words| why.contains(words));
    assert!(!improved.rounds[0].accepted && is_refused, "{improved:?}");
    assert_eq!((improved.best, skill.skill().as_str()), (Some(0), SKILL));
    assert_eq!(skill.versions.list().expect("listed").best, Some(0));
}

/// Kills each step once, before its result is written. The next start continues and ends the same.
#[test]
fn a_kill_in_any_step_changes_nothing_in_the_end() {
    let whole = {
        let (skill, mut world) = (TestSkill::new(), World::new(&CASES, diligent));
        let improved = skill.improve(&mut world, &options());
        (world.begun, improved.best, improved.rounds, skill.skill())
    };
    for step in 1..=whole.0 {
        let (skill, mut world) = (TestSkill::new(), World::new(&CASES, diligent));
        world.killed_at = Some(step);
        let killed = skill.improve(&mut world, &options());
        assert_eq!((killed.stopped, killed.failed.as_deref()), (LoopEnd::Failed, Some("killed")));
        world.killed_at = None;
        let improved = skill.improve(&mut world, &options());
        assert_eq!(
            (improved.best, &improved.rounds, &skill.skill()),
            (whole.1, &whole.2, &whole.3),
            "{step}"
        );
        assert_eq!(world.begun, whole.0 + 1, "only the step that was killed is done again");
        let first = world.runs.values().next().expect("a run");
        assert!(matches!(first[0].verdict, Verdict::Pass | Verdict::Fail));
    }
}

/// Tests steps that ask no model, killed between their work and their line in the journal.
#[test]
fn a_step_that_was_done_and_not_written_down_is_done_again_to_the_same_end() {
    let whole = {
        let (skill, mut world) = (TestSkill::new(), World::new(&CASES, diligent));
        let improved = skill.improve(&mut world, &options());
        (world.begun, improved.best, improved.rounds, skill.skill())
    };
    let mut forgotten = std::collections::BTreeSet::new();
    for step in 1..=whole.0 + 1 {
        let (skill, mut world) = (TestSkill::new(), World::new(&CASES, diligent));
        world.killed_at = Some(step);
        skill.improve(&mut world, &options());
        world.killed_at = None;
        let path = skill.versions.folder().join("improve.jsonl");
        let journal = std::fs::read_to_string(&path).expect("a journal");
        // The journal says that a run began before the run is killed.
        let mut lines: Vec<&str> = journal.lines().filter(|line| !line.contains("running")).collect();
        let asks_nobody = |line: &&str| {
            ["baseline", "split", "snapshot", "decide", "finished"].iter().any(|free| line.contains(free))
        };
        while let Some(line) = lines.pop_if(|line| asks_nobody(line)) {
            forgotten.insert(line.chars().filter(|c| c.is_alphabetic()).take(20).collect::<String>());
        }
        let begun = world.begun;
        std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>())
            .expect("write");
        let improved = skill.improve(&mut world, &options());
        assert_eq!(
            (improved.best, &improved.rounds, &skill.skill()),
            (whole.1, &whole.2, &whole.3),
            "{step}"
        );
        assert_eq!(skill.versions.history().expect("one").versions.len(), 3, "{step}");
        assert!(
            world.begun <= begun + whole.0 - (step - 1).min(whole.0),
            "{step}: something was asked twice"
        );
    }
    assert_eq!(forgotten.len(), 5, "{forgotten:?}");
}

#[test]
fn money_and_time_of_a_run_that_was_killed_are_not_forgotten() {
    let (skill, mut world) = (TestSkill::new(), World::new(&CASES, diligent));
    (world.killed_at, world.usd_lost) = (Some(1), 0.3);
    skill.improve(&mut world, &options());
    world.killed_at = None;
    let begun = world.begun;
    let poor = LoopOptions { max_usd: Some(0.25), ..options() };
    let improved = skill.improve(&mut world, &poor);
    assert_eq!((improved.stopped, improved.cost_usd), (LoopEnd::Cost, Some(0.3)));
    let late = LoopOptions { max_seconds: Some(4.0), ..options() };
    assert_eq!(skill.improve(&mut world, &late).stopped, LoopEnd::Time);
    assert_eq!(world.begun, begun, "nothing more is spent");
    let one_round = LoopOptions { rounds: 1, ..options() };
    let improved = skill.improve(&mut world, &one_round);
    let cost = improved.cost_usd.expect("known");
    assert!((cost - 0.7).abs() < 1e-9, "once, beside the four runs that came to their end: {cost}");
}

#[test]
fn limits_end_it_with_the_best_so_far_and_more_lets_it_go_on() {
    let (skill, mut world) = (TestSkill::new(), World::new(&CASES, diligent));
    let one_round = LoopOptions { rounds: 1, ..options() };
    let improved = skill.improve(&mut world, &one_round);
    assert_eq!((improved.stopped, improved.best, improved.applied), (LoopEnd::Rounds, Some(1), true));
    assert!(skill.skill().contains("First right. Second wrong."));
    // The first round took four runs: the baseline, the new version, and fresh runs of both.
    let poor = LoopOptions { max_usd: Some(0.45), ..options() };
    let improved = skill.improve(&mut world, &poor);
    assert_eq!((improved.stopped, improved.best), (LoopEnd::Cost, Some(1)));
    let cost = improved.cost_usd.expect("known");
    assert!((cost - 0.45).abs() < 1e-9, "what was spent on a run that was stopped counts, too: {cost}");
    let begun = world.begun;
    assert_eq!(skill.improve(&mut world, &poor).stopped, LoopEnd::Cost);
    assert_eq!(world.begun, begun, "the same money is not spent again");
    let late = LoopOptions { max_seconds: Some(0.0), ..options() };
    assert_eq!(skill.improve(&mut world, &late).stopped, LoopEnd::Time);
    let begun = world.begun;
    let improved = skill.improve(&mut world, &options());
    assert_eq!((improved.stopped, improved.best), (LoopEnd::Target, Some(2)));
    assert!(world.begun - begun <= 6, "the first round was not done again");
}

#[test]
fn evals_that_everything_passes_show_nothing() {
    let (skill, mut world) = (TestSkill::new(), World::new(&[("a", "gull"), ("b", "gull")], diligent));
    let improved = skill.improve(&mut world, &options());
    assert_eq!((improved.stopped, world.begun), (LoopEnd::TooEasy, 1));
    let forced = LoopOptions { force: true, ..options() };
    assert_eq!(skill.improve(&mut world, &forced).stopped, LoopEnd::Flat);
    assert_eq!(skill.skill(), SKILL);
}

#[test]
fn a_skill_that_the_user_changed_meanwhile_stays_the_users() {
    let (skill, mut world) = (TestSkill::new(), World::new(&CASES, diligent));
    let one_round = LoopOptions { rounds: 1, ..options() };
    skill.improve(&mut world, &one_round);
    let own = skill.skill().replace("Second wrong.", "My own words.");
    std::fs::write(skill.versions.skill().join("SKILL.md"), &own).expect("write");
    let improved = skill.improve(&mut world, &options());
    assert_eq!((improved.best, improved.applied), (Some(2), false));
    assert_eq!(skill.skill(), own);
}

#[test]
fn the_best_version_wins_and_not_the_last() {
    fn clumsy(text: &str) -> Vec<EditSuggestion> {
        match text.contains("First wrong.") {
            true => vec![edit("First wrong.", "First right.")],
            false => {
                vec![edit("Second", &format!("{}Second", "very ".repeat(text.matches("very ").count() + 1)))]
            }
        }
    }
    let (skill, mut world) = (TestSkill::new(), World::new(&CASES, clumsy));
    let improved = skill.improve(&mut world, &options());
    assert_eq!((improved.stopped, improved.best, improved.rounds.len()), (LoopEnd::Flat, Some(1), 3));
    assert!(skill.skill().contains("First right. Second wrong."), "{}", skill.skill());
    assert!(improved.diff.contains("-First wrong. Second wrong.\n+First right. Second wrong.\n"));
    assert_eq!(skill.versions.history().expect("one").current_version, 1);
}

#[test]
fn a_target_ends_the_loop_wherever_it_is_reached() {
    for (target, force, expected) in [
        (0.3, false, (LoopEnd::Target, Some(0), 0)),
        (0.6, false, (LoopEnd::Target, Some(1), 1)),
        (0.6, true, (LoopEnd::Target, Some(1), 1)),
        // The target was reached before, and the user wanted to continue.
        (0.3, true, (LoopEnd::Flat, Some(2), 4)),
    ] {
        let (skill, mut world) = (TestSkill::new(), World::new(&CASES, diligent));
        let improved = skill.improve(&mut world, &LoopOptions { target, force, ..options() });
        assert_eq!((improved.stopped, improved.best, improved.rounds.len()), expected, "{target} {force}");
    }
}

#[test]
fn the_skill_is_what_it_was_until_the_end() {
    let (skill, mut world) = (TestSkill::new(), World::new(&CASES, diligent));
    world.killed_at = Some(4);
    let killed = skill.improve(&mut world, &options());
    assert_eq!((killed.best, skill.versions.history().expect("one").versions.len()), (Some(0), 2));
    assert_eq!(skill.versions.history().expect("one").current_version, 0);
    assert_eq!(skill.skill(), SKILL);
}

#[test]
fn a_version_that_could_not_be_tested_is_tested_again() {
    // The first step runs the baseline, the third step runs the first candidate.
    for step in [1, 3] {
        let (skill, mut world) = (TestSkill::new(), World::new(&CASES, diligent));
        if step > 1 {
            world.killed_at = Some(step);
            skill.improve(&mut world, &options());
            world.killed_at = None;
        }
        world.mute = true;
        let improved = skill.improve(&mut world, &options());
        assert_eq!(improved.stopped, LoopEnd::Failed, "{improved:?}");
        assert!(improved.failed.is_some_and(|why| why.contains("gave an answer")));
        world.mute = false;
        let improved = skill.improve(&mut world, &options());
        assert_eq!((improved.stopped, improved.best), (LoopEnd::Target, Some(2)));
    }
}

/// Tests that refused suggestions of an analysis are reported. If none can be applied, the next round asks for
/// proposals.
#[test]
fn what_an_analysis_suggests_in_vain_is_reported() {
    fn first_then_vain(text: &str) -> Vec<EditSuggestion> {
        match text.contains("First wrong.") {
            true => vec![edit("First wrong.", "First right.")],
            false => vec![edit("nowhere to be found", "x")],
        }
    }
    let (skill, mut world) = (TestSkill::new(), World::new(&CASES, first_then_vain));
    let improved = skill.improve(&mut world, &options());
    assert_eq!((improved.stopped, improved.best), (LoopEnd::Flat, Some(1)));
    assert_eq!(improved.rounds[1].refused.len(), 2, "of the analysis, and of the proposer after it");
    assert_eq!(
        world.notices.iter().filter(|line| line.contains("not in the skill")).count(),
        3,
        "{:?}",
        world.notices
    );
}
