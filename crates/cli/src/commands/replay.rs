//! `tortie replay`

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read as _, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use tortie_engine::record::{Event, Replay};

use crate::args;

/// No object of a datastore is longer.
const MAX_LINE: u64 = 64 << 20;

pub(super) fn run(args: &args::Replay) -> Result<ExitCode> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    if args.file == Path::new("-") {
        replay(&mut std::io::stdin().lock(), "standard input", &mut out)?;
    } else {
        let name = args.file.display().to_string();
        let file = File::open(&args.file).with_context(|| format!("cannot read {name}"))?;
        replay(&mut BufReader::new(file), &name, &mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Plays the lines of a recording; every message is a line.
fn replay(input: &mut impl BufRead, name: &str, out: &mut impl Write) -> Result<()> {
    let mut replay = Replay::default();
    let mut line = String::new();
    for number in 1_usize.. {
        line.clear();
        let place = || format!("{name}, line {number}");
        let length = input
            .take(MAX_LINE)
            .read_line(&mut line)
            .with_context(place)?;
        if length == 0 {
            break;
        }
        if length as u64 == MAX_LINE {
            bail!("{}: longer than {MAX_LINE} bytes", place());
        }
        if line.trim().is_empty() {
            continue;
        }
        let event = Event::from_line(&line).with_context(place)?;
        let mut written = Ok(());
        let mut write = |message| {
            if written.is_ok() {
                written = serde_json::to_writer(&mut *out, &message)
                    .map_err(std::io::Error::from)
                    .and_then(|()| writeln!(out));
            }
        };
        replay.play(&event, &mut write).with_context(place)?;
        written?;
    }
    Ok(())
}
