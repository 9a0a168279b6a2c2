//! What newer versions of fio and their examples have.

use super::*;

/// The options of fio's newer examples, each as it is there.
#[test]
fn options_of_newer_examples_are_known() {
    let text = "[a]\nrw=randwrite\natomic=1\napptag_mask=0xffff\nnum_range=1\nwrite_mode=write\nrocm_io=hipfile\n\
                zone_reset_threshold=.1\nrandom_sequence_stride=1\nverify_write_sequence=0\n";
    let notes = parse(text).notes.join("\n");
    assert!(notes.contains(
        "apptag_mask, num_range, random_sequence_stride, rocm_io, write_mode, zone_reset_threshold"
    ));
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

#[test]
fn zones_are_one_clear_line() {
    let text = "[global]\nzonemode=zbd\nzonesize=256M\nmax_open_zones=32\n[a]\nrw=randwrite\noffset=9z\nsize=40z\n\
                offset_increment=1Z\n";
    let expected =
        "is not supported: zoned devices and strides are not simulated; use offset and size in bytes";
    assert_eq!(reason(text), format!("t.fio:2: zonemode {expected}"));
    assert_eq!(reason("[a]\noffset=9z\nsize=40z\n"), format!("t.fio:2: offset {expected}"));
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
