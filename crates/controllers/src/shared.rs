//! Texts that many objects have in common, held once.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Texts that are in use, and some that were.
#[derive(Default)]
struct Texts {
    known: HashSet<Arc<str>>,
    /// With so many, those that nobody else has are looked for.
    most: usize,
}

/// With fewer it is not worthwhile to look for those that nobody has any more.
const FEW: usize = 1024;

static TEXTS: Mutex<Option<Texts>> = Mutex::new(None);

/// A text, shared with all who asked for the same one before.
pub(crate) fn share(text: &str) -> Arc<str> {
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    texts.get_or_insert_default().share(text)
}

impl Texts {
    fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.known.get(text) {
            return Arc::clone(known);
        }
        if self.known.len() >= self.most {
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.known.shrink_to_fit();
            self.most = FEW.max(2 * self.known.len());
        }
        let text: Arc<str> = text.into();
        self.known.insert(Arc::clone(&text));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_and_those_that_nobody_has_go() {
        let mut texts = Texts::default();
        let held: Vec<Arc<str>> = (0..10).map(|n| texts.share(&format!("held {n}"))).collect();
        assert!(Arc::ptr_eq(&held[3], &texts.share("held 3")));
        for number in 0..100 * FEW {
            texts.share(&format!("passing {number}"));
        }
        assert!(texts.known.len() <= FEW, "{}", texts.known.len());
        assert!(Arc::ptr_eq(&held[9], &texts.share("held 9")));
    }
}
