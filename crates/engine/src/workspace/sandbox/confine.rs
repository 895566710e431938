//! Completes a sandbox from the inside: limits, an unprivileged user, rules for files, and forbidden system calls.

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getgid, getrlimit, getuid, set_dumpable_behavior, setrlimit,
};
use rustix::thread::{Gid, Uid, UnshareFlags, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::inner_steps::InnerSteps;
use super::{landlock_backend, system_calls};

/// Takes the steps in this process, which has a single thread. They hold for all that it starts. After an error
/// nothing may be started.
pub fn confine_this_process(steps: &InnerSteps) -> Result<(), String> {
    limit(Resource::Core, Some(0))?;
    limit(Resource::Nofile, steps.open_files)?;
    limit(Resource::Fsize, steps.file_size)?;
    let mut counts_alone = true;
    if let Some(user) = steps.user {
        become_user(user)?;
        // The kernel counts the processes of a user in each namespace of users alone. Some systems forbid to make one.
        counts_alone = enter_user_namespace().is_ok();
    }
    if counts_alone {
        limit(Resource::Nproc, steps.processes)?;
    }
    if !(steps.read_only.is_empty() && steps.writable.is_empty()) {
        landlock_backend::restrict_files(steps)?;
    }
    system_calls::forbid_dangerous_calls()
}

fn limit(resource: Resource, most: Option<u64>) -> Result<(), String> {
    let Some(most) = most else { return Ok(()) };
    // A limit that is lower already stays.
    let most = getrlimit(resource).maximum.map_or(most, |hard| hard.min(most));
    let both = Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(resource, both).map_err(|error| format!("the limit of {resource:?} cannot be set: {error}"))
}

fn become_user(id: u32) -> Result<(), String> {
    let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
    set_thread_groups(&[])
        .and_then(|()| set_thread_res_gid(group, group, group))
        .and_then(|()| set_thread_res_uid(user, user, user))
        .map_err(|error| format!("it cannot become user {id}: {error}"))
}

/// Enters a new namespace of users in which only the present user exists.
fn enter_user_namespace() -> std::io::Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    // Otherwise the files below belong to root, because this process was root before.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    #[expect(unsafe_code, reason = "there is no safe way to ask")]
    // SAFETY: a namespace of users changes neither open files nor memory, and this process has a single thread.
    unsafe {
        rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER)?;
    }
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))
}
