//! Limits by control groups of the kernel (cgroup v2), where this program has such a group for itself.
//!
//! The kernel then counts what all processes of a trial use, however fast they are, and says afterwards whether it
//! refused them anything. Elsewhere the watchdog and the limits of each process hold alone.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{Access, access};

use crate::workspace::limits::{ProcessUsage, ResourceLimits};

/// The controllers without which a group limits nothing.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// Says whether trials are limited by control groups on this machine. The error says why not.
pub fn control_groups_work() -> Result<(), String> {
    find_own_group().map(|_| ())
}

/// Makes a group with these limits; `None` where groups do not work.
pub fn new_control_group(limits: &ResourceLimits) -> Option<ControlGroup> {
    static BASE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let base = BASE
        .get_or_init(|| find_own_group().ok().filter(|own| own.take_over().is_ok()).map(|own| own.folder));
    let group = ControlGroup::create(base.as_deref()?).ok()?;
    group.set_limits(limits).is_ok().then_some(group)
}

/// The group of this program, in which it may make others.
struct OwnGroup {
    folder: PathBuf,
    /// Whether the controllers are already passed on to inner groups.
    passes_on: bool,
}

fn find_own_group() -> Result<OwnGroup, String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let folder = group_folder(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
        .ok_or("this machine has no cgroup v2")?;
    let has_all = |name: &str| {
        let found = read_line(&folder.join(name));
        CONTROLLERS.iter().all(|wanted| found.split_whitespace().any(|controller| controller == *wanted))
    };
    if !has_all("cgroup.controllers") {
        return Err("cgroup v2 does not control memory and processes here".to_owned());
    }
    let changed = ["", "cgroup.procs", "cgroup.subtree_control"];
    if changed.iter().any(|name| access(folder.join(name), Access::WRITE_OK).is_err()) {
        return Err("this program may not change its cgroup".to_owned());
    }
    let passes_on = has_all("cgroup.subtree_control");
    let alone = read_line(&folder.join("cgroup.procs")).trim() == std::process::id().to_string();
    // The kernel lets a group either hold processes or pass controllers on.
    if !(passes_on || alone) {
        return Err("other processes are in the cgroup of this program".to_owned());
    }
    Ok(OwnGroup { folder, passes_on })
}

impl OwnGroup {
    /// Moves this program into an inner group, so that the outer one can pass its controllers on.
    fn take_over(&self) -> std::io::Result<()> {
        if self.passes_on {
            return Ok(());
        }
        let inner = self.folder.join("practicum");
        std::fs::create_dir_all(&inner)?;
        std::fs::write(inner.join("cgroup.procs"), "0")?;
        std::fs::write(
            self.folder.join("cgroup.subtree_control"),
            CONTROLLERS.map(|name| format!("+{name}")).join(" "),
        )
    }
}

/// Finds the folder of a process's group from what the kernel says about its groups and mounts.
fn group_folder(groups: &str, mounts: &str) -> Option<PathBuf> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let mut fields = mount.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    let below = Path::new(group).strip_prefix(root).ok()?;
    Some(Path::new(point).join(below))
}

/// Reads one of the small files of a group. One that cannot be read says nothing.
fn read_line(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// A group of processes that the kernel limits together. It is removed when dropped.
#[derive(Debug)]
pub struct ControlGroup {
    folder: PathBuf,
}

impl ControlGroup {
    fn create(base: &Path) -> std::io::Result<Self> {
        static CREATED: AtomicU64 = AtomicU64::new(0);
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let folder = base.join(format!("practicum-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder)?;
        Ok(Self { folder })
    }

    fn set_limits(&self, limits: &ResourceLimits) -> std::io::Result<()> {
        let set = |name: &str, value: String| std::fs::write(self.folder.join(name), value);
        // Not every kernel has these two. Without them more is used than is allowed, or single processes end.
        let _ = set("memory.swap.max", "0".to_owned());
        let _ = set("memory.oom.group", "1".to_owned());
        set("memory.max", limits.memory.to_string())?;
        set("pids.max", limits.processes.to_string())
    }

    /// Opens the file to which a process writes `0` to enter the group.
    pub fn entrance(&self) -> std::io::Result<File> {
        File::options().write(true).open(self.folder.join("cgroup.procs"))
    }

    /// Says which limit was exceeded since the group was made, also by processes that have ended.
    pub fn excess(&self, limits: &ResourceLimits) -> Option<String> {
        let was_refused =
            |name: &str, events: &[&str]| events.iter().any(|event| self.number(name, event) > 0);
        let over = |limit: u64, is_over: bool| if is_over { limit.saturating_add(1) } else { 0 };
        limits.excess_of(&ProcessUsage {
            memory: over(limits.memory, was_refused("memory.events", &["oom", "oom_kill"])),
            processes: over(limits.processes, was_refused("pids.events", &["max"])),
            cpu: Duration::from_micros(self.number("cpu.stat", "usage_usec")),
            open_files: 0,
        })
    }

    /// Gives a number from a file with a name and a number on each line. A missing one is 0.
    fn number(&self, file: &str, name: &str) -> u64 {
        let text = read_line(&self.folder.join(file));
        let mut rows = text.lines().filter_map(|line| line.split_once(' '));
        rows.find(|(found, _)| *found == name).and_then(|(_, number)| number.trim().parse().ok()).unwrap_or(0)
    }

    /// Kills all processes of the group.
    pub fn kill(&self) {
        // Older kernels do not have the file. The caller also kills each process that it finds.
        let _ = std::fs::write(self.folder.join("cgroup.kill"), "1");
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // A group in which something still runs stays. It disappears with the group around it.
        let _ = std::fs::remove_dir(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_process_is_found_wherever_it_is_mounted() {
        let mount = |root: &str, point: &str| {
            format!(
                "24 1 0:21 / /proc rw - proc proc rw\n41 31 0:38 {root} {point} rw - cgroup2 cgroup2 rw\n"
            )
        };
        for (groups, mounts, expected) in [
            (
                "0::/user.slice/x.scope\n",
                mount("/", "/sys/fs/cgroup"),
                Some("/sys/fs/cgroup/user.slice/x.scope"),
            ),
            ("8:pids:/a\n0::/\n", mount("/", "/sys/fs/cgroup/unified"), Some("/sys/fs/cgroup/unified/")),
            ("0::/docker/1/x\n", mount("/docker/1", "/sys/fs/cgroup"), Some("/sys/fs/cgroup/x")),
            ("0::/../x\n", mount("/docker/1", "/sys/fs/cgroup"), None),
            ("8:pids:/a\n", mount("/", "/sys/fs/cgroup"), None),
            ("0::/a\n", "24 1 0:21 / /proc rw - proc proc rw\n".to_owned(), None),
        ] {
            assert_eq!(group_folder(groups, &mounts), expected.map(PathBuf::from), "{groups}");
        }
    }

    #[test]
    fn what_the_kernel_refused_is_over_a_limit() {
        let base = tempfile::tempdir().expect("a folder");
        let limits = ResourceLimits::default();
        for (file, text, expected) in [
            ("pids.events", "max 0\n", None),
            ("pids.events", "max 3\n", Some("processes")),
            ("memory.events", "low 0\nhigh 0\nmax 9\noom 0\noom_kill 0\n", None),
            ("memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n", Some("memory")),
            ("cpu.stat", "usage_usec 3600000000\n", None),
            ("cpu.stat", "usage_usec 3600000001\n", Some("processor time")),
            ("cpu.stat", "nonsense\n", None),
        ] {
            let group = ControlGroup::create(base.path()).expect("a group");
            std::fs::write(group.folder.join(file), text).expect("write");
            let found = group.excess(&limits);
            assert_eq!(found.is_some(), expected.is_some(), "{text}: {found:?}");
            assert!(found.is_none_or(|why| why.contains(expected.unwrap_or_default())), "{text}");
        }
    }

    /// Uses the groups of this machine if it has any that can be changed, with or without controllers.
    #[test]
    fn a_process_enters_a_group_and_is_killed_with_it() {
        use std::io::{BufRead, BufReader, Write};
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let own = group_folder(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"));
        let Some(group) = own.and_then(|own| ControlGroup::create(&own).ok()) else {
            eprintln!("skipped: no cgroup v2 that can be changed");
            return;
        };
        let (entrance, limits) = (group.entrance(), ResourceLimits::default());
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "read go; echo started; sleep 600 & wait"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("a shell");
        write!(entrance.expect("open"), "{}", child.id()).expect("entered");
        let mut input = child.stdin.take().expect("an input");
        input.write_all(b"go\n").expect("written");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("an output")).read_line(&mut line).expect("read");
        assert_eq!((line.as_str(), group.excess(&limits)), ("started\n", None));
        let short = ResourceLimits { cpu: Duration::ZERO, ..limits };
        assert!(group.excess(&short).is_some_and(|why| why.contains("processor time")));
        group.kill();
        assert!(!child.wait().expect("ended").success());
        let folder = group.folder.clone();
        for _ in 0..500 {
            if read_line(&folder.join("cgroup.procs")).is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(group);
        assert!(!folder.exists(), "nothing is left in it");
    }
}
