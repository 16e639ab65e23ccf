//! Recordings of an engine's input: no text makes reading or playing it panic, and a line that is read is written alike.

use tortie_engine::Config;
use tortie_engine::record::{Event, Replay};

use crate::text;

/// Checks it with these bytes, and panics if it does not hold.
pub fn check(data: &[u8]) {
    let text = text(data);
    let mut replay = Replay::default();
    let start = Event::Start(Config::for_node("n1"));
    let events = text.lines().filter_map(|line| Event::from_line(line).ok());
    for event in std::iter::once(start).chain(events) {
        let again = Event::from_line(&event.to_line()).expect("a line that was written");
        // Not a number is the one value that is not equal to itself, and JSON has no such number.
        assert_eq!(again, event);
        replay
            .play(&event, &mut |message| drop(message))
            .expect("a recording that has begun");
    }
    for event in [Event::InSync, Event::Flush] {
        replay
            .play(&event, &mut |message| drop(message))
            .expect("a recording that has begun");
    }
}
