//! Answers that are remembered for a while.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// A question, of which only the hash is kept: some hold secrets.
pub(super) type Key = [u8; 32];

/// Answers of the last moments; a bounded number of them.
pub(super) struct Memory<T> {
    lasts: Duration,
    most: usize,
    answers: Mutex<HashMap<Key, (Instant, T)>>,
}

/// What stands for a question.
pub(super) fn key(question: &impl Serialize) -> Key {
    let mut hash = Sha256::new();
    // Types of Kubernetes can always be written as JSON; were one not, its questions would be asked each time.
    match serde_json::to_vec(question) {
        Ok(bytes) => hash.update(bytes),
        Err(_) => hash.update(uuid::Uuid::new_v4()),
    }
    hash.finalize().into()
}

impl<T: Clone> Memory<T> {
    pub(super) fn new(lasts: Duration, most: usize) -> Self {
        Self {
            lasts,
            most,
            answers: Mutex::default(),
        }
    }

    pub(super) fn get(&self, key: &Key) -> Option<T> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, answer) = answers.get(key)?;
        (since.elapsed() < self.lasts).then(|| answer.clone())
    }

    pub(super) fn put(&self, key: Key, answer: T) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= self.most {
            answers.retain(|_, (since, _)| since.elapsed() < self.lasts);
        }
        // Too many at once: to ask again is better than to grow.
        if answers.len() >= self.most {
            answers.clear();
        }
        answers.insert(key, (Instant::now(), answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_forgotten_in_time() {
        let memory = Memory::new(Duration::from_millis(40), 10);
        memory.put(key(&"a"), 1);
        assert_eq!(memory.get(&key(&"a")), Some(1));
        assert_eq!(memory.get(&key(&"b")), None);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(memory.get(&key(&"a")), None);
    }

    #[test]
    fn there_are_never_too_many() {
        let memory = Memory::new(Duration::from_mins(1), 10);
        for number in 0..100 {
            memory.put(key(&number), number);
            assert!(memory.answers.lock().unwrap().len() <= 10);
        }
        assert_eq!(memory.get(&key(&99)), Some(99));
    }
}
