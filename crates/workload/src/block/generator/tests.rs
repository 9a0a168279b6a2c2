//! Tests of generators: golden values, distributions, bounds.

use super::*;

const SEED: u64 = 1;

fn open(text: &str, capacity: u64) -> AnyGenerator {
    GeneratorSpec::parse(text).unwrap().open(text, capacity, SEED).unwrap()
}

fn take(text: &str, capacity: u64, count: usize) -> Vec<Request> {
    let mut workload = open(text, capacity);
    let (mut batch, mut requests) = (Batch::new(), Vec::new());
    while requests.len() < count && workload.fill(&mut batch) > 0 {
        requests.extend_from_slice(batch.requests());
        batch.clear();
    }
    requests.truncate(count);
    requests
}

fn reason(text: &str) -> String {
    GeneratorSpec::parse(text).unwrap_err().to_string()
}

#[test]
fn golden_addresses() {
    let slots = |text: &str| take(text, 1 << 30, 6).iter().map(|r| r.offset / 4096).collect::<Vec<_>>();
    for (text, golden) in GOLDEN {
        assert_eq!(slots(text), golden, "{text}");
    }
}
const GOLDEN: [(&str, [u64; 6]); 7] = [
    ("uniform", [241780, 162951, 259660, 98129, 48843, 248736]),
    ("shuffled", [131634, 100039, 258880, 195727, 60756, 59465]),
    ("sequential", [0, 1, 2, 3, 4, 5]),
    ("zipf", [184895, 91732, 59089, 93301, 259912, 59089]),
    ("hotcold", [182790, 130932, 49747, 29048, 150004, 35330]),
    ("selfsimilar", [145859, 253057, 230961, 134444, 184895, 219831]),
    ("jesd219", [182790, 130932, 12436, 34893, 150004, 8832]),
];

/// The shares of sizes and places are those of the standard, within five standard deviations of a million draws.
#[test]
fn jesd219_has_the_shares_of_the_standard() {
    let count = 1_000_000;
    let capacity = 1u64 << 34;
    let requests = take("jesd219", capacity, count);
    let is_share = |found: usize, percent: f64| {
        let (expected, share) = (count as f64 * percent / 100.0, percent / 100.0);
        (found as f64 - expected).abs() < 5.0 * (expected * (1.0 - share)).sqrt()
    };
    let of_size = |bytes: u32| requests.iter().filter(|request| request.bytes == bytes).count();
    let small = [1024, 1536, 2048, 2560, 3072, 3584].map(|bytes| (bytes, 1.0));
    let large = [(512, 4.0), (4096, 67.0), (8192, 10.0), (16384, 7.0), (32768, 3.0), (65536, 3.0)];
    let mut seen = 0;
    for (bytes, percent) in small.into_iter().chain(large) {
        let found = of_size(bytes);
        assert!(is_share(found, percent), "{bytes} B: {found}");
        seen += found;
    }
    assert_eq!(seen, count, "no other size");
    let within = |from: f64, to: f64| {
        let range = (from * capacity as f64) as u64..(to * capacity as f64) as u64;
        requests.iter().filter(|request| range.contains(&request.offset)).count()
    };
    for (from, to, percent) in [(0.0, 0.05, 50.0), (0.05, 0.2, 30.0), (0.2, 1.0, 20.0)] {
        let found = within(from, to);
        assert!(is_share(found, percent), "{from} to {to}: {found}");
    }
    assert!(requests.iter().all(|request| request.op == Op::Write && request.offset % 4096 == 0));
    let mean = requests.iter().map(|request| request.bytes as f64).sum::<f64>() / count as f64;
    assert!((mean / GeneratorSpec::parse("jesd219").unwrap().sizes.mean() - 1.0).abs() < 0.01);
    assert!(reason("jesd219 bs=4KiB").contains("the sizes are those of JESD219"));
}

#[test]
fn places_may_be_shares_and_aligned() {
    let requests = take("uniform span=30% offset=50% bs=512B align=4KiB", 1 << 30, 10_000);
    let (start, end) = (1u64 << 29, (1u64 << 29) + (0.3 * (1u64 << 30) as f64) as u64);
    assert!(requests.iter().all(|r| r.offset >= start && r.end() <= end && r.offset % 4096 == 0));
    assert!(
        requests.iter().any(|r| r.offset > end - (1 << 24))
            && requests.iter().any(|r| r.offset < start + (1 << 24))
    );
    assert!(reason("uniform span=130%").contains("span"));
}

#[test]
fn golden_arrivals() {
    let times: Vec<u64> = take("uniform rate=20k/s", 1 << 30, 4).iter().map(|r| r.at.ps()).collect();
    assert_eq!(times, [51_630_049, 138_770_719, 148_330_918, 166_343_579]);
    let times: Vec<u64> =
        take("uniform rate=3/s arrivals=regular", 1 << 30, 4).iter().map(|r| r.at.ps()).collect();
    assert_eq!(times, [0, 333_333_333_333, 666_666_666_667, 1_000_000_000_000]);
}

#[test]
fn everything_stays_inside_and_aligned() {
    // Zones are those of a device: their tests are beside them.
    for kind in KINDS.into_iter().filter(|kind| *kind != zones::KIND) {
        let mores = [
            "",
            " read=50% trim=10% flush=7",
            " bs=4KiB/50%,12KiB/50% read=50%",
            " bs=16KiB align=4KiB",
            " rate=1M/s",
        ];
        for more in mores {
            if kind == jesd219::KIND && more.contains("bs=") {
                continue;
            }
            let text = format!("{kind} offset=1MiB span=100KiB{more}");
            let requests = take(&text, 2 << 20, 20_000);
            assert_eq!(requests.len(), 20_000, "{text}");
            let data = requests.iter().filter(|r| r.op != Op::Flush);
            for request in data {
                let is_inside = request.offset >= 1 << 20 && request.end() <= (1 << 20) + 100 * 1024;
                assert!(is_inside && request.offset.is_multiple_of(4096), "{text}: {request:?}");
            }
            assert!(requests.is_sorted_by_key(|r| r.at), "{text}");
        }
    }
}

#[test]
fn uniform_and_shuffled_cover_the_space_evenly() {
    let mut counts = vec![0u32; 256];
    take("uniform", 1 << 20, 256_000).iter().for_each(|r| counts[(r.offset >> 12) as usize] += 1);
    // Mean 1000, sigma 31.6: chi squared over 255 degrees is 255 with sigma 22.6.
    let chi: f64 = counts.iter().map(|&c| (c as f64 - 1000.0).powi(2) / 1000.0).sum();
    assert!((chi - 255.0).abs() < 5.0 * 22.6, "{chi}");
    let requests = take("shuffled", 1 << 20, 512);
    for pass in requests.chunks(256) {
        let mut slots: Vec<u64> = pass.iter().map(|r| r.offset >> 12).collect();
        assert!(!slots.is_sorted());
        slots.sort_unstable();
        assert!(slots.iter().copied().eq(0..256), "every block once per pass");
    }
    assert_ne!(requests[..256], requests[256..], "the second pass has another order");
}

#[test]
fn hot_blocks_get_their_share() {
    let share = |text: &str, hot_blocks: u64| {
        let requests = take(text, 1000 * 4096, 200_000);
        requests.iter().filter(|r| r.offset / 4096 < hot_blocks).count() as f64 / 200_000.0
    };
    // Sigma is at most 0.0011.
    assert!((share("hotcold hot=10/90", 100) - 0.9).abs() < 0.005);
    assert!((share("hotcold", 200) - 0.8).abs() < 0.005);
    assert!((share("hotcold hot=10/90 scatter=yes", 100) - 0.1).abs() < 0.1, "scattered: not in front");
    assert!((share("selfsimilar scatter=no", 200) - 0.8).abs() < 0.01);
    assert!((share("selfsimilar scatter=no", 40) - 0.64).abs() < 0.01, "80/20 within 80/20");
    let norm: f64 = (1..=1000).map(|k| (k as f64).powf(-0.99)).sum();
    let hottest: f64 = (1..=10).map(|k| (k as f64).powf(-0.99)).sum::<f64>() / norm;
    assert!((share("zipf scatter=no", 10) - hottest).abs() < 0.005);
}

#[test]
fn scattering_moves_ranks_and_keeps_their_weights() {
    let sorted_counts = |text: &str| {
        let mut counts = vec![0u32; 1000];
        take(text, 1000 * 4096, 100_000).iter().for_each(|r| counts[(r.offset / 4096) as usize] += 1);
        counts.sort_unstable();
        counts
    };
    assert_eq!(sorted_counts("zipf"), sorted_counts("zipf scatter=no"));
}

#[test]
fn mixes_have_their_shares_and_do_not_move_addresses() {
    let requests = take("uniform read=70% trim=5%", 1 << 30, 100_000);
    let share = |op| requests.iter().filter(|r| r.op == op).count() as f64 / 1e5;
    assert!((share(Op::Read) - 0.7).abs() < 0.01 && (share(Op::Trim) - 0.05).abs() < 0.01);
    let writes = take("uniform", 1 << 30, 100_000);
    assert!(requests.iter().zip(&writes).all(|(a, b)| a.offset == b.offset));
    assert!(take("uniform rw=randread", 1 << 30, 1000).iter().all(|r| r.op == Op::Read));
    assert!(take("uniform trim=100%", 1 << 30, 1000).iter().all(|r| r.op == Op::Trim));
    let rw = take("uniform rw=randrw", 1 << 30, 10_000);
    assert!((rw.iter().filter(|r| r.op == Op::Read).count() as f64 / 1e4 - 0.5).abs() < 0.03);
}

#[test]
fn a_trimmed_block_is_written_next() {
    let requests = take("uniform rw=randtrimwrite until=101io", 1 << 30, 1000);
    assert_eq!(requests.len(), 101);
    for pair in requests.chunks_exact(2) {
        assert_eq!((pair[0].op, pair[1].op, pair[0].offset), (Op::Trim, Op::Write, pair[1].offset));
    }
}

#[test]
fn flushes_come_after_every_nth_write() {
    let requests = take("uniform read=50% flush=3 until=1000io", 1 << 30, 10_000);
    let mut writes = 0;
    for pair in requests.windows(2) {
        writes += u32::from(pair[0].op == Op::Write);
        let is_due = pair[0].op == Op::Write && writes % 3 == 0;
        assert_eq!(pair[1].op == Op::Flush, is_due, "after write {writes}");
    }
    assert_eq!(requests.iter().filter(|r| r.op != Op::Flush).count(), 1000);
    assert!(requests.iter().filter(|r| r.op == Op::Flush).all(|r| r.bytes == 0 && r.offset == 0));
}

#[test]
fn sequential_positions_are_kept_per_direction() {
    let requests = take("sequential read=50% span=64KiB", 1 << 20, 100);
    for op in [Op::Read, Op::Write] {
        let slots: Vec<u64> = requests.iter().filter(|r| r.op == op).map(|r| r.offset / 4096).collect();
        assert!(slots.iter().enumerate().all(|(i, &slot)| slot == i as u64 % 16), "{slots:?}");
    }
}

#[test]
fn sizes_have_their_shares() {
    let requests = take("uniform bs=4KiB/75%,64KiB/25%", 1 << 30, 100_000);
    let large = requests.iter().filter(|r| r.bytes == 65_536).count() as f64 / 1e5;
    assert!((large - 0.25).abs() < 0.01);
    assert!(requests.iter().all(|r| r.bytes == 4096 || r.bytes == 65_536));
}

#[test]
fn open_loops_keep_their_rate_and_end_in_time() {
    let requests = take("uniform rate=20k/s until=10s", 1 << 30, 1_000_000);
    // Poisson: 200 000 with sigma 447.
    assert!((requests.len() as f64 - 200_000.0).abs() < 5.0 * 447.0, "{}", requests.len());
    assert!(requests.last().unwrap().at.seconds() < 10.0);
    let workload = open("uniform rate=20k/s until=10s", 1 << 30);
    assert_eq!((workload.pacing(), workload.time_limit()), (Pacing::Open, Some(Span::from_ms(10_000))));
    let regular = take("uniform rate=1k/s arrivals=regular until=1s", 1 << 30, 1_000_000);
    assert_eq!(regular.len(), 1000);
}

#[test]
fn limits_end_it_and_it_stays_ended() {
    let mut workload = open("uniform until=1MiB bs=8KiB", 1 << 30);
    assert_eq!(workload.len_hint(), Some(128));
    let mut batch = Batch::new();
    let mut count = 0;
    while workload.fill(&mut batch) > 0 {
        count += batch.len();
        batch.clear();
    }
    assert_eq!((count, workload.fill(&mut batch), workload.len_hint()), (128, 0, Some(0)));
    assert_eq!(open("uniform", 1 << 30).len_hint(), None);
    assert_eq!(take("uniform until=1e3 io", 1 << 30, 5000).len(), 1000);
}

#[test]
fn values_may_have_blanks() {
    let spaced = GeneratorSpec::parse("uniform bs=8 KiB span=1 GiB read=70 % until=60 s").unwrap();
    assert_eq!(spaced, GeneratorSpec::parse("uniform bs=8KiB span=1GiB read=70% until=60s").unwrap());
}

#[test]
fn the_pattern_and_the_shares_go_together() {
    let mix = |text: &str| GeneratorSpec::parse(text).unwrap().mix;
    assert_eq!(
        mix("uniform rw=randwrite bs=4KiB qd=32 read=70% span=1GiB"),
        Mix::Share { read: 0.7, trim: 0.0 }
    );
    assert_eq!(mix("uniform rw=randrw"), Mix::Share { read: 0.5, trim: 0.0 });
    assert_eq!(mix("uniform rw=randtrim"), Mix::Share { read: 0.0, trim: 1.0 });
    assert_eq!(mix("sequential rw=trimwrite"), Mix::TrimThenWrite);
    assert_eq!(mix("uniform read=0 trim=25%"), Mix::Share { read: 0.0, trim: 0.25 });
}

/// `qd` is that of each thread, `rate` that of all.
#[test]
fn threads_have_a_depth_each() {
    let opened = |text: &str| GeneratorSpec::parse(text).unwrap().open("it", 1 << 20, 1).unwrap();
    let paced = |text: &str| (opened(text).threads(), opened(text).pacing());
    assert_eq!(paced("uniform"), (1, Pacing::Closed { depth: 1 }));
    assert_eq!(paced("uniform threads=8"), (8, Pacing::Closed { depth: 8 }));
    assert_eq!(paced("uniform threads=8 qd=4"), (8, Pacing::Closed { depth: 32 }));
    assert_eq!(paced("uniform threads=8 rate=1k/s"), (8, Pacing::Open));
}

#[test]
fn wrong_texts_are_explained() {
    for (text, expected) in [
        (
            "unifrom",
            "workload 'unifrom': unknown kind 'unifrom'; did you mean 'uniform'? (known: uniform, shuffled, \
             sequential, zipf, hotcold, selfsimilar, zones, jesd219)",
        ),
        (
            "uniform raed=70%",
            "workload 'uniform raed=70%': unknown key 'raed'; did you mean 'read'? (known: rw, read, trim, bs, align, qd, \
             threads, rate, arrivals, span, offset, flush, fua, until)",
        ),
        (
            "uniform theta=1",
            "workload 'uniform theta=1': unknown key 'theta' (known: rw, read, trim, bs, align, qd, threads, rate, \
             arrivals, span, offset, flush, fua, until)",
        ),
        ("uniform bs", "workload 'uniform bs': 'bs' needs a value: bs=..."),
        ("uniform qd=1 qd=2", "workload 'uniform qd=1 qd=2': 'qd' is given twice"),
        ("uniform qd=0", "workload 'uniform qd=0': qd=0 is wrong: a whole number from 1 to 65536"),
        (
            "uniform rw=write",
            "workload 'uniform rw=write': rw=write is wrong: randread, randwrite, randrw, randtrim or randtrimwrite; \
             sequential ones need 'sequential'",
        ),
        (
            "uniform rate=20k/s qd=3",
            "workload 'uniform rate=20k/s qd=3': qd= is a closed loop and rate= an open one: give only one",
        ),
        (
            "uniform read=70% trim=40%",
            "workload 'uniform read=70% trim=40%': read and trim together are more than 100 %",
        ),
        (
            "hotcold hot=80",
            "workload 'hotcold hot=80': hot=80 is wrong: SPACE/ACCESSES in percent, both above 0 and below 100, e.g. \
             20/80: 20 % of the space gets 80 % of the accesses",
        ),
        ("zipf theta=-1", "workload 'zipf theta=-1': theta=-1 is wrong: a number above 0, at most 10"),
        (
            "uniform until=tomorrow",
            "workload 'uniform until=tomorrow': until=tomorrow is wrong: a time (60 s), a number of requests \
             (1e6 io) or a size (2 TiB)",
        ),
    ] {
        assert_eq!(reason(text), expected);
    }
    assert!(reason("uniform bs=4KB").starts_with("workload 'uniform bs=4KB': bs: `4KB` is not a size"));
}

/// As in fio, and a number of bytes as it is.
#[test]
fn sizes_need_no_unit() {
    let spec = |text: &str| GeneratorSpec { ..GeneratorSpec::parse(text).unwrap() };
    let with_units = spec("uniform bs=4KiB span=1MiB offset=64KiB align=4KiB");
    assert_eq!(spec("uniform bs=4k span=1048576 offset=64k align=4096"), with_units);
    assert_eq!(spec("uniform bs=4k/60%,64k/40%").sizes, spec("uniform bs=4KiB/60%,64KiB/40%").sizes);
}

#[test]
fn what_does_not_fit_is_explained() {
    for (text, expected) in [
        ("uniform span=2MiB", "w: it extends to 2 MiB, but the device ends at 1 MiB"),
        ("uniform offset=1000B", "w: offset 1 kB is not a multiple of 512 B"),
        ("uniform bs=2MiB", "w: requests of 2 MiB do not fit in 1 MiB"),
        ("hotcold span=4KiB", "w: 1 blocks are too few for 2 zones"),
        ("uniform offset=4MiB", "w: requests of 4 KiB do not fit in 0 B"),
    ] {
        let error = GeneratorSpec::parse(text).unwrap().open("w", 1 << 20, SEED).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

/// A device prepared by drawn writes must not be asked for the same ones again: data that was written together would die together.
#[test]
fn what_is_drawn_is_not_what_will_be_asked() {
    const COUNT: usize = 1000;
    for text in
        ["uniform rw=randwrite", "zipf rw=randwrite", "hotcold rw=randwrite", "selfsimilar rw=randwrite"]
    {
        let workload = open(text, 1 << 30);
        let asked = take(text, 1 << 30, COUNT);
        let mut draws = workload.draws().unwrap().remove(0);
        let mut draw = || {
            let (rank, bytes) = draws.draw();
            draws.start + draws.ranks.slot_of(rank) * bytes as u64
        };
        let alike = asked.iter().filter(|request| request.offset == draw()).count();
        assert!(alike < COUNT / 10, "{text}: {alike} of {COUNT} are the same");
    }
}
