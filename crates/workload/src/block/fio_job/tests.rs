//! Tests of fio jobs: what is done, what is noted, what is refused.

mod newer;

use super::*;
use crate::block::together::{RateLimit, Reap, Think};
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

/// The requests of the only job of a text on 16 MiB.
fn requests(text: &str) -> Vec<Request> {
    all(&mut parse(text).open(16 * MIB, 1).unwrap()[0].workload)
}

#[test]
fn a_usual_job_file() {
    let file = parse(
        "; comment\n[global]\nioengine=libaio\ndirect=1\nbs=4k ; as always\nsize=1m\nfilename=/dev/sdb\niodepth=8\n\n\
         [fill]\nrw=write\n\n[mixed]\nstonewall\nrw=randrw\nrwmixread=70\nnumjobs=2\n",
    );
    assert_eq!(file.notes, ["ignored, no effect on a simulated device: direct"]);
    let mut streams = file.open(16 * MIB, 1).unwrap();
    let names: Vec<(&str, &[usize])> = streams.iter().map(|s| (s.name.as_str(), &s.after[..])).collect();
    assert_eq!(names, [("fill", &[][..]), ("mixed.0", &[0]), ("mixed.1", &[0])]);
    assert_eq!(streams[0].workload.pacing(), Pacing::Closed { depth: 8 });
    let fill = all(&mut streams[0].workload);
    assert!(fill.iter().enumerate().all(|(i, r)| r.offset == i as u64 * 4096 && r.op == Op::Write));
    assert_eq!(fill.len(), 256);
    let (first, second) = (all(&mut streams[1].workload), all(&mut streams[2].workload));
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
fn sizes_differ_by_kind_of_request() {
    let text = "[a]\nrw=randrw\nbs=8k,64k\nnumber_ios=500\n";
    let sizes = |requests: &[Request], op| {
        let mut sizes: Vec<u32> = requests.iter().filter(|r| r.op == op).map(|r| r.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    };
    let found = requests(text);
    assert_eq!((sizes(&found, Op::Read), sizes(&found, Op::Write)), (vec![8192], vec![65536]));
    let found = requests("[a]\nrw=randrw\nbssplit=4k/50:8k/50,16k\nnumber_ios=500\n");
    assert_eq!((sizes(&found, Op::Read), sizes(&found, Op::Write)), (vec![4096, 8192], vec![16384]));
    let found = requests("[a]\nrw=randwrite\nbsrange=4k-16k\nnumber_ios=500\n");
    assert_eq!(sizes(&found, Op::Write), [4096, 8192, 12288, 16384]);
    let found = requests("[a]\nrw=randwrite\nbsrange=512-2k\nblockalign=4k\nnumber_ios=500\n");
    assert!(found.iter().all(|r| r.offset % 4096 == 0) && found.iter().any(|r| r.bytes == 512));
}

#[test]
fn random_may_be_partly_sequential_and_sequential_may_skip() {
    let follows = |text: &str| {
        let found = requests(text);
        let next = found.windows(2).filter(|two| two[1].offset == two[0].end()).count();
        (next as f64 / found.len() as f64 * 100.0).round()
    };
    let random = "[a]\nrw=randwrite\nnorandommap\nnumber_ios=10000\n";
    assert!(follows(random) < 1.0);
    let share = follows(&format!("{random}percentage_random=30\n"));
    assert!((68.0..72.0).contains(&share), "{share} % follow");
    assert_eq!(follows(&random.replace("randwrite", "randwrite:8")), 88.0);
    let offsets = |text: &str| requests(text)[..4].iter().map(|r| r.offset / 4096).collect::<Vec<_>>();
    assert_eq!(offsets("[a]\nrw=write:4k\nsize=1m\n"), [0, 2, 4, 6]);
    assert_eq!(offsets("[a]\nrw=read:-8k\nsize=1m\n"), [255, 254, 253, 252]);
}

/// The share of accesses below a tenth of the space, and around its middle.
#[test]
fn distributions_are_those_of_fio() {
    let within = |distribution: &str, from: f64, to: f64| {
        let text =
            format!("[a]\nrw=randread\nbs=512\nrandom_distribution={distribution}\nnumber_ios=30000\n");
        let span = 16.0 * MIB as f64;
        let is_within = |r: &&Request| (from..to).contains(&(r.offset as f64 / span));
        let found = requests(&text);
        found.iter().filter(is_within).count() as f64 / found.len() as f64
    };
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 0.012, "{found}, {expected}");
    // A deviation of 10 %: 68.3 % lie within one on either side.
    near(within("normal:10", 0.4, 0.6), 0.683);
    near(within("zoned:50/5:30/15:20/", 0.0, 0.05), 0.5);
    near(within("zoned:50/5:30/15:20/", 0.2, 1.0), 0.2);
    near(within("zoned_abs:60/1m:40/7m", 0.0, 1.0 / 16.0), 0.6);
    near(within("zoned_abs:60/1m:40/7m", 0.5, 1.0), 0.0);
    near(within("zoned:100/10:0/90,0/10:100/90", 0.0, 0.1), 1.0);
}

#[test]
fn rates_are_limits_in_front_of_a_closed_loop() {
    let rate = |text: &str| {
        let mut streams = parse(&format!("[a]\nioengine=libaio\niodepth=4\n{text}")).open(MIB, 1).unwrap();
        assert_eq!(streams[0].workload.pacing(), Pacing::Closed { depth: 4 });
        streams.remove(0).issue.rate
    };
    let bytes = |per_s| Some(RateLimit::Bytes { per_s });
    let found = rate("rw=randread\nrate=4m\n").unwrap();
    assert_eq!((found.limits, found.waits_out, found.switches), ([bytes(4 << 20), None, None], true, false));
    // What one kind may do does not depend on the mix: who is early becomes the other.
    let found = rate("rw=randrw\nrwmixread=75\nrate_iops=300,100\nio_submit_mode=offload\n").unwrap();
    assert_eq!(found.limits, [bytes(300 * 4096), bytes(100 * 4096), None]);
    assert_eq!((found.waits_out, found.switches, found.ignores_thinking), (false, true, false));
    // Bytes go before requests.
    let found = rate("rw=randwrite\nrate_iops=300\nrate=400k\nrate_ignore_thinktime\n").unwrap();
    assert_eq!((found.limits, found.ignores_thinking), ([None, bytes(400 << 10), None], true));
    let gaps = |us, is_poisson| Some(RateLimit::Gaps { mean: Span::from_us(us), is_poisson });
    let found = rate("rw=randread\nrate_iops=3000\nrate_process=poisson\n").unwrap();
    assert_eq!(found.limits, [gaps(333, true), None, None]);
    let found = rate("rw=randread\nrate_iops=1000\nbssplit=4k/50:8k/50\n").unwrap();
    assert_eq!(found.limits, [gaps(1000, false), None, None]);
    assert_eq!(rate("rw=randread\nrate=,4m\n"), None);
    let found = reason("[a]\nrw=randrw\nbs=4k,8k\nrate=1m\n");
    let expected = "t.fio:4: rate '1m' is wrong: for reads and writes of one size, without sync: fio turns an early read into a write";
    assert_eq!(found, expected);
}

#[test]
fn pauses_delays_and_order_are_read() {
    let file = parse(
        "[a]\nthinktime=2000\nthinktime_blocks=8\n[b]\nwait_for=a\nstartdelay=3\n[c]\nioengine=cpuio\n[d]\n\
         stonewall\nthinktime=2ms\nthinktime_spin=3ms\nthinktime_iotime=1\nthinktime_blocks_type=issue\n\
         ioengine=libaio\niodepth=16\niodepth_low=4\niodepth_batch_complete=8\n",
    );
    assert!(file.notes.contains(&"[c]: ioengine=cpuio issues no requests to a device; left out".to_owned()));
    let streams = file.open(MIB, 1).unwrap();
    let think = Think { time: Span::from_ms(2), every: Some(8), after: None, when_issued: false };
    assert_eq!(streams[0].issue, Issue { think: Some(think), ..Issue::default() });
    assert_eq!((&streams[1].after[..], streams[1].delay), (&[0][..], Span::from_ms(3000)));
    assert_eq!(streams[2].after, [0, 1]);
    let think =
        Think { time: Span::from_ms(3), every: None, after: Some(Span::from_ms(1000)), when_issued: true };
    let reap = Reap { at_once: 8, until_left: Some(4) };
    assert_eq!(streams[2].issue, Issue { think: Some(think), rate: None, reap });
    assert_eq!(
        reason("[a]\n[b]\nwait_for=aa\n"),
        "t.fio:2: wait_for: there is no section 'aa'; did you mean 'a'?"
    );
}

#[test]
fn what_would_change_the_load_is_refused_by_name() {
    for (option, why) in [
        ("latency_target=1ms", "the depth does not adapt to latencies; give iodepth"),
        ("rate_min=1m", "a job is not stopped for being slow; check the result (--assert)"),
        ("flow=1", "jobs do not balance each other; use rate_iops"),
        ("serialize_overlap", "requests for the same blocks may be in flight together; use iodepth=1"),
    ] {
        let name = option.split('=').next().unwrap();
        let expected = format!("t.fio:3: {name} is not supported: {why}");
        assert_eq!(reason(&format!("[a]\nrw=write\n{option}\n")), expected);
    }
    parse(
        "[a]\nrw=write\nlatency_target=0\nserialize_overlap=0\nzonemode=none\nverify=none\nflow=0\nrate_min=0\n",
    );
    let read_back = reason("[a]\nrw=randwrite\nnorandommap\nverify=md5\n");
    assert!(
        read_back.starts_with("t.fio:4: verify is not supported: only a job that writes each"),
        "{read_back}"
    );
    assert_eq!(reason("[a]\nrw=write\nverify=md5\nloops=2\n"), read_back.replace("fio:4", "fio:3"));
    parse("[a]\nrw=write\nverify=crc32c\ndo_verify=0\n[b]\nrw=read\nverify=crc32c\n");
}

#[test]
fn files_are_included_and_variables_replaced() {
    let dir = std::env::temp_dir().join(format!("nvlab-fio-include-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (main, more) = (dir.join("main.fio"), dir.join("more.fio"));
    std::fs::write(&main, "[global]\ninclude more.fio\n[a]\nnumber_ios=7\n").unwrap();
    std::fs::write(&more, "rw=randwrite\nbs=2*$pagesize\n").unwrap();
    let file = FioJobFile::read(&main).unwrap();
    let found = all(&mut file.open(MIB, 1).unwrap()[0].workload);
    assert_eq!((found.len(), found[0].bytes, found[0].op), (7, 8192, Op::Write));
    let text = "[global]\nrw=randwrite\nbs=2*4096\n[a]\nnumber_ios=7\n";
    assert_eq!(FioJobFile::hashed(&main).unwrap(), text);
    std::fs::write(&more, "bs=banana\n").unwrap();
    let error = FioJobFile::read(&main).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}:1: bs 'banana' is wrong", more.display())), "{error}");
    std::fs::write(&more, "include main.fio\n").unwrap();
    assert!(FioJobFile::read(&main).unwrap_err().to_string().contains("nested more than 16 deep"));
    std::fs::remove_dir_all(&dir).unwrap();
    let variable = "[a]\nrw=write\nbs=${PATH_OF_NOTHING}4k\n";
    assert_eq!(requests(variable)[0].bytes, 4096);
    let expected = "t.fio:2: size is the variable NVLAB_NOT_SET, which is not set in the environment";
    assert_eq!(reason("[a]\nsize=${NVLAB_NOT_SET}\n"), expected);
}

#[test]
fn all_errors_of_a_file_are_reported_at_once() {
    let text = "[global]\nbs=4x\n[a]\nrw=red\niodpeth=4\n[b]\nrwmixread=120\nnumjobs=0\n";
    let lines: Vec<String> = reason(text).lines().map(|line| line.chars().take(20).collect()).collect();
    assert_eq!(
        lines,
        [
            "t.fio:5: unknown opt",
            "t.fio:4: rw 'red' is",
            "t.fio:2: bs '4x' is ",
            "t.fio:7: rwmixread '",
            "t.fio:8: numjobs '0'"
        ]
    );
}

#[test]
fn options_reach_the_generator() {
    let file = parse(
        "[a]\nrw=randwrite\nbs=8k\noffset=1m\nsize=25%\nrate_iops=1000\nruntime=2s\ntime_based\nfsync=4\nsync=1\n\
         random_distribution=zipf:1.2\nnorandommap\n",
    );
    assert_eq!(file.notes, [""; 0]);
    let mut streams = file.open(16 * MIB, 1).unwrap();
    let workload = &mut streams[0].workload;
    assert_eq!((workload.footprint(), workload.pacing()), (MIB..5 * MIB, Pacing::Closed { depth: 1 }));
    assert_eq!(workload.time_limit(), Some(Span::from_ms(2000)));
    let mut requests = Vec::new();
    while requests.len() < 2500 {
        let mut batch = Batch::new();
        workload.fill(&mut batch);
        requests.extend_from_slice(batch.requests());
    }
    assert_eq!(requests[..2500].iter().filter(|r| r.op == Op::Flush).count(), 500);
    assert!(requests.iter().all(|r| r.fua == (r.op == Op::Write)));
}

#[test]
fn engines_decide_whether_depth_counts() {
    let pacing_and_notes = |engine: &str| {
        let file = parse(&format!("[a]\n{engine}iodepth=8\n"));
        (file.open(MIB, 1).unwrap()[0].workload.pacing(), file.notes)
    };
    assert_eq!(pacing_and_notes("ioengine=libaio\n"), (Pacing::Closed { depth: 8 }, vec![]));
    let note = "[a]: ioengine=psync keeps one request in flight, regardless of iodepth".to_owned();
    assert_eq!(pacing_and_notes("ioengine=psync\n"), (Pacing::Closed { depth: 1 }, vec![note]));
    let note =
        "[a]: no ioengine (fio uses psync) keeps one request in flight, regardless of iodepth".to_owned();
    assert_eq!(pacing_and_notes(""), (Pacing::Closed { depth: 1 }, vec![note]));
    let note = "the page cache is not simulated: buffered requests reach the device one by one";
    assert_eq!(parse("[a]\ndirect=0\n").notes, [note]);
}

#[test]
fn jobs_end_where_fio_ends_them() {
    let count = |text: &str| all(&mut parse(text).open(16 * MIB, 1).unwrap()[0].workload).len();
    assert_eq!(count("[a]\nrw=randwrite\nsize=1m\nloops=3\n"), 768);
    assert_eq!(count("[a]\nrw=randwrite\nsize=1m\nio_size=2m\n"), 512);
    assert_eq!(count("[a]\nrw=randwrite\nsize=1m\nnumber_ios=10\n"), 10);
    assert_eq!(count("[a]\nrw=write\n"), 4096);
    assert_eq!(count("[a]\nrw=write\nend_fsync=1\nsize=4k\n"), 2);
    assert_eq!(count("[a]\nrw=randwrite\nbssplit=4k/50:8k/\nsize=1m\nnumber_ios=7"), 7);
}

#[test]
fn what_was_written_is_read_back_in_its_order() {
    let text = "[a]\nrw=randwrite\nsize=1m\nverify=crc32c\nioengine=libaio\niodepth=4\nrate_iops=100\n[b]\nstonewall\n";
    let mut streams = parse(text).open(MIB, 1).unwrap();
    let places: Vec<(&str, &[usize])> = streams.iter().map(|s| (s.name.as_str(), &s.after[..])).collect();
    assert_eq!(places, [("a", &[][..]), ("a verify", &[0]), ("b", &[0, 1])]);
    assert_eq!((&streams[1].issue, streams[1].reported_with), (&Issue::default(), Some(0)));
    assert_eq!(streams[1].workload.pacing(), Pacing::Closed { depth: 4 });
    let (written, read) = (all(&mut streams[0].workload), all(&mut streams[1].workload));
    let (flush, written) = written.split_last().unwrap();
    assert!(flush.op == Op::Flush && written.iter().all(|request| request.op == Op::Write));
    let offsets = |requests: &[Request]| requests.iter().map(|request| request.offset).collect::<Vec<_>>();
    assert!(read.iter().all(|request| request.op == Op::Read));
    assert_eq!((offsets(written), written.len()), (offsets(&read), 256));
}

#[test]
fn passes_repeat_where_fios_do() {
    let repeats = |text: &str| {
        let text = format!("[a]\nrw=randwrite\nsize=1m\n{text}");
        let mut workload = parse(&text).open(16 * MIB, 1).unwrap().remove(0).workload;
        assert_eq!(workload.pass_bytes(), Some(MIB));
        let mut found = Vec::new();
        while found.len() < 512 {
            let mut batch = Batch::new();
            workload.fill(&mut batch);
            found.extend(batch.requests().iter().map(|request| request.offset));
        }
        let mut sorted = found[256..512].to_vec();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq((0..256).map(|nth| nth * 4096)), "every block once");
        found[..256] == found[256..512]
    };
    assert!(repeats("loops=2\n") && repeats("io_size=2m\n"));
    assert!(!repeats("loops=2\nrandrepeat=0\n") && !repeats("time_based\nruntime=1\n"));
    assert!(repeats("time_based\nruntime=1\nrandom_generator=lfsr\n"));
    let pass = |text: &str| parse(text).open(MIB, 1).unwrap()[0].workload.pass_bytes();
    assert_eq!(pass("[a]\nrw=randrw\nrwmixread=75\n"), Some(MIB / 4));
    assert_eq!((pass("[a]\nrw=randwrite\nnorandommap\n"), pass("[a]\nrw=randread\n")), (None, Some(0)));
}

#[test]
fn the_seed_of_the_file_wins() {
    let offsets = |text: &str, seed| all(&mut parse(text).open(MIB, seed).unwrap()[0].workload)[..8].to_vec();
    let text = "[a]\nrw=randwrite\n";
    assert_ne!(offsets(text, 1), offsets(text, 2));
    let text = "[a]\nrw=randwrite\nrandseed=7\n";
    assert_eq!(offsets(text, 1), offsets(text, 2));
}

#[test]
fn copies_may_lie_apart() {
    let file = parse("[a]\nrw=write\nsize=1m\nnumjobs=3\noffset_increment=2m\n");
    let streams = file.open(16 * MIB, 1).unwrap();
    let footprints: Vec<_> = streams.iter().map(|stream| stream.workload.footprint()).collect();
    assert_eq!(footprints, [0..MIB, 2 * MIB..3 * MIB, 4 * MIB..5 * MIB]);
    assert_eq!(file.notes, ["fio gives every job without filename its own file; here all share the device"]);
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
            "[global]\nbs=4x\n[a]\nrw=read\n",
            "t.fio:2: bs '4x' is wrong: sizes in fio's notation, e.g. 4k, 1m or 2g; of reads, writes and trims",
        ),
        (
            "[a]\nrw=red\n",
            "t.fio:2: rw 'red' is wrong: read, write, trim, rw, trimwrite, or these with a prefix rand; after a colon, how \
             many requests share a random address (randread:8) or the skip after a sequential one (write:4k, \
             read:-8k)",
        ),
        ("[a]\nrwmixread=120\n", "t.fio:2: rwmixread '120' is wrong: a whole number from 0 to 100"),
        (
            "[a]\nrw=randread\nrandom_distribution=zoned:60/10:30/20\n",
            "t.fio:3: random_distribution 'zoned:60/10:30/20' is wrong: zoned:ACCESSES/SPACE:... in percent, each \
             adding up to 100, e.g. zoned:60/10:30/20:10/70",
        ),
        ("[a\nrw=read\n", "t.fio:1: '[a' is not a section: write [name]"),
        ("[global]\nrw=read\n", "t.fio:2: the file has no job: add a section such as [job1]"),
        (
            "[a]\nread_iolog=x\n",
            "t.fio:2: read_iolog is not supported: use the log as the workload: -w FILE:iolog",
        ),
        ("[a]\nioengine=exec\n", "t.fio:2: no job of the file issues requests to a device"),
    ] {
        assert_eq!(reason(text), expected);
    }
    let error = parse("[a]\nrw=write\noffset=16m\nsize=1m\n").open(16 * MIB, 1).unwrap_err();
    let expected = "t.fio: [a]: it starts at 16 MiB, but the device ends at 16 MiB: give a smaller offset, or a larger device";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_job_ends_with_the_device() {
    let mut streams = parse("[a]\nrw=write\nsize=32m\noffset=2k\nbs=1m\n").open(16 * MIB, 1).unwrap();
    let note = "[a]: it would extend to 32770 KiB; clipped to the end of the device at 16 MiB";
    assert_eq!(streams[0].note.as_deref(), Some(note));
    let found = all(&mut streams[0].workload);
    assert_eq!((found.len(), found[0].offset, found[14].offset), (15, 2048, 2048 + 14 * MIB));
    assert_eq!(parse("[a]\nsize=16m\n").open(16 * MIB, 1).unwrap()[0].note, None);
}

/// Requests begin where the job says, whatever their size.
#[test]
fn an_offset_need_not_be_a_multiple_of_the_size() {
    let found = requests("[a]\nrw=randwrite\nbs=16k\noffset=120k\nsize=1m\n");
    assert_eq!(found.len(), 64);
    assert!(found.iter().all(|request| (request.offset - 120 * 1024).is_multiple_of(16384)));
}

#[test]
fn what_is_left_out_is_noted_with_the_reason() {
    let file =
        parse("[a]\nrw=write\niodepth_batch=4\nnrfiles=3\nverify_fatal=1\nthread\nhttp_host=x\ntime_based\n");
    assert_eq!(
        file.notes,
        [
            "ignored, no effect on a simulated device: http_host, iodepth_batch, thread",
            "ignored: verify_fatal: nvlab checks content itself (nvlab cut)",
            "ignored: nrfiles: one device is one file",
            "[a]: time_based needs runtime; left out",
        ]
    );
}

#[test]
fn newer_options_of_drives_are_left_out_for_a_reason() {
    let text = "[a]\nrw=randwrite\nfdp=1\nfdp_pli=0,1\nsprandom=1\nspr_op=0.15\n";
    let file = parse(text);
    assert_eq!(
        file.notes,
        [
            "ignored: spr_op, sprandom: nvlab preconditions the device itself (--precondition steady)",
            "ignored: fdp, fdp_pli: placement hints are not simulated: the controller chooses streams (ftl.streams)",
        ]
    );
}
