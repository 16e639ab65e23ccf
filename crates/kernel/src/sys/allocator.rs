//! The C library's allocator.

/// Gives memory back to the kernel that was freed and that the allocator keeps for later.
///
/// Takes some milliseconds; worthwhile after much was needed for a short time.
pub fn release_unused_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes no pointers, and memory that is in use stays as it is.
    unsafe {
        libc::malloc_trim(0);
    }
}
