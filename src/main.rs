//! The program `practicum`: starts the command line of the library.

fn main() -> std::process::ExitCode {
    return_freed_memory();
    practicum::cli::main()
}

/// Makes the GNU allocator request each large block from the system and return it when it is freed. By default,
/// after the first such block was freed, the allocator keeps them, in as many places as there are threads. Eight
/// agents with 5 MB of output each would then need 120 MB in place of 25.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn return_freed_memory() {
    const LARGE_ALLOCATION: libc::c_int = 256 * 1024;
    #[expect(unsafe_code, reason = "there is no safe way to ask")]
    // SAFETY: this only sets a number in the allocator, and no other thread has started.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_ALLOCATION);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn return_freed_memory() {}
