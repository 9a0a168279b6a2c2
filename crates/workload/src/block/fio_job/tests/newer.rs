//! What newer versions of fio and their examples have.

use super::*;

/// The options of fio's newer examples, each as it is there.
#[test]
fn options_of_newer_examples_are_known() {
    let text = "[a]\nrw=randwrite\natomic=1\napptag_mask=0xffff\nnum_range=1\nwrite_mode=write\nrocm_io=hipfile\n\
                zone_reset_threshold=.1\nrandom_sequence_stride=1\nverify_write_sequence=0\n";
    let notes = parse(text).notes.join("\n");
    assert!(
        notes.contains("apptag_mask, num_range, random_sequence_stride, rocm_io, write_mode\n"),
        "the threshold is one of zones: {notes}"
    );
    assert!(
        notes.contains("ignored: atomic: whether a power cut may tear a write is a property of the design"),
        "{notes}"
    );
    for (option, why) in [
        ("num_range=8", "a trim has one range; give smaller trims (bs)"),
        ("write_mode=zeroes", "only data is written; zeroes, uncor and verify are not simulated"),
        (
            "random_distribution=sequence:2,0,1",
            "sequences of blocks are not supported; give the requests as a trace (nvlab explain formats)",
        ),
    ] {
        let name = option.split('=').next().unwrap();
        let expected = format!("t.fio:3: {name} is not supported: {why}");
        assert_eq!(reason(&format!("[a]\nrw=randwrite\n{option}\n")), expected);
    }
}

/// Four zones of 4 MiB, of which 3 MiB can be written.
fn zoned() -> crate::ZoneShape {
    crate::ZoneShape { size_bytes: 4 * MIB, capacity_bytes: 3 * MIB, open_max: 3 }
}

/// The requests of the only job of a text on 16 MiB in zones.
fn in_zones(text: &str) -> Vec<Request> {
    let mut file = parse(text);
    file.on = Some(zoned());
    all(&mut file.open(16 * MIB, 1).unwrap()[0].workload)
}

/// Checks that every write is at the write pointer; returns the resets.
fn checked(requests: &[Request]) -> usize {
    let mut pointers = [0; 4];
    for request in requests {
        let (zone, offset) = ((request.offset / (4 * MIB)) as usize, request.offset % (4 * MIB));
        match request.op {
            Op::Write => {
                assert_eq!(offset, pointers[zone], "{request:?}");
                pointers[zone] += request.bytes as u64;
                assert!(pointers[zone] <= 3 * MIB, "{request:?}");
            }
            Op::Trim => {
                assert_eq!((offset, request.bytes as u64), (0, 4 * MIB));
                pointers[zone] = 0;
            }
            Op::Read => assert!(offset + request.bytes as u64 <= pointers[zone], "{request:?}"),
            Op::Flush => {}
        }
    }
    requests.iter().filter(|request| request.op == Op::Trim).count()
}

#[test]
fn jobs_write_zones_in_order() {
    let text = "[a]\nzonemode=zbd\nbs=128k\nrw=";
    let found = in_zones(&format!("{text}write\nsize=2z\noffset=1z\n"));
    assert_eq!(checked(&found), 3, "8 MiB are two zones and the first one again");
    assert_eq!((found[0].offset, found.len()), (4 * MIB, 64 + 3));
    let found = in_zones(&format!("{text}randwrite\nzonesize=4m\nmax_open_zones=2\nio_size=64m\n"));
    assert!(checked(&found) > 18);
    // At most two are partly written at a time.
    let mut partly = std::collections::BTreeSet::new();
    for request in found.iter().filter(|request| request.op == Op::Write) {
        let (zone, end) = (request.offset / (4 * MIB), request.end() % (4 * MIB));
        if end == 3 * MIB {
            partly.remove(&zone)
        } else {
            partly.insert(zone)
        };
        assert!(partly.len() <= 2, "{partly:?}");
    }
    let found = in_zones(&format!("{text}randrw\nio_size=32m\n"));
    checked(&found);
    assert!(found.iter().filter(|request| request.op == Op::Read).count() > 60);
    let often = "zone_reset_threshold=0.5\nzone_reset_frequency=0.1\n";
    let found = in_zones(&format!("{text}randwrite\nio_size=64m\n{often}"));
    assert!(checked(&found) > 30, "a zone of ten writes is reset once half is written");
}

#[test]
fn zones_without_a_zoned_device() {
    let text = "[a]\nzonemode=zbd\nzonesize=4m\nzonecapacity=3m\nbs=128k\nrw=write\nio_size=15m\n";
    let found = requests(text);
    assert_eq!(found.len(), 120, "without resets");
    assert_eq!(found.iter().map(|request| request.offset % (4 * MIB)).max(), Some(3 * MIB - 128 * 1024));
    let error = |text: &str| parse(text).open(16 * MIB, 1).unwrap_err().to_string();
    let none = error("[a]\nzonemode=zbd\nrw=write\n");
    assert!(none.contains("it writes to zones, but this device has none"), "{none}");
    let counted = error("[a]\nrw=write\noffset=9z\n");
    assert!(counted.contains("offset=9z counts zones, but this device has none"), "{counted}");
    let mut file = parse("[a]\nrw=randwrite\n");
    file.on = Some(zoned());
    let refused = file.open(16 * MIB, 1).unwrap_err().to_string();
    assert!(refused.contains("written in order"), "{refused}");
    assert!(reason("[a]\nzonemode=zbd\nzonecapacity=3m\n").contains("at most zonesize"));
}

#[test]
fn strides_leave_out_what_they_skip() {
    let found = requests(
        "[a]\nzonemode=strided\nzonesize=256k\nzonerange=1m\nzoneskip=1m\nbs=128k\nrw=read\nio_size=1m\n",
    );
    let offsets: Vec<u64> = found.iter().map(|request| request.offset / 1024).collect();
    assert_eq!(offsets, [0, 128, 2048, 2176, 4096, 4224, 6144, 6272]);
    assert!(
        reason("[a]\nzonesize=1m\nrw=randread\n").starts_with("t.fio:2: zonesize is not supported: strides")
    );
    assert_eq!(
        reason("[a]\nzonemode=strided\nrw=read\n"),
        "t.fio:2: zonemode 'strided' is wrong: strided needs zonesize"
    );
}

#[test]
fn sizes_are_calculated() {
    let found = requests("[a]\nrw=write\nbs=1k\nsize=5*1024*1024*24105/8/5142400\noffset=(2^10+1k)/2\n");
    assert_eq!((found.len(), found[0].offset), (3, 1024));
}

/// 524 zones of 256 MiB, on a smaller device.
#[test]
fn an_offset_behind_the_device_says_so() {
    let error = parse("[dev1]\noffset=140660178944\nsize=10G\n").open(64 << 30, 1).unwrap_err().to_string();
    let expected = "t.fio: [dev1]: it starts at 131 GiB, but the device ends at 64 GiB: give a smaller offset, or a \
                    larger device";
    assert_eq!(error, expected);
}

#[test]
fn pauses_beside_a_rate_are_noted() {
    let notes = |more: &str| parse(&format!("[a]\nrw=read\nthinktime=1ms\n{more}")).notes.join("\n");
    assert!(!notes("").contains("thinktime"));
    assert!(notes("rate=1m\n").contains("[a]: thinktime with a rate: the job catches up after a pause"));
    assert!(notes("rate_iops=9\nrate_ignore_thinktime\n").contains("pauses do not count towards the rate"));
}

/// What fio 3.33 wrote by its iolog: first and last offset in units of 4 KiB, and how many.
#[test]
fn a_size_beside_that_of_the_file_is_how_much() {
    let places = |rw: &str, more: &str| {
        let all = requests(&format!("[a]\nrw={rw}\nbs=4k\n{}\n", more.replace(' ', "\n")));
        let at = |request: Option<u64>| request.unwrap() / 4096;
        let offsets = || all.iter().map(|request| request.offset);
        (all.len(), at(offsets().min()), at(offsets().max()))
    };
    for (job, expected) in [
        ("size=1m filesize=8m", (256, 0, 255)),
        ("size=1m filesize=4m offset=2m", (256, 512, 767)),
        ("size=16m filesize=4m", (1024, 0, 1023)),
        ("size=50% filesize=4m", (512, 0, 511)),
        ("filesize=4m", (1024, 0, 1023)),
        ("size=8m filesize=4m io_size=2m", (512, 0, 511)),
    ] {
        assert_eq!(places("write", job), expected, "{job}");
    }
    for (job, count, beyond) in [
        ("size=1m filesize=8m", 256, 1900),
        ("size=1m filesize=4m io_size=2m", 512, 900),
        ("size=1m filesize=4m loops=2", 512, 900),
        ("size=16m filesize=4m", 1024, 1022),
    ] {
        let (requests, least, most) = places("randwrite", job);
        assert_eq!(requests, count, "{job}");
        assert!(least < 124 && most > beyond && most < 2048, "{job}: {least} to {most}");
    }
}

#[test]
fn options_that_make_other_requests_are_refused() {
    for option in ["create_only=1", "create_only", "pre_read=1"] {
        let name = option.split('=').next().unwrap();
        let why = reason(&format!("[a]\nrw=randread\n{option}\n"));
        assert!(why.starts_with(&format!("t.fio:3: {name} is not supported: ")), "{why}");
    }
    assert_eq!(requests("[a]\nrw=write\nbs=1m\nsize=2m\npre_read=0\n").len(), 2);
}
