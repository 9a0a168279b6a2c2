//! From the kernel's block events to a trace with response times: `block_rq_issue` when a request is given to the
//! driver, `block_rq_complete` when it was answered, as text of tracefs with times in microseconds.
//!
//! A completion belongs to the first outstanding request of its kind and sector.

use crate::Result;
use nvlab_units::{Span, Time};
use nvlab_trace::columns::{Columns, Origin};
use nvlab_workload::replay::Program;
use nvlab_trace::{Format, write_file};
use nvlab_workload::{Op, Request};
use std::collections::{HashMap, VecDeque};
use std::path::Path;

const SECTOR_BYTES: u64 = 512;

/// Writes the events of the device `major:minor`. What was asked and not answered at the end is an error, so is an event
/// that is not understood.
pub fn convert(ftrace: &Path, device: &str, out: &Path) -> Result<String> {
    let text = std::fs::read_to_string(ftrace).map_err(|error| format!("{}: {error}", ftrace.display()))?;
    let columns = columns(&text, &device.replace(':', ","))?;
    write_file(&columns, Format::Nvt, out)?;
    let program = Program::of(&columns).ok_or("no response times")?;
    let us = |span: Span| span.ps() / 1_000_000;
    let (waiting, computing) =
        (us(program.recorded_waiting), us(program.recorded - program.recorded_waiting));
    Ok(format!("{} requests, waiting {waiting} us, computing {computing} us", columns.len()))
}

fn columns(text: &str, device: &str) -> Result<Columns> {
    let mut events = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let event = Event::read(line, device);
        events.extend(event.map_err(|problem| format!("line {}: {problem}: {line}", number + 1))?);
    }
    // Several processors' events are merged by time, which is that of each: completions first, as they were seen.
    events.sort_by_key(|event| event.at);
    let mut outstanding: HashMap<(Op, u64), VecDeque<usize>> = HashMap::new();
    let mut requests: Vec<(Request, Option<Span>)> = Vec::new();
    for Event { at, issued, op, sector, sectors } in events {
        let same = outstanding.entry((op, sector)).or_default();
        if issued {
            same.push_back(requests.len());
            let (offset, bytes) = (sector * SECTOR_BYTES, u32::try_from(sectors * SECTOR_BYTES)?);
            requests.push((Request { at, offset, bytes, op, ..Request::default() }, None));
        } else {
            let row = same.pop_front().ok_or_else(|| format!("{op} at {sector} was answered, not asked"))?;
            let (request, response) = &mut requests[row];
            *response = Some(at.since(request.at));
        }
    }
    let mut columns = Columns::new(Origin { format: "block events".into(), hash: 0 });
    for (request, response) in requests {
        let missing = || format!("{} at byte {} was not answered", request.op, request.offset);
        columns.push_answered(request, response.ok_or_else(missing)?);
    }
    columns.rebase();
    Ok(columns)
}

struct Event {
    at: Time,
    issued: bool,
    op: Op,
    sector: u64,
    sectors: u64,
}

impl Event {
    /// `COMMAND-PID [CPU] FLAGS SECONDS.MICROSECONDS: block_rq_issue: 7,0 WS 4096 () 2048 + 8 ...`; `None`: of another
    /// device or event.
    fn read(line: &str, device: &str) -> std::result::Result<Option<Event>, &'static str> {
        if line.contains("LOST") {
            return Err("events were lost");
        }
        let found = [(": block_rq_issue: ", true), (": block_rq_complete: ", false)]
            .into_iter()
            .find_map(|(name, issued)| line.split_once(name).map(|(before, after)| (before, after, issued)));
        let Some((before, after, issued)) = found else { return Ok(None) };
        let time = before.rsplit(' ').next().and_then(|time| time.split_once('.'));
        let time =
            time.and_then(|(s, us)| Some(s.parse::<u64>().ok()? * 1_000_000 + us.parse::<u64>().ok()?));
        let at = Time::ZERO + Span::from_us(time.ok_or("no time")?);
        let Some(after) = after.strip_prefix(device).and_then(|after| after.strip_prefix(' ')) else {
            return Ok(None);
        };
        let kind = after.split(' ').next().unwrap_or_default();
        let (_, place) = after.split_once(") ").ok_or("no place")?;
        let mut words = place.split(' ');
        let (sector, plus, sectors) = (words.next(), words.next(), words.next());
        if plus != Some("+") {
            return Err("no place");
        }
        let number = |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok()).ok_or("no place");
        let (sector, sectors) = (number(sector)?, number(sectors)?);
        // A first F: with a flush before it, which is a request of its own.
        let op = match kind.as_bytes() {
            [b'F', b'F', ..] => Op::Flush,
            [b'R', ..] => Op::Read,
            [b'W', ..] | [b'F', b'W', ..] => Op::Write,
            [b'D', ..] => Op::Trim,
            _ => return Err("an operation that a trace cannot say"),
        };
        if sectors == 0 && op != Op::Flush && !issued {
            // The end of a request that had a flush before or after it, whose parts were seen.
            return Ok(None);
        }
        let sector = if op == Op::Flush { 0 } else { sector };
        Ok(Some(Event { at, issued, op, sector, sectors }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# tracer: nop
     is-7 [001] ..... 10.000005: block_rq_issue: 7,0 RS 4096 () 8 + 8 be,0,4 [is]
   loop-8 [000] ..... 10.000007: block_rq_issue: 8,0 RS 4096 () 8 + 8 be,0,4 [is]
     is-7 [001] ..... 10.000010: block_rq_issue: 7,0 WS 8192 () 64 + 16 be,0,4 [is]
   loop-8 [000] ..... 10.000015: block_rq_complete: 7,0 WS () 64 + 16 be,0,4 [0]
   loop-8 [000] ..... 10.000025: block_rq_complete: 7,0 RS () 8 + 8 be,0,4 [0]
     is-7 [001] ..... 10.000030: block_rq_issue: 7,0 FF 0 () 0 + 0 none,0,0 [kworker/0:1H]
   loop-8 [000] ..... 10.000031: block_rq_complete: 7,0 FF () 18446744073709551615 + 0 none,0,0 [0]
   loop-8 [000] ..... 10.000031: block_rq_complete: 7,0 WS () 0 + 0 be,0,4 [0]
";

    #[test]
    fn issues_and_completions_are_matched() {
        let columns = columns(TEXT, "7,0").unwrap();
        let seen: Vec<_> = columns.iter().map(|r| (r.at.ps(), r.op, r.offset, r.bytes)).collect();
        let us = 1_000_000;
        assert_eq!(
            seen,
            [(0, Op::Read, 4096, 4096), (5 * us, Op::Write, 32768, 8192), (25 * us, Op::Flush, 0, 0)]
        );
        assert_eq!(columns.response_ps().unwrap(), [20 * us, 5 * us, us]);
    }

    #[test]
    fn gaps_are_refused() {
        let without =
            |part: &str| TEXT.lines().filter(|line| !line.contains(part)).collect::<Vec<_>>().join("\n");
        assert!(
            columns(&without("complete: 7,0 RS"), "7,0")
                .unwrap_err()
                .to_string()
                .contains("was not answered")
        );
        assert!(columns(&without("issue: 7,0 WS"), "7,0").unwrap_err().to_string().contains("not asked"));
        let lost = format!("{TEXT}CPU:0 [LOST 3 EVENTS]\n");
        assert!(columns(&lost, "7,0").unwrap_err().to_string().contains("line 10: events were lost"));
    }
}
