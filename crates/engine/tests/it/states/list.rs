//! Lists of states of the datastore, each with what the data plane must know in it.
//!
//! A list runs in several ways: as it is, backwards, with everything removed in between, one update at a time, without
//! flushes in between, and each state alone. However a state is reached, the data plane must know the same.

use std::fmt::Write as _;

use tortie_engine::message::SetId;
use tortie_engine::{Config, Engine, Update};
use tortie_selector::{Selector, ids::make_unique_id};

use crate::states::build::{LOCAL, Object, tier};
use crate::states::data_plane::DataPlane;
use crate::states::datastore::{absent, ready_cluster};
use crate::states::text::{self, SetNames};

/// A state of the datastore, and what the data plane must know in it.
#[derive(Clone)]
pub(crate) struct State {
    objects: Vec<Update>,
    /// Lines in the form of [`text`].
    expected: &'static str,
}

/// How often the engine is asked what changed.
#[derive(Clone, Copy, PartialEq)]
enum Flush {
    EveryUpdate,
    EveryState,
    AtTheEnd,
}

/// A state with the default tier and these objects.
pub(crate) fn world(objects: impl IntoIterator<Item = Object>) -> State {
    let default = tier("default").tier_order(1_000_000.0);
    bare_world([default].into_iter().chain(objects))
}

/// A state with these objects and no others.
pub(crate) fn bare_world(objects: impl IntoIterator<Item = Object>) -> State {
    State {
        objects: objects.into_iter().map(|object| object.0).collect(),
        expected: "",
    }
}

/// Runs a list in all ways.
#[track_caller]
pub(crate) fn check(states: impl IntoIterator<Item = State>) {
    check_with(&Config::for_node(LOCAL), states);
}

#[track_caller]
pub(crate) fn check_with(config: &Config, states: impl IntoIterator<Item = State>) {
    let states: Vec<State> = states.into_iter().collect();
    let reversed: Vec<State> = states.iter().rev().cloned().collect();
    let empty = bare_world([]).gives("");
    let with_empties: Vec<State> = states
        .iter()
        .flat_map(|state| [state.clone(), empty.clone()])
        .collect();
    let upside_down = |state: &State| {
        let mut state = state.clone();
        state.objects.reverse();
        state
    };
    let all_upside_down: Vec<State> = states.iter().map(upside_down).collect();
    let mut back_to_the_last = with_empties.clone();
    back_to_the_last.extend(states.last().cloned());

    run(config, "as it is", &states, Flush::EveryState);
    run(config, "backwards", &reversed, Flush::EveryState);
    run(
        config,
        "emptied in between",
        &with_empties,
        Flush::EveryState,
    );
    for (way, states) in [
        ("as it is, one by one", &states),
        ("backwards, one by one", &reversed),
        ("each state upside down, one by one", &all_upside_down),
    ] {
        run(config, way, states, Flush::EveryUpdate);
    }
    for (way, states) in [
        ("as it is, at once", &states),
        ("emptied in between, at once", &back_to_the_last),
    ] {
        run(config, way, states, Flush::AtTheEnd);
    }
    for (number, state) in states.iter().enumerate() {
        let way = format!("state {number} alone");
        run(config, &way, std::slice::from_ref(state), Flush::AtTheEnd);
    }
}

#[track_caller]
fn run(config: &Config, way: &str, states: &[State], flush: Flush) {
    if let Err(complaint) = try_run(config, states, flush) {
        panic!("{way}: {complaint}");
    }
}

fn try_run(config: &Config, states: &[State], flush: Flush) -> Result<(), String> {
    let mut engine = Engine::new(config.clone());
    engine.on_update(&ready_cluster());
    let mut data_plane = DataPlane::new(config.overlaps);
    if flush == Flush::EveryUpdate {
        engine.on_in_sync();
    }
    let mut before: &[Update] = &[];
    for (number, state) in states.iter().enumerate() {
        let at = |complaint| format!("step {number}: {complaint}");
        for update in changes(before, &state.objects) {
            engine.on_update(&update);
            if flush == Flush::EveryUpdate {
                data_plane.apply(engine.flush()).map_err(at)?;
            }
        }
        engine.on_in_sync();
        let is_last = number + 1 == states.len();
        if flush != Flush::AtTheEnd || is_last {
            data_plane.apply(engine.flush()).map_err(at)?;
            compare(&data_plane, state).map_err(at)?;
            expect_silence(&mut engine, state).map_err(at)?;
        }
        before = &state.objects;
    }
    Ok(())
}

/// What is told again is not news.
fn expect_silence(engine: &mut Engine, state: &State) -> Result<(), String> {
    let asked_again = engine.flush();
    state
        .objects
        .iter()
        .for_each(|update| engine.on_update(update));
    let told_again = engine.flush();
    match asked_again.iter().chain(&told_again).next() {
        None => Ok(()),
        Some(message) => Err(format!("sent without a reason: {message:?}")),
    }
}

/// The updates that lead from one content of the datastore to another.
fn changes(before: &[Update], after: &[Update]) -> Vec<Update> {
    let gone = before
        .iter()
        .map(absent)
        .filter(|gone| !after.iter().any(|update| absent(update) == *gone));
    let new = after.iter().filter(|update| !before.contains(update));
    gone.chain(new.cloned()).collect()
}

fn compare(data_plane: &DataPlane, state: &State) -> Result<(), String> {
    let (expected, names) = state.expectation();
    let got = text::lines(data_plane, &names);
    if got == expected {
        return Ok(());
    }
    let mut report = "the data plane knows something else\n".to_owned();
    for (title, lines, others) in [("missing", &expected, &got), ("too much", &got, &expected)] {
        for line in lines.iter().filter(|line| !others.contains(line)) {
            let _ = writeln!(report, "  {title:8} {line}");
        }
    }
    Err(report)
}

/// The identifier of a set, by what stands between the braces.
pub(crate) fn set_id(name: &str) -> SetId {
    let selector_id = |text: &str| Selector::parse(text).expect("a selector").unique_id();
    if let Some((kind, service)) = name.split_once(' ')
        && (kind == "svc" || kind == "svcnoport")
    {
        return make_unique_id(kind, service).into();
    }
    match name.rsplitn(3, '|').collect::<Vec<_>>()[..] {
        [port, protocol, selector] if !protocol.is_empty() => {
            let content = format!("{},{protocol},{port}", selector_id(selector));
            make_unique_id("n", &content).into()
        }
        _ => selector_id(name).into(),
    }
}

// === impl State ===

impl State {
    /// The same with more objects.
    pub(crate) fn and(mut self, objects: impl IntoIterator<Item = Object>) -> Self {
        self.objects
            .extend(objects.into_iter().map(|object| object.0));
        self
    }

    /// What the data plane must know, as lines.
    pub(crate) fn gives(mut self, expected: &'static str) -> Self {
        self.expected = expected;
        self
    }

    /// The expected lines in order, and the names of the sets in them.
    fn expectation(&self) -> (Vec<String>, SetNames) {
        let mut names = SetNames::new();
        let mut lines = Vec::new();
        for line in self.expected.lines().map(str::trim) {
            let mut line = line.to_owned();
            if line.starts_with('{') {
                let (name, members) = line[1..].rsplit_once("}:").expect("`}:` in it");
                names.insert(set_id(name), name.to_owned());
                let mut members: Vec<&str> = members.split_whitespace().collect();
                members.sort_unstable();
                line = format!("{{{name}}}: {}", members.join(" "));
            }
            if !line.is_empty() {
                lines.push(line.trim_end().trim_end_matches(':').to_owned());
            }
        }
        lines.sort();
        (lines, names)
    }
}
