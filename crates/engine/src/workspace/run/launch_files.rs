//! Writes the files that a process expects to find when it starts.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use practicum_agents::agents::Launch;
use practicum_core::tree::read_bounded;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};
use serde_json::Value;

/// How a process gets the user's own login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginAccess {
    /// A copy that cannot be renewed. Whatever the process makes of it, the user's login stays as it is and stays valid.
    Copy,
    /// A link to the user's file, for processes that do not do what a stranger's text says. A renewed login reaches
    /// the user.
    Link,
}

/// The largest login file that is copied. Real ones have a few kilobytes.
const LARGEST_LOGIN: u64 = 1024 * 1024;

/// Writes the files and the login of a launch.
pub fn write_launch_files(launch: &Launch, login: LoginAccess) -> Result<(), String> {
    for (path, content) in &launch.files {
        make_with_parent(path, |path| std::fs::write(path, content))?;
    }
    match (&launch.login_file, login) {
        (None, _) => Ok(()),
        (Some((path, user_file)), LoginAccess::Link) => {
            make_with_parent(path, |path| std::os::unix::fs::symlink(user_file, path))
        }
        (Some((path, user_file)), LoginAccess::Copy) => {
            let content = read_bounded(user_file, LARGEST_LOGIN)
                .map_err(|why| format!("the login in {} cannot be read: {why}", user_file.display()))?;
            let content = without_renewal(content);
            make_with_parent(path, |path| {
                let mut new = std::fs::File::options();
                new.write(true).create_new(true).mode(0o600).open(path)?.write_all(&content)
            })
        }
    }
}

/// The names under which logins keep the token that renews them.
const RENEWAL_KEYS: [&str; 2] = ["refreshToken", "refresh_token"];

/// Where logins keep those of other services: servers of tools, which no trial uses.
const OTHER_LOGINS: [&str; 2] = ["mcpOAuth", "mcp_oauth"];

/// Empties the tokens that renew a login, and leaves out the logins of other services. Vendors accept a renewing token
/// only once: an agent that renewed its copy would log the user out, and a hostile one could keep itself logged in. A
/// login that is not JSON stays as it is.
fn without_renewal(content: Vec<u8>) -> Vec<u8> {
    let Ok(mut login) = serde_json::from_slice::<Value>(&content) else { return content };
    if let Some(fields) = login.as_object_mut() {
        fields.retain(|name, _| !OTHER_LOGINS.contains(&name.as_str()));
    }
    let mut open = vec![&mut login];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value {
                        // Codex refuses a login without the key, but not an empty one.
                        Value::String(token) if RENEWAL_KEYS.contains(&name.as_str()) => token.clear(),
                        value => open.push(value),
                    }
                }
            }
            Value::Array(items) => open.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    login.to_string().into_bytes()
}

/// Deletes the copy of a login below `home`, so that it does not stay where workspaces are kept. The agent may have
/// replaced folders by links, which are not followed.
pub fn remove_login_copy(launch: &Launch, home: &Path) {
    let Some((path, _)) = &launch.login_file else { return };
    let Ok(below) = path.strip_prefix(home) else { return };
    let Some((parent, name)) = below.parent().zip(below.file_name()) else { return };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = openat(CWD, home, flags, Mode::empty());
    for part in parent {
        folder = folder.and_then(|folder| openat(folder, part, flags, Mode::empty()));
    }
    // If it is gone already, that is as well.
    let _ = folder.and_then(|folder| unlinkat(folder, name, AtFlags::empty()));
}

/// Makes a file or link, after the folder around it.
fn make_with_parent(path: &Path, make: impl Fn(&Path) -> std::io::Result<()>) -> Result<(), String> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| make(path));
    made.map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_copied_login_cannot_be_renewed() {
        for (own, expected) in [
            (
                r#"{"claudeAiOauth":{"accessToken":"a","refreshToken":"r","expiresAt":5},"mcpOAuth":{"x":{"accessToken":"m"}}}"#,
                r#"{"claudeAiOauth":{"accessToken":"a","refreshToken":"","expiresAt":5}}"#,
            ),
            (
                r#"{"OPENAI_API_KEY":null,"tokens":{"access_token":"a","refresh_token":"r"},"last_refresh":"t"}"#,
                r#"{"OPENAI_API_KEY":null,"tokens":{"access_token":"a","refresh_token":""},"last_refresh":"t"}"#,
            ),
            (r#"{"logins":[{"refreshToken":"r"}]}"#, r#"{"logins":[{"refreshToken":""}]}"#),
            (r#"{"refreshToken":{"refreshToken":"r"}}"#, r#"{"refreshToken":{"refreshToken":""}}"#),
            ("token = refreshToken", "token = refreshToken"),
        ] {
            let copied = String::from_utf8(without_renewal(own.as_bytes().to_vec())).expect("text");
            let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::from(text));
            assert_eq!(read(&copied), read(expected));
        }
    }

    #[test]
    fn a_copied_login_is_deleted_and_never_the_users_own() {
        let room = tempfile::tempdir().expect("a folder");
        let (home, own) = (room.path().join("home"), room.path().join("own"));
        for folder in [&home, &own] {
            std::fs::create_dir(folder).expect("create");
        }
        std::fs::write(own.join("auth.json"), "token").expect("write");
        let launch = Launch {
            program: "/bin/true".into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            files: Vec::new(),
            login_file: Some((home.join(".agent/auth.json"), own.join("auth.json"))),
            stdin: None,
        };
        write_launch_files(&launch, LoginAccess::Copy).expect("written");
        std::fs::write(home.join(".agent/auth.json"), "replaced").expect("write");
        remove_login_copy(&launch, &home);
        assert!(!home.join(".agent/auth.json").exists());
        std::fs::remove_dir(home.join(".agent")).expect("remove");
        symlink(&own, home.join(".agent")).expect("link");
        remove_login_copy(&launch, &home);
        let kept = read_bounded(&own.join("auth.json"), 100).expect("kept");
        assert_eq!(kept, b"token");
    }
}
