//! From what is to be carried out to what came of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, anyhow, bail};

use super::changed_evals::refuse_changed_evals;
use super::info::{info, keep_graded_skills};
use super::shown::{progress, show_estimate, show_plan};
use super::trust::trust;
use super::trusted_code::{refuse_changed_code, trusted_code};
use super::{Carrying, Errand, Held};
use crate::agents::Login;
use crate::cli::{interrupts, runtime, setting, sweep_up};
use crate::dialects;
use crate::event::{Sink, Sinks};
use crate::intake;
use crate::key::Keys;
use crate::model::{Base, SandboxMode, Suite};
use crate::own_files::{self, ContentKind, EvalTexts, OwnFiles};
use crate::pipeline::{Exam, Prior, Retry, Stop, examine};
use crate::plan::{Plan, Planned};
use crate::report::safe;
use crate::run::Memory;
use crate::settings::{JOBS, JUDGE_JOBS, PROBE, RETRIES, RETRY_WAIT, SANDBOX};
use crate::stage::{Hidden, Rooms};
use crate::store::{Cache, IndexSink, Live, RunDir, RunInfo, Scrubber, read_noise};
use crate::web::Web;

impl Carrying {
    /// Carries it out. `None` if nothing was to be run.
    pub fn hold(&self, mut errand: Errand) -> anyhow::Result<Option<Held>> {
        self.gates.apply(&mut errand.plan.suites);
        if let Some(run) = &errand.resumed {
            refuse_changed_evals(run, &errand.plan)?;
            if self.trusted_before {
                refuse_changed_code(run, &errand.plan)?;
            }
        }
        let walls = setting(&errand.layers, &SANDBOX)?;
        let hidden = errand.hidden();
        let mut prior = self.prior(&errand, walls, &hidden);
        let mut left_out = left_out(&hidden, &errand.project);
        left_out.extend(errand.left_out_folders());
        if !self.quiet {
            left_out.iter().for_each(|note| say!("note: {}", safe(note)));
        }
        errand.notices.extend(left_out);
        let scrubber = errand.scrubber();
        let shared = self.asking().shared(&errand.layers, &errand.project, &scrubber)?;
        let jobs = setting(&errand.layers, &JOBS)?;
        let probes = errand.probes(&mut prior)?;
        let retry =
            Retry { times: setting(&errand.layers, &RETRIES)?, wait: setting(&errand.layers, &RETRY_WAIT)? };
        let judge_jobs = setting(&errand.layers, &JUDGE_JOBS)?;
        if !self.quiet || self.dry_run {
            show_plan(&errand.plan, prior.count(), probes.trials.len());
            show_estimate(&errand.plan, &probes, &prior, &errand.project, jobs);
        }
        if self.dry_run {
            return Ok(None);
        }
        let trusted = trust(&errand.plan, self.trust)?;
        let noise = match self.count_flaky {
            true => None,
            false => read_noise(&errand.project).map_err(|why| anyhow!(why))?,
        };
        let id = errand.run_id(self.id.as_deref());
        let rooms = Rooms::place(&id);
        // Before there is a record: a run that may not begin leaves none.
        let out_of_sight = [rooms.clone(), errand.project.clone()];
        let sandbox = intake::sandbox(walls, &errand.environment, &errand.plan, out_of_sight)?;
        errand.notices.extend(sandbox.notice().map(str::to_owned));
        let runtime = runtime().context("cannot start")?;
        let means = intake::means(&errand.plan.suites, &errand.ask, &errand.environment, &shared);
        let suites = runtime.block_on(means)?;
        if !errand.ask.no_judge {
            let plan = &errand.plan;
            let to_run = plan.trials.iter().enumerate().filter(|(index, trial)| {
                !prior.known.contains_key(index) && plan.why_not_started(trial).is_none()
            });
            let cases = to_run.map(|(_, trial)| (trial.suite, plan.case(trial).1));
            intake::need_judges(cases, &plan.suites, &suites)?;
        }
        let run_dir = errand.open_run(id, self)?;
        own_files::remember_beginning();
        Live::mark(run_dir.path(), &rooms).context("cannot mark the run")?;
        let rooms = Rooms::make(rooms).context("cannot make rooms")?;
        let mut sinks: Vec<Box<dyn Sink>> = vec![Box::new(run_dir.log(scrubber.clone())?)];
        sinks.push(Box::new(IndexSink::new(&errand.project, &run_dir)));
        sinks.extend(progress(self.quiet, errand.plan.suites.len(), &errand.environment));
        let Errand { plan, agents, environment, .. } = errand;
        let summary = runtime.block_on(async {
            let exam = Exam {
                suites,
                plan,
                probes,
                agents,
                user_env: environment,
                hidden,
                sandbox,
                rooms: rooms.path().to_owned(),
                keep_workspaces: self.keep_workspaces,
                trusted,
                plugin_code: self.trust,
                web: self.allow_network.then(|| Web::on(tokio::runtime::Handle::current())),
                jobs,
                judge_jobs,
                memory: Memory::default(),
                run_dir: run_dir.clone(),
                scrubber,
                ledger: Arc::clone(&shared.ledger),
                stop: stopped_by(self.until),
                prior,
                pass_env: self.env.clone(),
                fail_fast: self.fail_fast,
                retry,
                allow_unscored: self.allow_unscored,
                noise,
                stop_early: self.stop_early,
            };
            examine(exam, Sinks::new(sinks)).await
        })?;
        Live::clear(run_dir.path());
        if self.keep_workspaces {
            say!("workspaces kept in {}", rooms.keep().display());
        }
        Ok(Some(Held { summary, run_dir }))
    }

    /// What need not run.
    fn prior(&self, errand: &Errand, walls: SandboxMode, hidden: &Hidden) -> Prior {
        let Errand { plan, agents, environment, ask, project, resumed, .. } = errand;
        let keys = Keys::new(plan, agents, environment, walls, &self.env, self.allow_network, hidden);
        let mut keys = keys.with_plugin_code(self.trust).with_judge(!ask.no_judge);
        let keys = plan.trials.iter().map(|trial| keys.of(trial)).collect();
        // A cassette is made, and played, by what is asked now.
        let taped = ask.record.is_some() || ask.replay.is_some();
        let cache = (!taped).then(|| Cache::of(project));
        Prior::look_up(plan, keys, resumed.as_ref(), cache, !self.no_cache)
    }
}

/// Of more files than this only the number is told.
const MOST_NAMED: usize = 5;

/// What is not staged because of what it holds, and what is staged though it holds evals, in words.
fn left_out(hidden: &Hidden, project: &Path) -> Vec<String> {
    let [written, evals, results] =
        [ContentKind::Written, ContentKind::Evals, ContentKind::Results].map(|kind| hidden.left_out(kind));
    let named = |paths: &[PathBuf]| {
        let names = paths
            .iter()
            .take(MOST_NAMED)
            .map(|path| path.strip_prefix(project).unwrap_or(path).display().to_string());
        let names = names.collect::<Vec<String>>().join(", ");
        match paths.len().saturating_sub(MOST_NAMED) {
            0 => names,
            more => format!("{names} and {more} more"),
        }
    };
    let (credentials, given) = (hidden.credentials(), hidden.given_evals());
    let told = [
        (&credentials, "file or folder of credentials is not", "files or folders of credentials are not"),
        (&written, "file that practicum wrote is not", "files that practicum wrote are not"),
        (&evals, "eval file beside those of this run is not", "eval files beside those of this run are not"),
        (&results, "file with results of evals is not", "files with results of evals are not"),
        (
            &given,
            "eval file in a folder that a case gives to agents is",
            "eval files in folders that cases give to agents are",
        ),
    ];
    let some = told.into_iter().filter(|(paths, ..)| !paths.is_empty());
    some.map(|(paths, one, many)| {
        let what = if paths.len() == 1 { one } else { many };
        format!("{} {what} staged: {}", paths.len(), named(paths))
    })
    .collect()
}

impl Errand {
    /// The probes to run. Without probes, stored ones count neither.
    fn probes(&self, prior: &mut Prior) -> anyhow::Result<Plan> {
        if setting(&self.layers, &PROBE)? {
            return Ok(intake::probes(&self.plan, prior, &self.ask)?);
        }
        prior.probes.clear();
        Ok(Plan::default())
    }

    /// Knows the secrets of the environment and of the logins that agents are given.
    fn scrubber(&self) -> Scrubber {
        let logins = self.agents.values().filter_map(|agent| agent.credentials.login(&self.environment));
        logins.fold(Scrubber::new(&self.environment), |scrubber, login| match login {
            Login::Variable(_) => scrubber,
            Login::File(path) => scrubber.and_in(&path),
        })
    }

    /// Its own, where it is gone on with, or one that was decided before.
    fn run_id(&self, decided: Option<&str>) -> String {
        match self.resumed.as_ref().map(RunDir::id).or(decided) {
            Some(id) => id.to_owned(),
            None => RunDir::new_id(jiff::Timestamp::now()),
        }
    }

    /// A new record, or that of the run that is gone on with, cleared of what it left behind.
    fn open_run(&self, id: String, carrying: &Carrying) -> anyhow::Result<RunDir> {
        if let Some(run) = &self.resumed {
            if Live::read(run.path()).is_some_and(|live| live.is_running()) {
                bail!("run {} is still going on", run.id());
            }
            sweep_up(run);
            if carrying.trust && !carrying.trusted_before {
                let info = run.info().map_err(|why| anyhow!(why))?;
                run.write_info(&RunInfo { trusted_code: Some(trusted_code(&self.plan)), ..info })?;
            }
            return Ok(run.clone());
        }
        let run = RunDir::create(&self.project, id)?;
        let scripted = self.plan.suites.iter().any(|suite| suite.script.is_some());
        let replayed = self.ask.replay.is_some();
        let Carrying { earlier_skill, not_in_history, .. } = carrying.clone();
        let info = info(&self.plan, &run, scripted, self.notices.clone());
        keep_graded_skills(&self.plan, &info, &run);
        let gates = carrying.gates.asked().to_vec();
        let trusted_code = carrying.trust.then(|| trusted_code(&self.plan));
        run.write_info(&RunInfo {
            replayed,
            earlier_skill,
            not_in_history,
            gates,
            trusted_code,
            count_flaky: carrying.count_flaky,
            ..info
        })?;
        Ok(run)
    }

    /// The evals and all that tells of their answers, reports of earlier runs too.
    fn hidden(&self) -> Hidden {
        let suites = self.plan.suites.iter().flat_map(|planned| {
            let scripts = [&planned.suite.run.script, &planned.script].into_iter().flatten();
            std::iter::once(&planned.suite.origin.path).chain(scripts).cloned()
        });
        let given = [&self.ask.script, &self.ask.record, &self.ask.replay].into_iter().flatten();
        let skills = self.plan.suites.iter().flat_map(|planned| {
            let skills = planned.suite.skills.iter().chain(&planned.suite.rivals);
            skills.filter_map(|skill| skill.path.as_deref())
        });
        let projects = self.plan.suites.iter().map(|planned| planned.project.as_path());
        let folders = self.folders_of_evals();
        let own = OwnFiles::around(projects.chain(skills).chain([self.project.as_path()]));
        let evals = EvalTexts::of(self.plan.suites.iter().map(|planned| &planned.suite));
        let own = own.and_copies_of(evals);
        Hidden::new(suites.chain(folders).chain(given.filter_map(absolute))).and_own(own)
    }

    /// The folders that belong to the evals, with their fixtures and notes: the one that `--evals` names, and those
    /// of the eval files whose format has a folder for its evals. None in which the project or a skill lies.
    fn folders_of_evals(&self) -> Vec<PathBuf> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let suites = || self.plan.suites.iter();
        let owns_folder = |suite: &&Suite| {
            dialects::dialect(&suite.origin.dialect).is_some_and(dialects::Dialect::owns_folder)
        };
        let of_files = suites().map(|planned| &planned.suite).filter(owns_folder);
        let of_files = of_files.filter_map(|suite| suite.origin.path.parent());
        let given = self.ask.evals.as_deref().filter(|evals| evals.is_dir());
        let folders: BTreeSet<PathBuf> = given.into_iter().chain(of_files).map(real).collect();
        let skills = suites().flat_map(|planned| planned.suite.skills.iter().chain(&planned.suite.rivals));
        let projects = suites().map(|planned| planned.project.as_path());
        let roots = skills.filter_map(|skill| skill.path.as_deref()).chain(projects);
        let roots: Vec<PathBuf> = roots.map(real).collect();
        let is_own = |folder: &PathBuf| !roots.iter().any(|root| root.starts_with(folder));
        folders.into_iter().filter(is_own).collect()
    }

    /// The folders of evals that are left out of the copies of the project, in words. Folders that are called
    /// `evals`, and what lies in them, are named with what else is not copied.
    fn left_out_folders(&self) -> Vec<String> {
        let gets_project =
            |planned: &&Planned| planned.suite.cases.iter().any(|case| case.room.base == Base::Project);
        let projects: Vec<&Path> =
            self.plan.suites.iter().filter(gets_project).map(|planned| planned.project.as_path()).collect();
        let told = |folder: PathBuf| {
            let below = projects.iter().find_map(|project| {
                let real = project.canonicalize().ok()?;
                folder.strip_prefix(real).ok().map(Path::to_owned)
            })?;
            let is_told = below.components().any(|part| part.as_os_str() == "evals");
            (!is_told)
                .then(|| format!("the folder {} belongs to the evals and is not staged", below.display()))
        };
        self.folders_of_evals().into_iter().filter_map(told).collect()
    }
}

fn absolute(path: &PathBuf) -> Option<PathBuf> {
    std::path::absolute(path).ok()
}

/// A run that an interrupt ends, and that moment if there is one.
fn stopped_by(until: Option<Instant>) -> Stop {
    let stop = Stop::default();
    tokio::spawn(interrupts::heed(stop.clone()));
    if let Some(until) = until {
        let stop = stop.clone();
        tokio::spawn(async move {
            tokio::time::sleep_until(until.into()).await;
            stop.after_running();
        });
    }
    stop
}
