//! The settings of a user that apply to a run wherever it is carried out.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{SETTING_DESCRIPTIONS, SettingLayers, SettingsError, user_config_folder};
use practicum_core::tree::read_regular_text;

/// The settings of a user that are not in the project: those of the environment and of the user's own file. A worker
/// plans a run with them in place of the settings of its own user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortableSettings {
    /// The variables that are settings, with their values.
    environment: BTreeMap<String, String>,
    /// The text of the user's settings file.
    user_file: Option<String>,
}

impl PortableSettings {
    /// Reads the settings of the user whose environment this is.
    pub fn of_user(environment: &BTreeMap<String, String>) -> Self {
        let of_setting = |name: &str| environment.get_key_value(name);
        let user_file = user_config_folder(environment).map(|folder| folder.join("config.toml"));
        Self {
            environment: setting_variables()
                .filter_map(of_setting)
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            user_file: user_file.and_then(|path| read_regular_text(path).ok()),
        }
    }

    /// Gives the settings of a run in a project. Of the environment here, the variables that are settings do not count.
    pub(crate) fn layers(
        &self,
        flags: BTreeMap<String, String>,
        environment: &BTreeMap<String, String>,
        project: &Path,
    ) -> Result<SettingLayers, SettingsError> {
        let mut environment = environment.clone();
        setting_variables().for_each(|name| drop(environment.remove(name)));
        environment.extend(self.environment.clone());
        SettingLayers::with_user_text(flags, environment, project, self.user_file.as_deref())
    }
}

fn setting_variables() -> impl Iterator<Item = &'static str> {
    SETTING_DESCRIPTIONS.iter().flat_map(|setting| setting.env).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::settings::{JOBS, RETRIES};

    #[test]
    fn the_settings_of_a_worker_do_not_change_a_run() {
        let home = tempfile::tempdir().expect("a folder");
        let config = home.path().join(".config/practicum");
        std::fs::create_dir_all(&config).expect("create");
        std::fs::write(config.join("config.toml"), "retries = 7\n").expect("write");
        let here = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let home_text = home.path().display().to_string();
        let of_user = PortableSettings::of_user(&here(&[("HOME", &home_text), ("PRACTICUM_JOBS", "3")]));
        let project = tempfile::tempdir().expect("a folder");
        let worker = here(&[("HOME", "/nonexistent"), ("PRACTICUM_RETRIES", "1"), ("PRACTICUM_JOBS", "9")]);
        let layers = of_user.layers(BTreeMap::new(), &worker, project.path()).expect("settings");
        assert_eq!(layers.resolve_global(&RETRIES).expect("a value").value, 7);
        assert_eq!(layers.resolve_global(&JOBS).expect("a value").value, 3);
        assert_eq!(layers.environment().get("HOME").map(String::as_str), Some("/nonexistent"));
    }
}
