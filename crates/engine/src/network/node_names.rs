//! One shared copy of each node's name, for the hundred thousands of places that refer to a node.

use std::sync::Arc;

use hashbrown::HashSet;

/// Few enough to keep forever.
const SMALLEST_SWEEP: usize = 1024;

/// Names are dropped from the set once in a while, when nothing else holds them.
#[derive(Debug, Default)]
pub(super) struct NodeNames {
    names: HashSet<Arc<str>>,
    /// The size at which unused names are looked for: twice what was left the last time, so the search costs a constant
    /// share of the insertions.
    sweep_at: usize,
}

// === impl NodeNames ===

impl NodeNames {
    /// The shared copy of a name.
    pub(super) fn get(&mut self, name: &str) -> Arc<str> {
        if let Some(name) = self.names.get(name) {
            return Arc::clone(name);
        }
        if self.names.len() >= self.sweep_at.max(SMALLEST_SWEEP) {
            self.names.retain(|name| Arc::strong_count(name) > 1);
            self.sweep_at = 2 * self.names.len();
        }
        let name: Arc<str> = Arc::from(name);
        self.names.insert(Arc::clone(&name));
        name
    }
}
