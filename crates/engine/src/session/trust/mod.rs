//! What in a project takes effect only if the user trusts it.
//!
//! In: a plan, the settings and the user's list of what they trust. Out: what may take effect in this run. Never: asks
//! or prints; an observer does.

mod agent_files;
mod items;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{RunObserver, SessionError};
use crate::plan::Plan;
use crate::plan::settings::SettingLayers;
use agent_files::agent_files_in;
use items::{items_of_plan, plugin_item, project_file_item, weakening_items};
use practicum_core::model::{Digest, WorkspaceBase};
pub use store::TrustStore;

/// The variable that trusts kinds of items for one run, for CI.
pub const TRUST_VARIABLE: &str = "PRACTICUM_TRUST";

/// A kind of items that need trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrustKind {
    /// Agents' commands, a weaker sandbox and higher limits in the project's settings.
    Settings,
    /// Setup, teardown and command checks of eval files.
    Scripts,
    /// Hooks and servers of plugins.
    Plugins,
    /// Files of the project that make an agent start programs.
    AgentFiles,
}

impl TrustKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Settings, Self::Scripts, Self::Plugins, Self::AgentFiles];

    /// Gives the name of the kind, as in [`TRUST_VARIABLE`].
    pub fn name(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Scripts => "scripts",
            Self::Plugins => "plugins",
            Self::AgentFiles => "agent-files",
        }
    }
}

/// Something in a project that takes effect only if the user trusts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustItem {
    /// What kind of thing it is.
    pub kind: TrustKind,
    /// What it is and where, in a few words.
    pub what: String,
    /// The content that the user should read.
    pub text: String,
    /// Whether the run would test something else without it. Anything else is ignored if it is not trusted.
    pub is_required: bool,
    /// The digest of the content, and of the files that it names. Trust holds only for this content.
    pub digest: Digest,
}

impl TrustItem {
    fn new(
        kind: TrustKind,
        what: String,
        text: String,
        is_required: bool,
        files: &BTreeMap<PathBuf, Digest>,
    ) -> Self {
        let names = files.iter().map(|(path, digest)| format!("{} {digest}", path.display()));
        let parts: Vec<String> = [kind.name().to_owned(), text.clone()].into_iter().chain(names).collect();
        let digest = Digest::of_parts(parts.iter().map(String::as_bytes));
        Self { kind, what, text, is_required, digest }
    }
}

/// What a user is asked: whether they trust some items of a project.
pub struct TrustRequest<'r> {
    /// The project.
    pub project: &'r Path,
    /// The items that the user does not trust yet.
    pub items: &'r [TrustItem],
    /// The number of selected cases without scripts, which could run alone.
    pub cases_without: usize,
}

impl TrustRequest<'_> {
    /// Says whether a part of the cases can run without trust: nothing but scripts of the other cases is required.
    pub fn can_skip_cases(&self) -> bool {
        let required = self.items.iter().filter(|item| item.is_required);
        self.cases_without > 0 && required.into_iter().all(|item| item.kind == TrustKind::Scripts)
    }

    /// Says why nothing runs without trust; `None` if all items can be ignored.
    pub fn refusal(&self) -> Option<String> {
        let scripts = self.items.iter().filter(|item| item.kind == TrustKind::Scripts).count();
        let others = self.items.iter().filter(|item| item.is_required && item.kind != TrustKind::Scripts);
        let others: Vec<&str> = others.map(|item| item.what.as_str()).collect();
        if !others.is_empty() {
            let scripts =
                if scripts > 0 { format!(" and {}", count_scripts(scripts)) } else { String::new() };
            return Some(format!(
                "the project is not trusted, and would run {}{scripts}; practicum trust shows what it would do and \
                 trusts it, --trust trusts it for this run",
                others.join(", ")
            ));
        }
        (scripts > 0).then(|| {
            format!(
                "the evals hold {} that would run on this machine; read what they do, then say --trust",
                count_scripts(scripts)
            )
        })
    }
}

fn count_scripts(count: usize) -> String {
    practicum_core::model::count_with_noun(count, "script")
}

/// The user's decision about the items of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustAnswer {
    /// The items are trusted from now on, as they are.
    Remember,
    /// The items are trusted for this run.
    Once,
    /// Only cases without scripts are run; the others stay unscored. Other items are ignored.
    SkipCases,
    /// The items are ignored. Only possible if none is required.
    Ignore,
}

/// What may take effect in a run.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TrustDecision {
    /// Whether scripts of eval files may run.
    pub scripts: bool,
    /// Whether hooks and servers of plugins are staged.
    pub plugin_code: bool,
    /// Whether a weaker sandbox and higher limits in the project's settings apply.
    pub weaker_settings: bool,
    /// Files of projects that agents do not get, because they are not trusted.
    pub hidden: Vec<PathBuf>,
    /// A sentence about what is ignored.
    pub notice: Option<String>,
}

/// The trust of the user in one project.
#[derive(Debug, Clone)]
pub struct ProjectTrust {
    project: PathBuf,
    store: Option<TrustStore>,
    kinds: BTreeSet<TrustKind>,
}

impl ProjectTrust {
    /// Reads what the user trusts in a project. `all` trusts everything for this run.
    pub fn read(
        project: &Path,
        environment: &BTreeMap<String, String>,
        all: bool,
    ) -> Result<Self, SessionError> {
        let words = environment.get(TRUST_VARIABLE).map(String::as_str).unwrap_or_default();
        let mut kinds = trusted_kinds(words).map_err(SessionError::Refused)?;
        if all {
            kinds.extend(TrustKind::ALL);
        }
        let store = TrustStore::read(environment).map_err(SessionError::Refused)?;
        Ok(Self { project: project.to_owned(), store, kinds })
    }

    /// Says whether an item is trusted.
    pub fn has(&self, item: &TrustItem) -> bool {
        self.kinds.contains(&item.kind)
            || self.store.as_ref().is_some_and(|store| store.has(&self.project, item))
    }

    /// Says whether the code of a plugin is trusted.
    pub fn has_plugin(&self, root: &Path) -> bool {
        plugin_item(root).is_none_or(|item| self.has(&item))
    }

    /// Leaves out a sandbox and limits of the project that are weaker and not trusted, where only the settings are
    /// shown. Gives a notice.
    pub fn restrict_settings(&self, layers: &mut SettingLayers) -> Option<String> {
        let mut items = weakening_items(layers);
        items.retain(|item| !self.has(item));
        if items.is_empty() {
            return None;
        }
        layers.ignore_weakened_settings();
        Some(ignored_notice(&items))
    }

    /// Gives the items of a plan, each with whether it is trusted.
    pub fn items(&self, plan: &Plan, layers: &SettingLayers) -> Vec<(TrustItem, bool)> {
        let items = items_of_plan(plan, layers, &self.project);
        items.into_iter().map(|item| (item.clone(), self.has(&item))).collect()
    }

    /// Decides what may take effect in a run of a plan, and asks the observer where the user has not decided yet. A plan
    /// that is only shown asks nothing.
    pub fn decide(
        mut self,
        plan: &Plan,
        layers: &SettingLayers,
        only_shown: bool,
        observer: &mut dyn RunObserver,
    ) -> Result<TrustDecision, SessionError> {
        let open = self.items(plan, layers).into_iter().filter(|(_, trusted)| !trusted);
        let open: Vec<TrustItem> = open.map(|(item, _)| item).collect();
        let answer = match open.is_empty() || only_shown {
            true => TrustAnswer::Ignore,
            false => {
                let cases_without = cases_without_scripts(plan);
                observer.approve(&TrustRequest { project: &self.project, items: &open, cases_without })?
            }
        };
        match answer {
            TrustAnswer::Remember => {
                if let Some(store) = &mut self.store {
                    store.add(&self.project, &open).map_err(SessionError::Refused)?;
                }
                Ok(allow_except(&[], plan))
            }
            TrustAnswer::Once => Ok(allow_except(&[], plan)),
            TrustAnswer::SkipCases | TrustAnswer::Ignore => Ok(allow_except(&open, plan)),
        }
    }
}

/// Makes the decision that allows everything but some items.
fn allow_except(open: &[TrustItem], plan: &Plan) -> TrustDecision {
    let has_none = |kind: TrustKind| open.iter().all(|item| item.kind != kind);
    let weaker_settings = open.iter().all(|item| item.kind != TrustKind::Settings || item.is_required);
    let ignored: Vec<TrustItem> = open.iter().filter(|item| !item.is_required).cloned().collect();
    TrustDecision {
        scripts: has_none(TrustKind::Scripts),
        plugin_code: has_none(TrustKind::Plugins),
        weaker_settings,
        hidden: hidden_agent_files(&ignored, plan),
        notice: (!ignored.is_empty()).then(|| ignored_notice(&ignored)),
    }
}

/// Gives the files of the projects of a plan that are among these items.
fn hidden_agent_files(ignored: &[TrustItem], plan: &Plan) -> Vec<PathBuf> {
    let gets_project = |case: &practicum_core::model::Case| case.workspace.base == WorkspaceBase::Project;
    let suites = plan.suites.iter().filter(|planned| planned.suite.cases.iter().any(gets_project));
    let projects: BTreeSet<&PathBuf> = suites.map(|planned| &planned.project).collect();
    let files = projects.into_iter().flat_map(|project| agent_files_in(project));
    let is_ignored = |item: TrustItem| ignored.iter().any(|open| open.digest == item.digest);
    files.filter(|file| is_ignored(project_file_item(file))).map(|file| file.path).collect()
}

fn ignored_notice(items: &[TrustItem]) -> String {
    let names: Vec<&str> = items.iter().map(|item| item.what.as_str()).collect();
    format!(
        "ignored, because the project is not trusted: {}; practicum trust shows and trusts it",
        names.join(", ")
    )
}

fn cases_without_scripts(plan: &Plan) -> usize {
    let selected: BTreeSet<(usize, usize)> =
        plan.trials.iter().map(|trial| (trial.suite, trial.case)).collect();
    let has_none =
        |(suite, case): &(usize, usize)| plan.suites[*suite].suite.cases[*case].scripts().next().is_none();
    selected.iter().filter(|place| has_none(place)).count()
}

/// Reads the kinds that the variable trusts: a list of kinds, or `all`.
fn trusted_kinds(words: &str) -> Result<BTreeSet<TrustKind>, String> {
    let mut kinds = BTreeSet::new();
    for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match TrustKind::ALL.into_iter().find(|kind| kind.name() == word) {
            Some(kind) => kinds.extend([kind]),
            None if word == "all" => kinds.extend(TrustKind::ALL),
            None => {
                let names = TrustKind::ALL.map(TrustKind::name).join(", ");
                return Err(format!("{TRUST_VARIABLE}={words}: \"{word}\" must be all or one of {names}"));
            }
        }
    }
    Ok(kinds)
}
