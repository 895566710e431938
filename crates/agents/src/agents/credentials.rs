//! The ways to log an agent in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The ways to log the agent in: the first of the variables that is set and not empty, or the file that its own
/// login wrote.
#[derive(Clone)]
pub struct AgentCredentials {
    /// The variables that can hold a key, the preferred one first.
    pub variables: Vec<String>,
    /// The file that the agent's own login writes.
    pub file: Option<LoginFile>,
}

/// The file in which an agent keeps its login: in a folder of the home, unless a variable names that folder.
#[derive(Clone)]
pub struct LoginFile {
    /// The variable that names the folder of the file.
    pub variable: &'static str,
    /// The folder of the file in the user's home, if the variable is not set.
    pub folder: &'static str,
    /// The name of the file.
    pub name: &'static str,
}

/// The user's login with an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentLogin {
    /// The variable of this name, which holds a key.
    Variable(String),
    /// The agent's own login file. An agent under test gets a copy that it cannot renew, because it must not be able to
    /// change the user's login. A judge gets a link, because a renewed login must reach the user.
    File(PathBuf),
}

impl AgentCredentials {
    /// Makes credentials that are only looked up in variables.
    pub fn from_variables(variables: Vec<String>) -> Self {
        Self { variables, file: None }
    }

    /// Gives the folder in which the agent keeps its login and other files of the user.
    pub fn login_folder(&self, user_env: &BTreeMap<String, String>) -> Option<PathBuf> {
        let set = |name: &str| user_env.get(name).filter(|value| !value.is_empty());
        let file = self.file.as_ref()?;
        match set(file.variable) {
            Some(folder) => Some(PathBuf::from(folder)),
            None => Some(Path::new(set("HOME")?).join(file.folder)),
        }
    }

    /// Finds the user's login: a variable that is set, otherwise the file of the agent's own login.
    pub fn find_login(&self, user_env: &BTreeMap<String, String>) -> Option<AgentLogin> {
        let set = |name: &str| user_env.get(name).filter(|value| !value.is_empty());
        let variable = self.variables.iter().find(|name| set(name).is_some());
        variable.cloned().map(AgentLogin::Variable).or_else(|| {
            let file = self.file.as_ref()?;
            Some(self.login_folder(user_env)?.join(file.name))
                .filter(|path| path.is_file())
                .map(AgentLogin::File)
        })
    }
}
