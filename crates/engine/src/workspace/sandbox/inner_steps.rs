//! What the inner side of a sandbox does before it becomes the agent, and how it is asked to.

use std::path::PathBuf;

use super::{SUBCOMMAND, path_text};
use practicum_agents::agents::Launch;

/// The user without rights that the agent becomes if this program runs as root. Systems call it nobody.
pub const UNPRIVILEGED_ID: u32 = 65534;

/// The steps that complete a sandbox from the inside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InnerSteps {
    /// Paths that can be read, with everything below, if the kernel's rules for files are used.
    pub read_only: Vec<PathBuf>,
    /// Folders whose names can be listed, with the folders below, whatever of their content can be read.
    pub listable: Vec<PathBuf>,
    /// Paths that can also be written to.
    pub writable: Vec<PathBuf>,
    /// The user and group that the process becomes; `None` to stay who it is.
    pub user: Option<u32>,
    /// The most processes and threads of this user in this sandbox.
    pub processes: Option<u64>,
    /// The most open files of one process.
    pub open_files: Option<u64>,
    /// The largest file that can be written, in bytes.
    pub file_size: Option<u64>,
}

impl InnerSteps {
    /// Wraps a launch so that `program`, which is this one, takes the steps and then becomes the agent.
    pub fn wrap(&self, launch: Launch, program: PathBuf) -> Launch {
        let mut args = vec![SUBCOMMAND.to_owned()];
        let paths = self.read_only.iter().map(|path| ("--ro", path));
        let paths = paths.chain(self.listable.iter().map(|path| ("--list", path)));
        let paths = paths.chain(self.writable.iter().map(|path| ("--rw", path)));
        for (flag, path) in paths {
            args.extend([flag.to_owned(), path_text(path)]);
        }
        let numbers = [
            ("--user", self.user.map(u64::from)),
            ("--processes", self.processes),
            ("--open-files", self.open_files),
            ("--file-size", self.file_size),
        ];
        for (flag, number) in numbers {
            args.extend(number.into_iter().flat_map(|number| [flag.to_owned(), number.to_string()]));
        }
        args.extend(["--".to_owned(), path_text(&launch.program)]);
        args.extend(launch.args);
        Launch { program, args, ..launch }
    }
}
