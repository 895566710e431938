//! Imports the log of a run into the index. A log only grows, so the index stores how many bytes of it are
//! imported and continues from there.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use serde::Deserialize;

use super::IndexError;
use super::searchable_text::searchable_text;
use crate::store::is_damaged;
use practicum_core::model::{
    ActivationExpectation, ActivationOutcome, CaseSample, CaseSummary, Summary, TrialRecord, Verdict,
};
use practicum_core::tree::open_regular;

/// The number of trials that are written at once: few enough that other writers need not wait long.
const BATCH: u64 = 2000;

/// The longest line that is read. A longer line is not a record of this program and is skipped.
const LONGEST_LINE: u64 = 64 * 1024 * 1024;

/// Imports the new part of a run's log. Gives the number of new trials.
pub fn import_log(db: &mut Connection, run: &Path, id: &str) -> Result<u64, IndexError> {
    let mut total = 0;
    loop {
        let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let batch = ImportBatch::begin(&change, run, id)?.import()?;
        change.commit()?;
        total += batch.trials;
        if batch.trials < BATCH {
            return Ok(total);
        }
    }
}

/// Removes a run from the index.
pub fn remove_run(db: &mut Connection, id: &str) -> Result<(), IndexError> {
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    remove_run_rows(&change, id)?;
    Ok(change.commit()?)
}

fn remove_run_rows(change: &Transaction<'_>, id: &str) -> rusqlite::Result<()> {
    let trials = "SELECT trials.n FROM trials JOIN runs ON runs.n = trials.run WHERE runs.id = ?1";
    change.execute(&format!("DELETE FROM said WHERE rowid IN ({trials})"), [id])?;
    change.execute("DELETE FROM runs WHERE id = ?1", [id])?;
    Ok(())
}

struct BatchResult {
    trials: u64,
}

/// A part of a log that is imported in one transaction.
struct ImportBatch<'b> {
    transaction: &'b Transaction<'b>,
    run: &'b Path,
    id: &'b str,
    run_number: i64,
    bytes: u64,
}

/// The part of run.json that is read. The list of trials may be long and is skipped.
#[derive(Default, Deserialize)]
struct RunHeader {
    #[serde(default)]
    started: String,
    #[serde(default)]
    scripted: bool,
    #[serde(default)]
    replayed: bool,
    #[serde(default)]
    earlier_skill: Option<String>,
    #[serde(default)]
    not_in_history: Option<String>,
    #[serde(default)]
    sample: Option<CaseSample>,
}

impl<'b> ImportBatch<'b> {
    /// Finds the position at which to continue. This happens within the transaction, because another process may
    /// have imported more.
    fn begin(change: &'b Transaction<'b>, run: &'b Path, id: &'b str) -> Result<Self, IndexError> {
        let known = change
            .query_row("SELECT n, log_bytes FROM runs WHERE id = ?1", [id], |row| {
                Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
            })
            .optional()?;
        let length = std::fs::metadata(run.join("events.jsonl")).map_or(0, |file| file.len());
        if let Some((n, bytes)) = known {
            if bytes <= length {
                return Ok(Self { transaction: change, run, id, run_number: n, bytes });
            }
            // A log that became shorter is another log.
            remove_run_rows(change, id)?;
        }
        let asked: RunHeader = open_regular(run.join("run.json"))
            .ok()
            .and_then(|file| serde_json::from_reader(BufReader::new(file)).ok())
            .unwrap_or_default();
        let RunHeader { started, scripted, replayed, earlier_skill, not_in_history, sample } = asked;
        let sample = sample.map(|sample| sample.describe());
        change.execute(
            "INSERT INTO runs (id, started, scripted, replayed, earlier_skill, not_in_history, sample)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![id, started, scripted, replayed, earlier_skill, not_in_history, sample],
        )?;
        Ok(Self { transaction: change, run, id, run_number: change.last_insert_rowid(), bytes: 0 })
    }

    fn import(mut self) -> Result<BatchResult, IndexError> {
        let unreadable = |error| IndexError::Log { run: self.id.to_owned(), error };
        let mut done = BatchResult { trials: 0 };
        let mut file = match open_regular(self.run.join("events.jsonl")) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(done),
            Err(error) => return Err(unreadable(error)),
        };
        file.seek(SeekFrom::Start(self.bytes)).map_err(unreadable)?;
        let mut log = BufReader::new(file);
        let mut line = Vec::new();
        while done.trials < BATCH {
            line.clear();
            let read =
                log.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(unreadable)? as u64;
            let whole = line.ends_with(b"\n");
            if !whole && read < LONGEST_LINE {
                break;
            }
            self.bytes += read;
            if whole {
                done.trials += u64::from(self.import_line(&line)?);
            }
        }
        self.transaction.execute(
            "UPDATE runs SET log_bytes = ?2 WHERE n = ?1",
            params![self.run_number, i64::try_from(self.bytes).unwrap_or(i64::MAX)],
        )?;
        Ok(done)
    }

    /// Imports one event, and says whether it was a finished trial. An invalid line is skipped: a kill may have
    /// cut it short.
    fn import_line(&self, line: &[u8]) -> rusqlite::Result<bool> {
        match event_name(line).filter(|_| !is_damaged(line)) {
            Some("trial_finished") => {
                #[derive(Deserialize)]
                struct RunFinishedEvent {
                    record: TrialRecord,
                }
                let Ok(RunFinishedEvent { record }) = serde_json::from_slice(line) else { return Ok(false) };
                self.add_case(&record.suite, &record.case)?;
                self.import_trial(&record)?;
                Ok(true)
            }
            Some("trial_started") => {
                #[derive(Deserialize)]
                struct TrialStartedEvent {
                    suite: String,
                    case: String,
                }
                if let Ok(TrialStartedEvent { suite, case }) = serde_json::from_slice(line) {
                    self.add_case(&suite, &case)?;
                }
                Ok(false)
            }
            Some("run_started") => {
                #[derive(Deserialize)]
                struct RunStartedEvent {
                    at: String,
                    trials: i64,
                }
                if let Ok(RunStartedEvent { at, trials }) = serde_json::from_slice(line) {
                    // A run that was resumed has no end yet.
                    self.transaction.execute(
                        "UPDATE runs SET started = iif(started = '', ?2, started), planned = ?3, exit = NULL
                         WHERE n = ?1",
                        params![self.run_number, at, trials],
                    )?;
                }
                Ok(false)
            }
            Some("run_finished") => {
                self.import_summary(line)?;
                Ok(false)
            }
            Some(_) | None => Ok(false),
        }
    }

    /// Gives a case the next place in its suite. Trials start in the order of the plan, in whatever order they
    /// end.
    fn add_case(&self, suite: &str, case: &str) -> rusqlite::Result<()> {
        self.transaction
            .prepare_cached(
                "INSERT OR IGNORE INTO cases (run, suite, case_id, place)
                 SELECT ?1, ?2, ?3, ifnull(max(place), 0) + 1 FROM cases WHERE run = ?1 AND suite = ?2",
            )?
            .execute(params![self.run_number, suite, case])?;
        Ok(())
    }

    fn import_summary(&self, line: &[u8]) -> rusqlite::Result<()> {
        #[derive(Deserialize)]
        struct RunFinishedEvent {
            summary: Summary,
        }
        let Ok(RunFinishedEvent { summary }) = serde_json::from_slice(line) else { return Ok(()) };
        let ungated = summary.lacks_gate();
        let examined =
            if summary.is_baseline() { summary.totals_compared_with() } else { summary.totals_under_test() };
        let Summary { exit, totals, cost_usd, seconds, cases, .. } = summary;
        self.import_case_decisions(&cases)?;
        self.transaction.execute(
            "UPDATE runs SET exit = ?2, cost_usd = ?3, seconds = ?4, trials = ?5, passed = ?6, failed = ?7,
                 examined = ?8, examined_passed = ?9, examined_failed = ?10, ungated = ?11
             WHERE n = ?1",
            params![
                self.run_number,
                u8::from(exit),
                cost_usd,
                seconds,
                to_sql_integer(totals.trials),
                to_sql_integer(totals.passed),
                to_sql_integer(totals.failed),
                to_sql_integer(examined.trials),
                to_sql_integer(examined.passed),
                to_sql_integer(examined.failed),
                ungated,
            ],
        )?;
        Ok(())
    }

    /// Imports the decisions on cases that are decided by a rate, which no single trial shows.
    fn import_case_decisions(&self, cases: &[CaseSummary]) -> rusqlite::Result<()> {
        self.transaction.execute("DELETE FROM decided WHERE run = ?1", [self.run_number])?;
        let mut insert = self.transaction.prepare_cached(
            "INSERT INTO decided (run, suite, case_id, agent, model, arm, mode, passes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        for (case, rate) in cases.iter().filter_map(|case| Some((case, case.deciding_rate()?))) {
            let CaseSummary { suite, id, agent, model, arm, mode, .. } = case;
            insert.execute(params![self.run_number, suite, id, agent, model, arm, mode, rate.passes])?;
        }
        Ok(())
    }

    fn import_trial(&self, record: &TrialRecord) -> rusqlite::Result<()> {
        let id = record.trial.as_str();
        let before: Option<i64> = self
            .transaction
            .prepare_cached("DELETE FROM trials WHERE run = ?1 AND id = ?2 RETURNING n")?
            .query_row(params![self.run_number, id], |row| row.get(0))
            .optional()?;
        if let Some(before) = before {
            self.transaction.execute("DELETE FROM said WHERE rowid = ?1", [before])?;
        }
        let why = record.not_scored_reason();
        let judged = || record.checks.iter().filter(|check| check.scale.is_some());
        let is_scored = |verdict: &Verdict| !matches!(verdict, Verdict::NotScored(_));
        let shares: Vec<f64> = judged().filter_map(|check| check.normalised_score()).collect();
        let usage = record.usage;
        let mut insert = self.transaction.prepare_cached(
            "INSERT INTO trials (run, id, suite, case_id, agent, model, arm, mode, attempt, verdict, why, ended,
                 expect, fired, outcome, cost_usd, seconds, tokens, reused, criteria, criteria_passed, shares, share_sum,
                 setup)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
                 ?21, ?22, ?23, ?24)",
        )?;
        insert.execute(params![
            self.run_number,
            id,
            record.suite,
            record.case,
            record.condition.agent,
            record.condition.model,
            record.condition.arm.name(),
            record.condition.mode.name(),
            record.attempt,
            verdict_value(&record.verdict),
            why,
            record.ended.name(),
            record.expect.map(ActivationExpectation::name),
            record.was_activated(),
            record.activation_outcome().map(ActivationOutcome::name),
            record.cost_usd,
            record.seconds,
            to_sql_integer(usage.input.saturating_add(usage.output)),
            record.reused_from.is_some(),
            to_sql_integer(judged().filter(|check| is_scored(&check.verdict)).count() as u64),
            to_sql_integer(judged().filter(|check| check.verdict == Verdict::Pass).count() as u64),
            to_sql_integer(shares.len() as u64),
            shares.iter().sum::<f64>(),
            record.repeats.as_ref().map(|repeats| repeats.setup.as_str()),
        ])?;
        let n = self.transaction.last_insert_rowid();
        let mut insert = self.transaction.prepare_cached(
            "INSERT OR REPLACE INTO checks (trial, id, required, judged, verdict, score)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        for check in &record.checks {
            let verdict = verdict_value(&check.verdict);
            insert.execute(params![
                n,
                check.check,
                check.required,
                check.scale.is_some(),
                verdict,
                check.score
            ])?;
        }
        let said = searchable_text(&self.run.join("trials").join(id));
        self.transaction
            .prepare_cached("INSERT INTO said (rowid, case_id, output) VALUES (?1, ?2, ?3)")?
            .execute(params![n, record.case, said])?;
        Ok(())
    }
}

/// Gives the event's name. It is the first key, so that most lines need no parsing.
fn event_name(line: &[u8]) -> Option<&str> {
    let rest = line.strip_prefix(br#"{"event":""#)?;
    let end = rest.iter().take(32).position(|byte| *byte == b'"')?;
    std::str::from_utf8(&rest[..end]).ok()
}

fn verdict_value(verdict: &Verdict) -> Option<bool> {
    match verdict {
        Verdict::Pass => Some(true),
        Verdict::Fail => Some(false),
        Verdict::NotScored(_) => None,
    }
}

fn to_sql_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
