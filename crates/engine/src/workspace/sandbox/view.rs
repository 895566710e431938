//! Decides what an agent sees: the system, its own program with its package, and its workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use practicum_agents::agents::{AgentCli, find_program};
use practicum_core::tree::open_regular;

/// Folders of the system, which everyone may read on any machine and which contain no personal files.
#[cfg(not(target_os = "macos"))]
const SYSTEM_FOLDERS: [&str; 15] = [
    "/bin",
    "/etc",
    "/gnu",
    "/home/linuxbrew/.linuxbrew",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix",
    "/opt",
    "/run/current-system",
    "/sbin",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/usr",
];

// Not /System as a whole, because /System/Volumes/Data leads to the files of all users.
#[cfg(target_os = "macos")]
const SYSTEM_FOLDERS: [&str; 15] = [
    "/bin",
    "/etc",
    "/Library",
    "/nix",
    "/opt",
    "/private/etc",
    "/private/var/db/dyld",
    "/private/var/db/timezone",
    "/private/var/select",
    "/run/current-system",
    "/sbin",
    "/System/Cryptexes",
    "/System/Library",
    "/System/Volumes/Preboot/Cryptexes",
    "/usr",
];

/// The most links or interpreters that are followed one after the other.
const MOST_HOPS: usize = 8;

/// The most files and folders that are shown beside a program.
pub const MOST_SIBLINGS: usize = 500;

/// How an agent may use a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathAccess {
    /// The content of the given path, after following links.
    ReadOnly(PathBuf),
    Writable,
    Link(PathBuf),
    HiddenFolder,
    HiddenFile,
}

/// The paths that the agent finds, and the access to each.
#[derive(Debug, Clone)]
pub struct SandboxView {
    paths: BTreeMap<PathBuf, PathAccess>,
    hidden: Vec<PathBuf>,
    /// Folders of which a part is shown, and in which programs look for what they import.
    listed: BTreeSet<PathBuf>,
}

/// Resolves links in hidden paths. The root of the file system is left out: it cannot be hidden, and is never
/// shown as a whole.
pub fn resolve_hidden_paths(paths: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let real: BTreeSet<PathBuf> = paths
        .into_iter()
        .filter_map(|path| path.canonicalize().ok())
        .filter(|path| path.parent().is_some())
        .collect();
    real.into_iter().collect()
}

impl SandboxView {
    pub fn new(hidden: &[PathBuf], room: &Path) -> Self {
        let mut view = Self { paths: BTreeMap::new(), hidden: hidden.to_owned(), listed: BTreeSet::new() };
        for path in SYSTEM_FOLDERS.map(Path::new) {
            let Ok(real) = path.canonicalize() else { continue };
            let elsewhere = SYSTEM_FOLDERS.iter().any(|other| real != path && real.starts_with(other));
            let shown = match path.read_link() {
                Ok(to) if elsewhere => PathAccess::Link(to),
                Ok(_) | Err(_) => PathAccess::ReadOnly(real),
            };
            view.add(path, shown);
        }
        // The resolver needs this file, which is often a link to a place outside /etc.
        if let Ok(path) = Path::new("/etc/resolv.conf").canonicalize() {
            view.show(&path);
        }
        // The order is from outer to inner, so that something in a hidden folder is hidden with it, including its
        // name.
        for path in hidden {
            if view.is_visible(path) {
                let shown = if path.is_dir() { PathAccess::HiddenFolder } else { PathAccess::HiddenFile };
                view.add(path, shown);
            }
        }
        view.paths.insert(room.to_owned(), PathAccess::Writable);
        view
    }

    /// Shows the agent's program (links followed), its package and its interpreter. Files that its command names
    /// are shown too: a script is part of the agent just as the shell that runs it.
    pub fn show_agent(&mut self, agent: &AgentCli, user_env: &BTreeMap<String, String>) {
        if let Ok(program) = agent.installed_path(user_env) {
            self.show_program(&program, user_env, 0);
        }
        let named = agent
            .first_turn_args
            .iter()
            .chain(&agent.later_turn_args)
            .flatten()
            .chain(agent.env.iter().map(|(_, value)| value));
        for word in named.filter(|word| word.starts_with('/')) {
            if Path::new(word).is_file() {
                self.show_program(Path::new(word), user_env, 0);
            }
        }
        for certificates in ["SSL_CERT_FILE", "SSL_CERT_DIR"].iter().filter_map(|name| user_env.get(*name)) {
            self.show_file(Path::new(certificates));
        }
    }

    /// Shows a path and, if it is a link, its targets.
    pub fn show_file(&mut self, path: &Path) {
        for hop in link_chain(path) {
            self.show(&hop);
        }
    }

    /// Shows a program in the folder `owner` and what lies beside the program, which it may import. What is hidden
    /// there, what begins with a dot and what leads out of `owner` is not shown.
    pub fn show_program_with_siblings(&mut self, program: &Path, owner: &Path) {
        let lies_in_owner = |path: &Path| path.canonicalize().is_ok_and(|real| real.starts_with(owner));
        if !lies_in_owner(program) {
            return;
        }
        self.show_file(program);
        let folders: BTreeSet<PathBuf> = link_chain(program)
            .iter()
            .filter_map(|hop| Some(hop.parent()?.to_owned()))
            .filter(|folder| lies_in_owner(folder))
            .collect();
        self.listed.extend(folders.iter().cloned());
        let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        for entry in entries.take(MOST_SIBLINGS) {
            let is_visible_name = !entry.file_name().as_encoded_bytes().starts_with(b".");
            let path = entry.path();
            let Ok(real) = path.canonicalize() else { continue };
            if is_visible_name && lies_in_owner(&path) && !self.hidden.contains(&real) {
                self.show(&path);
                self.hide_again_below(&real);
            }
        }
    }

    /// Gives the folders whose names a process may list. Only Landlock needs to be told.
    #[cfg(target_os = "linux")]
    pub fn listable(&self) -> Vec<PathBuf> {
        self.listed.iter().cloned().collect()
    }

    /// Hides what must stay hidden inside a path that is shown.
    fn hide_again_below(&mut self, shown: &Path) {
        let below = |hidden: &&PathBuf| *hidden != shown && hidden.starts_with(shown);
        let hidden: Vec<PathBuf> = self.hidden.iter().filter(below).cloned().collect();
        for path in hidden {
            let how = if path.is_dir() { PathAccess::HiddenFolder } else { PathAccess::HiddenFile };
            self.paths.entry(path).or_insert(how);
        }
    }

    pub fn show_program(&mut self, path: &Path, user_env: &BTreeMap<String, String>, depth: usize) {
        for hop in link_chain(path) {
            self.show(&hop);
            if let Some(package) = package(&hop).filter(|package| self.may_show(package)) {
                self.show(&package);
            }
        }
        if depth < MOST_HOPS
            && let Some(interpreter) = interpreter(path, user_env)
        {
            self.show_program(&interpreter, user_env, depth + 1);
        }
    }

    /// Says whether a folder can be shown as a whole: nothing hidden may be in it.
    fn may_show(&self, folder: &Path) -> bool {
        let Ok(real) = folder.canonicalize() else { return false };
        real.parent().is_some() && !self.hidden.iter().any(|hidden| hidden.starts_with(&real))
    }

    fn show(&mut self, path: &Path) {
        let Ok(real) = path.canonicalize() else { return };
        if self.is_visible(path) {
            return;
        }
        // The folder around it must not look as if it could be written to.
        let around = self.hidden.iter().find(|hidden| path.starts_with(hidden) && hidden.is_dir()).cloned();
        if let Some(around) = around {
            self.paths.entry(around).or_insert(PathAccess::HiddenFolder);
        }
        self.add(path, PathAccess::ReadOnly(real));
    }

    fn add(&mut self, path: &Path, shown: PathAccess) {
        self.paths.insert(path.to_owned(), shown);
    }

    /// Says whether the closest rule about a path makes it visible.
    fn is_visible(&self, path: &Path) -> bool {
        let nearest = path.ancestors().find_map(|above| self.paths.get(above));
        match nearest {
            Some(PathAccess::ReadOnly(_) | PathAccess::Writable | PathAccess::Link(_)) => true,
            Some(PathAccess::HiddenFolder | PathAccess::HiddenFile) | None => false,
        }
    }

    /// Gives outer paths before inner ones, so that the last rule about a path counts.
    pub fn in_order(&self) -> Vec<(&Path, &PathAccess)> {
        let mut all: Vec<(&Path, &PathAccess)> =
            self.paths.iter().map(|(at, shown)| (at.as_path(), shown)).collect();
        all.sort_by_key(|(at, _)| at.components().count());
        all
    }

    #[cfg(target_os = "linux")]
    pub fn writable(&self) -> impl Iterator<Item = &Path> {
        let writable = self.paths.iter().filter(|(_, shown)| **shown == PathAccess::Writable);
        writable.map(|(at, _)| at.as_path())
    }

    /// Gives the readable paths for a backend that can allow but not forbid: a folder that contains something
    /// hidden is replaced by its other entries. Only Landlock needs it.
    #[cfg(any(target_os = "linux", test))]
    pub fn readable(&self) -> Vec<PathBuf> {
        let mut all = BTreeSet::new();
        for (at, shown) in &self.paths {
            match shown {
                PathAccess::ReadOnly(real) => self.add_readable_parts(real, &mut all),
                PathAccess::Link(_) => all.extend(at.canonicalize().ok()),
                PathAccess::Writable | PathAccess::HiddenFolder | PathAccess::HiddenFile => {}
            }
        }
        // A link may lead into a folder that was split, or lie in one that was not.
        let whole: Vec<PathBuf> = all.iter().cloned().collect();
        all.retain(|path| !whole.iter().any(|other| other != path && path.starts_with(other)));
        let holds_hidden =
            |path: &PathBuf| self.hidden.iter().any(|hidden| hidden != path && hidden.starts_with(path));
        all.into_iter().filter(|path| !holds_hidden(path)).collect()
    }

    #[cfg(any(target_os = "linux", test))]
    fn add_readable_parts(&self, path: &Path, into: &mut BTreeSet<PathBuf>) {
        if !self.hidden.iter().any(|hidden| hidden != path && hidden.starts_with(path)) {
            into.insert(path.to_owned());
            return;
        }
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            if !self.hidden.contains(&entry.path()) {
                self.add_readable_parts(&entry.path(), into);
            }
        }
    }
}

/// Gives a path, then the targets of its links, down to the real file.
fn link_chain(path: &Path) -> Vec<PathBuf> {
    let mut hops = vec![path.to_owned()];
    let mut at = path.to_owned();
    while hops.len() < MOST_HOPS
        && let Ok(to) = at.read_link()
    {
        at = without_parent_steps(&at.parent().unwrap_or(Path::new("/")).join(to));
        hops.push(at.clone());
    }
    if let Ok(real) = path.canonicalize()
        && hops.last() != Some(&real)
    {
        hops.push(real);
    }
    hops
}

/// Removes `..` from a path, because it does not work across folders that do not exist in the sandbox.
fn without_parent_steps(path: &Path) -> PathBuf {
    let mut flat = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                flat.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => flat.push(component),
        }
    }
    flat
}

/// Finds the folder that a program needs to work: the outermost node_modules around it, its Python environment, or
/// the prefix under which it was installed.
fn package(program: &Path) -> Option<PathBuf> {
    let folders = || program.ancestors().skip(1);
    let node =
        folders().filter(|folder| folder.file_name().is_some_and(|name| name == "node_modules")).last();
    let python = || folders().find(|folder| folder.join("pyvenv.cfg").is_file());
    let prefix = || {
        let folder =
            program.parent().filter(|folder| folder.file_name().is_some_and(|name| name == "bin"))?;
        let prefix = folder.parent()?;
        // ~/.local is a prefix too, but it contains many of the user's files.
        let own = prefix.file_name().is_some_and(|name| name != ".local") && prefix.join("lib").is_dir();
        own.then_some(prefix)
    };
    node.or_else(python).or_else(prefix).map(Path::to_owned)
}

/// Gives the program that the first line of a script names.
fn interpreter(script: &Path, user_env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let mut head = Vec::new();
    open_regular(script).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line).into_owned();
    let mut words = line.split_whitespace();
    let program = words.next()?;
    if Path::new(program).file_name()? != "env" {
        return Some(PathBuf::from(program));
    }
    let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    find_on_path(name, user_env)
}

/// Finds a program on the PATH without following links, because the agent will look for it at that place.
fn find_on_path(name: &str, user_env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let real = find_program(name, user_env)?;
    let found = std::env::split_paths(user_env.get("PATH")?).map(|folder| folder.join(name));
    found.into_iter().find(|path| path.canonicalize().is_ok_and(|path| path == real))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a home with these files. Content of the form `-> path` makes a link.
    fn home(files: &[(&str, &str)]) -> tempfile::TempDir {
        let home = tempfile::tempdir().expect("a folder");
        for (path, content) in files {
            let at = home.path().join(path);
            std::fs::create_dir_all(at.parent().expect("a parent")).expect("create");
            match content.strip_prefix("-> ") {
                Some(to) => std::os::unix::fs::symlink(home.path().join(to), at).expect("link"),
                None => std::fs::write(at, content).expect("write"),
            }
        }
        home
    }

    #[test]
    fn a_program_is_seen_with_its_package_and_never_with_the_home() {
        for (program, files, expected) in [
            ("bin/a", &[("bin/a", "x"), ("lib/b", "x")][..], &["bin/a"][..]),
            (
                ".local/bin/a",
                &[(".local/bin/a", "-> .local/share/a/1"), (".local/share/a/1", "x"), (".local/lib/b", "x")],
                &[".local/share/a/1"],
            ),
            (
                "x/node_modules/.bin/a",
                &[
                    ("x/node_modules/.bin/a", "-> x/node_modules/p/node_modules/q/a.js"),
                    ("x/node_modules/p/node_modules/q/a.js", "x"),
                ],
                &["x/node_modules"],
            ),
            (
                "tools/a/bin/a",
                &[
                    ("tools/a/bin/a", "#!HOME/tools/a/bin/python\n"),
                    ("tools/a/pyvenv.cfg", ""),
                    ("tools/a/bin/python", "-> py/3/bin/python3"),
                    ("py/3/bin/python3", "x"),
                    ("py/3/lib/os.py", ""),
                ],
                &["py/3", "tools/a"],
            ),
            (
                "a.js",
                &[
                    ("a.js", "#!/usr/bin/env -S own-node --flag\n"),
                    ("nvm/20/bin/own-node", "x"),
                    ("nvm/20/lib/n", ""),
                ],
                &["a.js", "nvm/20"],
            ),
        ] {
            let home = home(files);
            let real = home.path().canonicalize().expect("a home");
            if let Ok(text) = std::fs::read_to_string(real.join(program)) {
                std::fs::write(real.join(program), text.replace("HOME", &real.display().to_string()))
                    .expect("write");
            }
            use std::os::unix::fs::PermissionsExt;
            let node = real.join("nvm/20/bin/own-node");
            let _ = std::fs::set_permissions(node, std::fs::Permissions::from_mode(0o755));
            let env =
                BTreeMap::from([("PATH".to_owned(), format!("{}/nvm/20/bin:/usr/bin:/bin", real.display()))]);
            let mut view = SandboxView::new(std::slice::from_ref(&real), Path::new("/nowhere/room"));
            view.show_program(&real.join(program), &env, 0);
            let mut seen: Vec<PathBuf> = view.readable();
            seen.retain(|path| path.starts_with(&real));
            let expected: Vec<PathBuf> = expected.iter().map(|path| real.join(path)).collect();
            assert_eq!(seen, expected, "{program}");
        }
    }

    #[test]
    fn what_is_hidden_inside_something_shown_stays_hidden() {
        let home = home(&[("shown/a/x", ""), ("shown/b/c/x", ""), ("shown/b/d", "")]);
        let real = home.path().canonicalize().expect("a home");
        let mut view = SandboxView::new(&[real.join("shown/b/c")], Path::new("/nowhere/room"));
        view.show(&real.join("shown"));
        let mut seen = view.readable();
        seen.retain(|path| path.starts_with(&real));
        assert_eq!(seen, [real.join("shown/a"), real.join("shown/b/d")]);
    }
}
