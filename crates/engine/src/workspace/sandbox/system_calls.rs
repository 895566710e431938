//! Forbids the system calls that no agent needs and that break out of sandboxes most often.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Calls that are refused whatever their arguments.
const FORBIDDEN: &[libc::c_long] = &[
    // Work that the kernel does later, past other rules.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Keys of the user.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    // The file system as others see it.
    libc::SYS_chroot,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_umount2,
    // The kernel itself.
    libc::SYS_acct,
    libc::SYS_bpf,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
    libc::SYS_perf_event_open,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_userfaultfd,
];

/// The flags that make a namespace.
const NAMESPACE_FLAGS: [libc::c_int; 8] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
    // For time. The library does not name it.
    0x80,
];

/// Requests to a terminal that type into it.
const TYPING_REQUESTS: [u64; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

/// A call with this bit is the same call, made in the way of 32-bit programs on 64-bit processors.
const X32_BIT: libc::c_long = 0x4000_0000;

/// Refuses the forbidden calls in this process and all that it starts.
pub fn forbid_dangerous_calls() -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("system calls cannot be forbidden: {error}");
    for program in [refusing_filter(), missing_call_filter()] {
        let program = program.map_err(|error| failed(&error))?;
        seccompiler::apply_filter(&program).map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// Makes the filter that answers "not permitted".
fn refusing_filter() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in FORBIDDEN {
        rules.extend(both_ways(*call).map(|call| (call, Vec::new())));
    }
    let namespaces = NAMESPACE_FLAGS
        .iter()
        .map(|flag| argument_rule(0, SeccompCmpOp::MaskedEq(*flag as u64), *flag as u64))
        .collect::<Result<Vec<_>, _>>()?;
    // `unshare` has another meaning of the flag for time than `clone`, which has the number of a signal there.
    let without_time = namespaces[..NAMESPACE_FLAGS.len() - 1].to_vec();
    rules.extend(both_ways(libc::SYS_unshare).map(|call| (call, namespaces.clone())));
    rules.extend(both_ways(libc::SYS_clone).map(|call| (call, without_time.clone())));
    let typing = TYPING_REQUESTS
        .iter()
        .map(|request| argument_rule(1, SeccompCmpOp::Eq, *request))
        .collect::<Result<Vec<_>, _>>()?;
    rules.extend(both_ways(libc::SYS_ioctl).map(|call| (call, typing.clone())));
    compile(rules, libc::EPERM)
}

/// Makes the filter that hides `clone3`. Its flags are in memory, where no filter can look. Programs then use `clone`.
fn missing_call_filter() -> Result<BpfProgram, seccompiler::BackendError> {
    compile(both_ways(libc::SYS_clone3).map(|call| (call, Vec::new())).into(), libc::ENOSYS)
}

fn both_ways(call: libc::c_long) -> [i64; 2] {
    [call, call | X32_BIT]
}

fn argument_rule(
    index: u8,
    compare: SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(index, SeccompCmpArgLen::Dword, compare, value)?])
}

fn compile(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    error: libc::c_int,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let refuse = SeccompAction::Errno(error.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, std::env::consts::ARCH.try_into()?)?.try_into()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_filters_can_be_made() {
        assert!(super::refusing_filter().is_ok_and(|program| program.len() > 50));
        assert!(super::missing_call_filter().is_ok());
    }
}
