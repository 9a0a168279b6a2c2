//! Tests of fio jobs: what is done, what is noted, what is refused.

use super::*;
use crate::{Batch, Op, Pacing, Request};

const MIB: u64 = 1 << 20;

fn parse(text: &str) -> FioJobFile {
    FioJobFile::parse(text, "t.fio").unwrap()
}

fn reason(text: &str) -> String {
    FioJobFile::parse(text, "t.fio").unwrap_err().to_string()
}

fn all(workload: &mut AnyGenerator) -> Vec<Request> {
    let (mut batch, mut requests) = (Batch::new(), Vec::new());
    while workload.fill(&mut batch) > 0 {
        requests.extend_from_slice(batch.requests());
        batch.clear();
    }
    requests
}

#[test]
fn a_usual_job_file() {
    let file = parse(
        "; comment\n[global]\nioengine=libaio\ndirect=1\nbs=4k\nsize=1m\nfilename=/dev/sdb\niodepth=8\n\n\
         [fill]\nrw=write\n\n[mixed]\nstonewall\nrw=randrw\nrwmixread=70\nnumjobs=2\n",
    );
    assert_eq!(
        file.notes,
        [
            "direct does not matter to a simulated device; left out",
            "filename does not matter to a simulated device; left out",
        ]
    );
    let mut phases = file.open(16 * MIB, 1).unwrap();
    let names: Vec<Vec<&str>> =
        phases.iter().map(|phase| phase.iter().map(|s| s.name.as_str()).collect()).collect();
    assert_eq!(names, [vec!["fill"], vec!["mixed.0", "mixed.1"]]);
    assert_eq!(phases[0][0].workload.pacing(), Pacing::Closed { depth: 8 });
    let fill = all(&mut phases[0][0].workload);
    assert!(fill.iter().enumerate().all(|(i, r)| r.offset == i as u64 * 4096 && r.op == Op::Write));
    assert_eq!(fill.len(), 256);
    let (first, second) = (all(&mut phases[1][0].workload), all(&mut phases[1][1].workload));
    assert_eq!((first[0].stream, second[0].stream), (1, 2));
    assert_ne!(
        first.iter().map(|r| r.offset).collect::<Vec<_>>(),
        second.iter().map(|r| r.offset).collect::<Vec<_>>()
    );
    let mut slots: Vec<u64> = first.iter().map(|r| r.offset / 4096).collect();
    slots.sort_unstable();
    assert!(slots.into_iter().eq(0..256), "every block once: the random map");
    let reads = first.iter().filter(|r| r.op == Op::Read).count();
    assert!((140..220).contains(&reads), "{reads} of 256 are reads");
}

#[test]
fn options_reach_the_generator() {
    let file = parse(
        "[a]\nrw=randwrite\nbs=8k\noffset=1m\nsize=25%\nrate_iops=1000\nruntime=2s\ntime_based\nfsync=4\nsync=1\n\
         random_distribution=zipf:1.2\nnorandommap\n",
    );
    assert_eq!(file.notes, ["[a]: a rate makes it an open loop; iodepth does not bound it here"]);
    let mut phases = file.open(16 * MIB, 1).unwrap();
    let workload = &mut phases[0][0].workload;
    assert_eq!((workload.footprint(), workload.pacing()), (MIB..5 * MIB, Pacing::Open));
    assert_eq!(workload.time_limit(), Some(Span::from_ms(2000)));
    let requests = all(workload);
    assert_eq!(requests.iter().filter(|r| r.op == Op::Write).count(), 2000);
    assert_eq!(requests.iter().filter(|r| r.op == Op::Flush).count(), 500);
    assert!(requests.iter().all(|r| r.fua == (r.op == Op::Write)));
}

#[test]
fn engines_decide_whether_depth_counts() {
    let pacing_and_notes = |engine: &str| {
        let file = parse(&format!("[a]\n{engine}iodepth=8\n"));
        (file.open(MIB, 1).unwrap()[0][0].workload.pacing(), file.notes)
    };
    assert_eq!(pacing_and_notes("ioengine=libaio\n"), (Pacing::Closed { depth: 8 }, vec![]));
    let note = "[a]: ioengine=psync keeps one request under way, whatever iodepth says".to_owned();
    assert_eq!(pacing_and_notes("ioengine=psync\n"), (Pacing::Closed { depth: 1 }, vec![note]));
    let note =
        "[a]: without ioengine fio would keep one request under way; here iodepth is obeyed".to_owned();
    assert_eq!(pacing_and_notes(""), (Pacing::Closed { depth: 8 }, vec![note]));
    let note = "the page cache is not simulated: buffered requests reach the device one by one";
    assert_eq!(parse("[a]\ndirect=0\n").notes, [note]);
}

#[test]
fn ends_are_fios() {
    let count = |text: &str| all(&mut parse(text).open(16 * MIB, 1).unwrap()[0][0].workload).len();
    assert_eq!(count("[a]\nrw=randwrite\nsize=1m\nloops=3\n"), 768);
    assert_eq!(count("[a]\nrw=randwrite\nsize=1m\nio_size=2m\n"), 512);
    assert_eq!(count("[a]\nrw=randwrite\nsize=1m\nnumber_ios=10\n"), 10);
    assert_eq!(count("[a]\nrw=write\n"), 4096);
    assert_eq!(count("[a]\nrw=write\nend_fsync=1\nsize=4k\n"), 2);
    assert_eq!(count("[a]\nrw=randwrite\nbssplit=4k/50:8k/\nsize=1m\nnumber_ios=7"), 7);
}

#[test]
fn the_seed_of_the_file_wins() {
    let offsets =
        |text: &str, seed| all(&mut parse(text).open(MIB, seed).unwrap()[0][0].workload)[..8].to_vec();
    let text = "[a]\nrw=randwrite\n";
    assert_ne!(offsets(text, 1), offsets(text, 2));
    let text = "[a]\nrw=randwrite\nrandseed=7\n";
    assert_eq!(offsets(text, 1), offsets(text, 2));
}

#[test]
fn copies_may_lie_apart() {
    let file = parse("[a]\nrw=write\nsize=1m\nnumjobs=3\noffset_increment=2m\n");
    let phases = file.open(16 * MIB, 1).unwrap();
    let footprints: Vec<_> = phases[0].iter().map(|stream| stream.workload.footprint()).collect();
    assert_eq!(footprints, [0..MIB, 2 * MIB..3 * MIB, 4 * MIB..5 * MIB]);
    assert_eq!(
        file.notes,
        ["fio gives every job without filename a file of its own; here all share the device"]
    );
}

#[test]
fn a_section_may_be_chosen() {
    let file = || parse("[reader]\nrw=read\n[writer]\nrw=write\n");
    assert_eq!(file().section("writer").unwrap().phases[0][0].name, "writer");
    assert_eq!(
        file().section("writr").unwrap_err().to_string(),
        "t.fio: has no section 'writr'; did you mean 'writer'? (sections: reader, writer)"
    );
}

#[test]
fn what_is_wrong_is_explained_with_its_line() {
    for (text, expected) in [
        ("[a]\nrw=read\niodpeth=4\n", "t.fio:3: unknown option 'iodpeth'; did you mean 'iodepth'?"),
        ("[a]\nfrobnicate=4\n", "t.fio:2: unknown option 'frobnicate'"),
        (
            "[a]\nthinktime=5\n",
            "t.fio:2: thinktime is not done here: a workload does not learn when its requests complete; use rate_iops",
        ),
        (
            "[global]\nbs=4x\n[a]\nrw=read\n",
            "t.fio:2: bs '4x' is wrong: one size by fio's rule, as 4k, 1m or 2g",
        ),
        (
            "[a]\nrw=red\n",
            "t.fio:2: rw 'red' is wrong: read, write, trim, rw, trimwrite, or these with rand before",
        ),
        ("[a]\nrwmixread=120\n", "t.fio:2: rwmixread '120' is wrong: a whole number from 0 to 100"),
        (
            "[a]\nbs=4k,8k\n",
            "t.fio:2: bs '4k,8k' is wrong: one size for all operations; sizes per operation are not done here",
        ),
        (
            "[a]\nrw=randread\nrandom_distribution=normal:20\n",
            "t.fio:3: random_distribution 'normal:20' is wrong: random, zipf:THETA, pareto:H or zoned:...; normal \
             and zoned_abs are not done here",
        ),
        (
            "[a]\nrw=randread\nrandom_distribution=zoned:60/10:30/20\n",
            "t.fio:3: random_distribution 'zoned:60/10:30/20' is wrong: zoned:ACCESSES/SPACE:... in percent, each \
             making 100, as zoned:60/10:30/20:10/70",
        ),
        ("[a]\ntime_based\n", "t.fio:2: time_based '' is wrong: it needs runtime, as in runtime=60s"),
        ("[a\nrw=read\n", "t.fio:1: '[a' is not a section: write [name]"),
        ("[a]\nsize=${SIZE}\n", "t.fio:2: size uses a variable; only plain values are read"),
        (
            "[a]\ninclude other.fio\n",
            "t.fio:2: include is not done here: put the lines of the other file in its place",
        ),
        ("[global]\nrw=read\n", "t.fio:2: the file has no job: add a section such as [job1]"),
        (
            "[a]\niodepth_batch=4\n",
            "t.fio:2: iodepth_batch is not done here: requests are submitted one by one",
        ),
    ] {
        assert_eq!(reason(text), expected);
    }
    let error = parse("[a]\nrw=write\nsize=32m\n").open(16 * MIB, 1).unwrap_err();
    assert_eq!(error.to_string(), "t.fio: [a]: it reaches to 32 MiB and the device ends at 16 MiB");
}

#[test]
fn the_lists_do_not_overlap() {
    for known in KNOWN {
        assert!(!IGNORED.contains(known), "{known}");
        assert!(!REFUSED.iter().any(|(refused, _)| refused == known), "{known}");
        assert_eq!(canonical(known), *known);
    }
    assert!(IGNORED.iter().all(|ignored| !REFUSED.iter().any(|(refused, _)| refused == ignored)));
}
