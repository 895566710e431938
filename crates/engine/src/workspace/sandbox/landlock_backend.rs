//! A sandbox of Landlock rules: the kernel refuses every file access that no rule allows. It is used if namespaces
//! are not available, and is weaker: names of files can be guessed, modes and times of the user's files can be
//! changed, and the network is open.

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::inner_steps::InnerSteps;
use super::{OPEN_NETWORK, SandboxBackend};

/// The oldest usable version. With an older one, files outside the sandbox could still be truncated.
const MIN_ABI: ABI = ABI::V3;

/// The newest known version. Features that the kernel lacks are left out.
const BEST_ABI: ABI = ABI::V9;

/// The devices that a process needs. Terminals are not among them, because one of them is the user's.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Tests whether the kernel supports Landlock. The error says why not.
pub fn probe() -> Result<SandboxBackend, String> {
    if !supports(MIN_ABI) {
        return Err("this kernel has no landlock that is new enough".to_owned());
    }
    std::env::current_exe()
        .map(SandboxBackend::Landlock)
        .map_err(|error| format!("this program cannot find itself ({error})"))
}

/// Says whether the kernel has all rules of a version.
fn supports(version: ABI) -> bool {
    let all = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(version));
    let scopes = Scope::from_all(version);
    all.and_then(|all| if scopes.is_empty() { Ok(all) } else { all.scope(scopes) })
        .and_then(Ruleset::create)
        .is_ok()
}

/// Names what an agent can still reach in a sandbox of this kernel's rules, for the plan.
pub fn what_stays_open() -> String {
    describe_open(supports(ABI::V6), supports(ABI::V9))
}

fn describe_open(has_scopes: bool, has_socket_files: bool) -> String {
    let mut open = vec![OPEN_NETWORK];
    if !has_scopes {
        open.push("sockets with abstract names; signals to other processes");
    }
    if !has_socket_files {
        open.push("sockets that are files");
    }
    open.extend(["the list of processes", "names, modes and times of files"]);
    open.join("; ")
}

/// Restricts this process, and all that it starts, to the paths of these steps. After an error nothing may be started.
pub fn restrict_files(steps: &InnerSteps) -> Result<(), String> {
    let InnerSteps { read_only, listable, writable, .. } = steps;
    let restrict = || -> Result<RulesetStatus, RulesetError> {
        let status = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(MIN_ABI))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(BEST_ABI))?
            .scope(Scope::from_all(BEST_ABI))?
            .create()?
            .add_rules(path_beneath_rules(read_only, AccessFs::from_read(BEST_ABI)))?
            .add_rules(path_beneath_rules(listable, AccessFs::ReadDir))?
            .add_rules(path_beneath_rules(["/proc"], AccessFs::from_read(BEST_ABI)))?
            .add_rules(path_beneath_rules(DEVICES, AccessFs::from_file(BEST_ABI)))?
            .add_rules(path_beneath_rules(writable, AccessFs::from_all(BEST_ABI)))?
            .restrict_self()?;
        Ok(status.ruleset)
    };
    match restrict() {
        Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced) => drop_capabilities(),
        Ok(RulesetStatus::NotEnforced) => Err("the kernel did not take the rules".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Drops all capabilities: root could otherwise read the environment of every process, with the user's keys. The
/// rules already ensure that no process started from here gets the capabilities back.
fn drop_capabilities() -> Result<(), String> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).map_err(|error| format!("its powers cannot be dropped: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel cannot be made older, so the newest rules are only tested on kernels that have them.
    #[test]
    fn an_older_kernel_is_not_said_to_hold_what_it_does_not() {
        for (scopes, files, open) in [(false, false, 6), (true, false, 4), (true, true, 3)] {
            let text = describe_open(scopes, files);
            assert_eq!(text.contains("abstract"), !scopes, "{text}");
            assert_eq!(text.contains("sockets that are files"), !files, "{text}");
            assert_eq!(text.split("; ").count(), open, "{text}");
        }
    }
}
