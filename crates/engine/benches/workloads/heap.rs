//! An allocator that counts what is allocated.
#![expect(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, counted.
pub(crate) struct Counting {
    live: AtomicUsize,
    peak: AtomicUsize,
}

impl Counting {
    pub(crate) const fn new() -> Self {
        Self {
            live: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
        }
    }

    /// Bytes in use.
    pub(crate) fn live(&self) -> usize {
        self.live.load(Relaxed)
    }

    /// The most bytes in use since the last reset.
    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Relaxed)
    }

    pub(crate) fn reset_peak(&self) {
        self.peak.store(self.live(), Relaxed);
    }

    fn add(&self, bytes: usize) {
        let live = self.live.load(Relaxed) + bytes;
        self.live.store(live, Relaxed);
        if live > self.peak.load(Relaxed) {
            self.peak.store(live, Relaxed);
        }
    }

    fn remove(&self, bytes: usize) {
        self.live.store(self.live.load(Relaxed) - bytes, Relaxed);
    }
}

// The benchmark has one thread, so plain loads and stores count right and cost little.
// SAFETY: every call goes on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.remove(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.remove(layout.size());
        self.add(size);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
