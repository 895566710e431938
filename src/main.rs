fn main() -> std::process::ExitCode {
    return_freed_memory();
    practicum::cli::main()
}

/// Has the GNU allocator take every large piece from the system and give it back when it is freed.
/// By default it takes to keeping them, in as many places as there are threads, after the first was
/// freed: eight agents that say 5 MB each then cost 120 MB instead of 25.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn return_freed_memory() {
    const LARGE_ALLOCATION: libc::c_int = 256 * 1024;
    #[expect(unsafe_code, reason = "there is no safe way to ask")]
    // SAFETY: it only sets a number in the allocator, and no other thread has begun.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_ALLOCATION);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn return_freed_memory() {}
