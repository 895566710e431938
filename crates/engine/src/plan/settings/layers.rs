//! The sources of settings (flags, environment, project file, user file), and which of them wins.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::definitions::{SANDBOX, SETTING_DESCRIPTIONS, SettingDefinition};
use super::limits;
use super::weakening::weakens;
use super::{Setting, SettingSource};
use practicum_core::model::Suite;
use practicum_core::tree::{closest_word, read_regular_text};

/// The values from each source, as text by the setting's name. They are read once, at the start.
#[derive(Debug, Clone, Default)]
pub struct SettingLayers {
    flags: BTreeMap<String, String>,
    environment: BTreeMap<String, String>,
    project: Option<FileLayer>,
    user: Option<FileLayer>,
}

#[derive(Debug, Clone, Default)]
struct FileLayer {
    path: PathBuf,
    values: BTreeMap<String, String>,
    /// Tables that are not settings: agents, modes.
    tables: toml::Table,
}

/// An error: a setting or a settings file is not valid.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("{}: {why}", describe_value(.name, .text, .from))]
    BadValue { name: &'static str, text: String, from: SettingSource, why: String },
    #[error("{path}: {why}")]
    BadFile { path: PathBuf, why: String },
}

/// Describes a value in the form in which the user gave it.
fn describe_value(name: &str, text: &str, from: &SettingSource) -> String {
    match from {
        SettingSource::Flag => {
            // If clauditor has such a flag, ours has the same name.
            let flag = match name {
                "judge.provider" => "grading-provider".to_owned(),
                "judge.transport" => "transport".to_owned(),
                name => name.replace('.', "-"),
            };
            format!("--{flag} {text}")
        }
        SettingSource::Environment(variable) => format!("{variable}={text}"),
        SettingSource::EvalFile
        | SettingSource::Project(_)
        | SettingSource::User(_)
        | SettingSource::Format(_)
        | SettingSource::Default => {
            format!("{name} = \"{text}\" ({from})")
        }
    }
}

/// Gives the folder of the user's own settings. `None` if the environment names neither it nor a home.
pub fn user_config_folder(environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let named = |name: &str| environment.get(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let config = named("XDG_CONFIG_HOME").or_else(|| named("HOME").map(|home| home.join(".config")));
    config.map(|config| config.join("practicum"))
}

/// The name of the settings file of a project.
pub const PROJECT_FILE: &str = "practicum.toml";

impl SettingLayers {
    pub fn read(
        flags: impl IntoIterator<Item = (impl Into<String>, String)>,
        environment: BTreeMap<String, String>,
        project: &Path,
    ) -> Result<Self, SettingsError> {
        let user = user_config_folder(&environment).map(|config| config.join("config.toml"));
        Ok(Self {
            flags: flags.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            project: FileLayer::read(&project.join(PROJECT_FILE))?,
            user: user.map(|path| FileLayer::read(&path)).transpose()?.flatten(),
            environment,
        })
    }

    /// Reads the settings of a run that another machine shares: its user's file is given as a text.
    pub(crate) fn with_user_text(
        flags: BTreeMap<String, String>,
        environment: BTreeMap<String, String>,
        project: &Path,
        user: Option<&str>,
    ) -> Result<Self, SettingsError> {
        let path = Path::new("config.toml");
        Ok(Self {
            flags,
            project: FileLayer::read(&project.join(PROJECT_FILE))?,
            user: user.map(|text| FileLayer::parse(path, text)).transpose()?,
            environment,
        })
    }

    /// Reads the settings of the environment and the files, without a command line.
    pub fn without_flags(
        environment: BTreeMap<String, String>,
        project: &Path,
    ) -> Result<Self, SettingsError> {
        Self::read(BTreeMap::<String, String>::new(), environment, project)
    }

    /// Gives the value of a setting for a suite: that of the first source that has one.
    pub fn resolve<T>(
        &self,
        knob: &SettingDefinition<T>,
        suite: &Suite,
    ) -> Result<Setting<T>, SettingsError> {
        let above = self.value_above_file(knob);
        if let Some(found) = above {
            return parse(knob, found);
        }
        if let Some(value) = (knob.from_suite)(suite) {
            return Ok(Setting { value, source: SettingSource::EvalFile });
        }
        if let Some(found) = self.value_below_file(knob) {
            return parse(knob, found);
        }
        match (knob.format_default)(suite) {
            Some(value) => Ok(Setting { value, source: SettingSource::Format(suite.origin.dialect.clone()) }),
            None => Ok(Setting { value: (knob.default)(), source: SettingSource::Default }),
        }
    }

    /// Gives the value of a setting that no suite can set.
    pub fn resolve_global<T>(&self, knob: &SettingDefinition<T>) -> Result<Setting<T>, SettingsError> {
        match self.value_above_file(knob).or_else(|| self.value_below_file(knob)) {
            Some(found) => parse(knob, found),
            None => Ok(Setting { value: (knob.default)(), source: SettingSource::Default }),
        }
    }

    /// Describes a setting that no suite can set: its name, its value and its source.
    pub fn explain_global<T>(
        &self,
        knob: &SettingDefinition<T>,
        shown: impl Fn(&T) -> String,
    ) -> Result<(&'static str, String, SettingSource), SettingsError> {
        self.resolve_global(knob).map(|setting| (knob.name, shown(&setting.value), setting.source))
    }

    fn value_above_file<T>(&self, knob: &SettingDefinition<T>) -> Option<(String, SettingSource)> {
        if let Some(text) = self.flags.get(knob.name) {
            return Some((text.clone(), SettingSource::Flag));
        }

        knob.env.iter().find_map(|name| {
            let text = self.environment.get(*name).filter(|text| !text.is_empty())?;
            Some((text.clone(), SettingSource::Environment((*name).to_owned())))
        })
    }

    fn value_below_file<T>(&self, knob: &SettingDefinition<T>) -> Option<(String, SettingSource)> {
        let said = |layer: &Option<FileLayer>, from: fn(PathBuf) -> SettingSource| {
            let layer = layer.as_ref()?;
            Some((layer.values.get(knob.name)?.clone(), from(layer.path.clone())))
        };
        let project = said(&self.project, SettingSource::Project);
        let user = said(&self.user, SettingSource::User);
        match (project, user) {
            // What the user says about their own protection wins over a project that says less.
            (Some((new, _)), Some(user)) if weakens(knob.name, &new, &user.0) => Some(user),
            (project, user) => project.or(user),
        }
    }

    /// Gives the names and values of the sandbox and the limits in the project's file that protect less than without
    /// that file and would apply.
    pub fn weakened_settings(&self) -> Vec<(&'static str, String)> {
        let bytes = |bytes: u64| bytes.to_string();
        let weakened = [
            self.weakened(&SANDBOX, |mode| mode.name().to_owned()),
            self.weakened(&limits::MEMORY, bytes),
            self.weakened(&limits::PROCESSES, bytes),
            self.weakened(&limits::CPU, |time| format!("{}s", time.as_secs_f64())),
            self.weakened(&limits::OPEN_FILES, bytes),
            self.weakened(&limits::DISK, bytes),
            self.weakened(&limits::FILES, bytes),
        ];
        weakened.into_iter().flatten().collect()
    }

    fn weakened<T>(
        &self,
        knob: &SettingDefinition<T>,
        text: impl Fn(T) -> String,
    ) -> Option<(&'static str, String)> {
        let new = self.project.as_ref()?.values.get(knob.name)?;
        let applies = matches!(self.resolve_global(knob).ok()?.source, SettingSource::Project(_));
        let of_user = self.user.as_ref().and_then(|layer| layer.values.get(knob.name));
        let without = of_user.cloned().unwrap_or_else(|| text((knob.default)()));
        (applies && weakens(knob.name, new, &without)).then(|| (knob.name, new.clone()))
    }

    /// Leaves out the sandbox and the limits of the project's file that protect less than without that file.
    pub fn ignore_weakened_settings(&mut self) {
        let weakened = self.weakened_settings();
        if let Some(layer) = &mut self.project {
            weakened.iter().for_each(|(name, _)| drop(layer.values.remove(*name)));
        }
    }

    /// Gives the agents that the project's file describes and the user's own file does not: the user's own win.
    pub fn project_agents(&self) -> impl Iterator<Item = (&String, &toml::Value)> {
        let agents = |layer: &'_ Option<FileLayer>| -> Option<toml::Table> {
            layer.as_ref()?.tables.get("agents")?.as_table().cloned()
        };
        let own = agents(&self.user).unwrap_or_default();
        let table = self.project.as_ref().and_then(|layer| layer.tables.get("agents")?.as_table());
        table.into_iter().flatten().filter(move |(name, _)| !own.contains_key(*name))
    }

    /// Gives the entries of a table of the user file, then of the project file.
    pub fn table(&self, name: &str) -> impl Iterator<Item = (&String, &toml::Value, &Path)> {
        let layers = [self.user.as_ref(), self.project.as_ref()];
        let name = name.to_owned();
        layers.into_iter().flatten().flat_map(move |layer| {
            let table = layer.tables.get(&name).and_then(toml::Value::as_table);
            table.into_iter().flatten().map(|(key, value)| (key, value, layer.path.as_path()))
        })
    }

    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }
}

fn parse<T>(
    knob: &SettingDefinition<T>,
    (text, from): (String, SettingSource),
) -> Result<Setting<T>, SettingsError> {
    match (knob.parse)(&text) {
        Ok(value) => Ok(Setting { value, source: from }),
        Err(why) => Err(SettingsError::BadValue { name: knob.name, text, from, why }),
    }
}

/// Tables of a settings file that are not settings.
const OTHER_TABLES: [&str; 2] = ["agents", "modes"];

/// The greatest number of brackets in a settings file that may be open at once. Each needs a part of the parser's stack,
/// also in a file that is not valid.
const DEEPEST_NESTING: usize = 200;

/// Says whether too many brackets are open at once. Brackets in strings and comments count as well: they are closed there.
fn opens_too_many_brackets(text: &str) -> bool {
    let mut open = 0_usize;
    text.bytes().any(|byte| {
        match byte {
            b'{' | b'[' => open += 1,
            b'}' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
        open > DEEPEST_NESTING
    })
}

impl FileLayer {
    fn read(path: &Path) -> Result<Option<Self>, SettingsError> {
        let text = match read_regular_text(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(SettingsError::BadFile { path: path.to_owned(), why: error.to_string() });
            }
        };
        Self::parse(path, &text).map(Some)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, SettingsError> {
        let bad = |why: String| SettingsError::BadFile { path: path.to_owned(), why };
        if opens_too_many_brackets(text) {
            return Err(bad(format!("more than {DEEPEST_NESTING} brackets are open at once")));
        }
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| bad(error.to_string()))?;
        let mut layer = FileLayer { path: path.to_owned(), ..FileLayer::default() };
        layer.add("", table).map_err(bad)?;
        Ok(layer)
    }

    fn add(&mut self, prefix: &str, table: toml::Table) -> Result<(), String> {
        for (key, value) in table {
            if prefix.is_empty() && OTHER_TABLES.contains(&key.as_str()) {
                self.tables.insert(key, value);
                continue;
            }
            let name = format!("{prefix}{key}").replace('_', "-");
            match value {
                toml::Value::Table(inner) => self.add(&format!("{name}."), inner)?,
                value if SETTING_DESCRIPTIONS.iter().any(|knob| knob.name == name) => {
                    self.values.insert(name, value_text(&value));
                }
                _ => {
                    let known: Vec<&str> = SETTING_DESCRIPTIONS.iter().map(|knob| knob.name).collect();
                    let hint =
                        closest_word(&name, &known).map(|known| format!("; did you mean \"{known}\"?"));
                    return Err(format!("unknown setting \"{name}\"{}", hint.unwrap_or_default()));
                }
            }
        }
        Ok(())
    }
}

fn value_text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(items) => items.iter().map(value_text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// Finds the nearest folder, from `start` upwards, that is a project: it has a practicum.toml or a .git. If there
/// is none, gives the current folder.
pub fn project_root(start: &Path) -> PathBuf {
    ProjectRoots::default().root_of(start)
}

/// The projects of many files. Each folder is examined once.
#[derive(Debug, Default)]
pub struct ProjectRoots {
    roots: HashMap<PathBuf, Option<PathBuf>>,
}

impl ProjectRoots {
    pub(crate) fn root_of(&mut self, start: &Path) -> PathBuf {
        let folder = if start.is_dir() { start } else { start.parent().unwrap_or(start) };
        let here = || std::env::current_dir().unwrap_or_else(|_| folder.to_owned());
        self.nearest_root(folder).unwrap_or_else(here)
    }

    fn nearest_root(&mut self, folder: &Path) -> Option<PathBuf> {
        if let Some(known) = self.roots.get(folder) {
            return known.clone();
        }
        let is_project = folder.join(PROJECT_FILE).is_file() || folder.join(".git").exists();
        let root = if is_project {
            Some(folder.to_owned())
        } else {
            folder.parent().and_then(|above| self.nearest_root(above))
        };
        self.roots.insert(folder.to_owned(), root.clone());
        root
    }
}
