//! The keys of `[media.NAME]` for flash. All keys of a medium are also keys of a part file.

use crate::key::Preset::{Is, Nothing, Required};
use crate::key::{Key, key};
use crate::toml_reader::datum::Shape;

const FLASH: &[&str] = &["nand", "nor"];

/// A number of things.
pub const COUNT: Shape = Shape::Count { min: 1, max: u32::MAX as u64 };
/// Any size.
pub const SIZE: Shape = Shape::Size { min: 1, max: u64::MAX };
/// Any share.
pub const SHARE: Shape = Shape::Share { max: 1.0 };

/// Keys of a medium, and of flash.
pub const KEYS: &[Key] = &[
    key(
        "media.*.part",
        &[],
        Shape::Text,
        Nothing("the medium is described in the design, with its `kind`"),
        "\"tlc-2022\"",
    )
    .about(
        "Datasheet of the medium: a built-in NAME (`nvlab parts list`), or ./FILE.toml beside the design. Other keys of \
         the table override single values of it.",
    ),
    key(
        "media.*.kind",
        &[],
        Shape::OneOf(&[
            ("nand", "NAND flash: pages programmed in order, blocks erased"),
            ("nor", "NOR flash: bytes programmed (bits from 1 to 0), blocks erased"),
            ("pcm", "phase-change or spin-torque memory: overwritten in place, wears"),
            ("ram", "DRAM or SRAM: overwritten in place, volatile unless it has a backup"),
            ("disk", "a rotating disk"),
        ]),
        Nothing("the kind of the part"),
        "\"nand\"",
    )
    .about("Technology of the medium. Not needed with `part`."),
    key("media.*.size", &["pcm", "disk"], SIZE, Required, "\"1 GiB\"")
        .about("Capacity of the medium in this design."),
    key(
        "media.*.size",
        &["ram"],
        SIZE,
        Nothing("what the map and write buffer of a page map take, rounded up to a power of two; otherwise required"),
        "\"1 GiB\"",
    )
    .about("Capacity of the memory in this design."),
    key("media.*.word", &["ram", "pcm"], Shape::Size { min: 1, max: 1 << 16 }, Required, "\"64 B\"")
        .about("Bytes per access, the width of the data path; a power of two."),
    key(
        "media.*.cell",
        &["nand"],
        Shape::OneOf(&[("slc", "1 bit per cell"), ("mlc", "2 bits"), ("tlc", "3 bits"), ("qlc", "4 bits")]),
        Required,
        "\"tlc\"",
    )
    .about(
        "Bits per cell. Properties that depend on it (times, pages per word line, endurance) have their own keys.",
    ),
    key("media.*.page", FLASH, Shape::Size { min: 1, max: 1 << 24 }, Required, "\"16 KiB\"").about(
        "One page of one plane of one chip, without spare area. NOR: the bytes that one program operation writes.",
    ),
    key("media.*.oob", FLASH, Shape::Size { min: 0, max: 1 << 20 }, Is("0 B"), "\"2 KiB\"")
        .about("Spare area of a page (out of band): error correction and the controller's metadata."),
    key("media.*.pages", FLASH, COUNT, Nothing("from `block`"), "1_152")
        .about("Pages per erase block of one plane, counting all bits of a cell."),
    key("media.*.block", FLASH, SIZE, Nothing("from `pages`"), "\"512 KiB\"")
        .about("Size of an erase block of one plane: an alternative to `pages`."),
    key("media.*.blocks", FLASH, COUNT, Required, "460").about("Erase blocks per plane."),
    key("media.*.planes", FLASH, Shape::Count { min: 1, max: 64 }, Is("1"), "4")
        .about("Planes of a die, which can be programmed and erased together."),
    key("media.*.one_shot", &["nand"], Shape::Count { min: 1, max: 8 }, Is("1"), "3")
        .about("Pages of a word line that one program operation writes in each plane (current TLC: 3)."),
    key("media.*.read", FLASH, Shape::Times, Required, "[\"45 us\", \"60 us\", \"75 us\"]").about(
        "Array read time, cells to page register. One time, or one per page of a word line that is programmed in one \
         shot: lower, middle, upper.",
    ),
    key(
        "media.*.plane_reads",
        &["nand"],
        Shape::OneOf(&[
            ("one", "a read senses a page of one plane, and the reads of a die are serialized"),
            ("multi", "one command senses the same page of all planes; other reads of the die wait"),
            (
                "independent",
                "as multi; in addition, planes can sense different pages at the same time (independent multi-plane read)",
            ),
        ]),
        Is("one"),
        "\"multi\"",
    )
    .about(
        "How a die reads its planes. Programs and erases always use all planes of `array.planes`. With \"multi\" and \
         \"independent\" consecutive units lie in the same page of all planes before the next page of the word line.",
    ),
    key(
        "media.*.registers",
        &["nand"],
        Shape::OneOf(&[
            (
                "one",
                "the next read of a plane starts when the previous data has crossed the channel, and data of a program \
                 crosses it when the previous program is done",
            ),
            (
                "two",
                "cache read: the next page is sensed while the previous one crosses the channel; cache program: one page \
                 of the `one_shot` pages crosses during the previous program, the others when it is done",
            ),
            ("unlimited", "transfers never delay the next read or program of the cells"),
        ]),
        Is("unlimited"),
        "\"two\"",
    )
    .about("Page registers of a plane: what it can do while data crosses the channel."),
    key("media.*.decode", &["nand"], Shape::Time, Is("0 ns"), "\"5 us\"").about(
        "Latency of the controller's error correction after the last byte has arrived, for each array read of the host. \
         Decoding keeps up with the channel, so it does not delay other reads.",
    ),
    key("media.*.program", FLASH, Shape::Time, Required, "\"1 ms\"")
        .about("Program time, register to cells: one program operation with all its planes and one-shot pages."),
    key("media.*.erase", FLASH, Shape::Time, Required, "\"5 ms\"").about("Time to erase one block."),
    key("media.*.page_buffer", &["nor"], Shape::Size { min: 1, max: 1 << 20 }, Nothing("no page buffers"), "\"256 B\"")
        .about(
            "Size of one page buffer of a chip: bytes that are programmed together at `page_buffer_rate`. Only logs use it \
             (`ftl.log.page_buffers`); eNVy programs a page of a gang in one step.",
        ),
    key("media.*.page_buffer_rate", &["nor"], Shape::Rate, Nothing("no page buffers"), "\"465 KiB/s\"")
        .about("Rate at which one chip programs through its page buffers, one filling while the other is programmed."),
    key("media.*.program_worn", &["nor"], Shape::Time, Nothing("programs do not slow down"), "\"10 us\"").about(
        "Program time at the rated endurance, at least that of a fresh part; it grows by the same amount with each cycle, also \
         beyond. (eNVy section 2: each operation slightly degrades the times.)",
    ),
    key("media.*.erase_worn", &["nor"], Shape::Time, Nothing("erases do not slow down"), "\"100 ms\"")
        .about("Erase time at the rated endurance; see `program_worn`."),
    key("media.*.program_limit", &["nor"], Shape::Time, Nothing("no limit"), "\"250 us\"").about(
        "A program that takes longer has failed. (eNVy section 2: 250 us.) eNVy does not handle failures.",
    ),
    key("media.*.erase_limit", &["nor"], Shape::Time, Nothing("no limit"), "\"10 s\"")
        .about("An erase that takes longer has failed, and its block is bad. (eNVy section 2: 10 s.)"),
    key("media.*.cycles_done", &["nor"], Shape::Count { min: 0, max: u32::MAX as u64 }, Is("0"), "50_000").about(
        "Cycles every block has done before the run. Only `program_worn` and `erase_worn` depend on them: figures of wear \
         count the run alone.",
    ),
    key("media.*.suspend", FLASH, Shape::TimeOrNone, Is("none"), "\"20 us\"").about(
        "A read suspends a program or erase in progress and starts after this time; \"none\": it waits until that \
         operation is done.",
    ),
    key("media.*.resume", FLASH, Shape::Time, Is("0 ns"), "\"5 us\"").about(
        "Time from the end of the last access until a suspended operation resumes (eNVy section \
         3.4: \"a few microseconds\").",
    ),
    key("media.*.suspends", FLASH, COUNT, Nothing("no limit"), "16").about(
        "How often one program or erase may be suspended. After that, reads wait until it is done, so that a stream of \
         reads cannot starve it.",
    ),
    key("media.*.copy_back", FLASH, Shape::Flag, Is("false"), "true").about(
        "Relocation within a die uses copy-back: the data does not cross the channel (and is not corrected).",
    ),
    key("media.*.transfer", &["nand"], Shape::Rate, Required, "\"1200 MB/s\"")
        .about("Rate of the chip's interface, or the time per byte (\"30 ns/B\")."),
    key(
        "media.*.endurance",
        &["nand", "nor", "pcm"],
        Shape::Count { min: 1, max: u32::MAX as u64 },
        Required,
        "3_000",
    )
    .about("Rated endurance: program/erase cycles per block; for PCM, writes per word."),
    key("media.*.endurance_spread", FLASH, SHARE, Is("0 %"), "\"10 %\"").about(
        "Relative standard deviation of the actual endurance of blocks; 0: all blocks are as rated.",
    ),
    key("media.*.retention_years", FLASH, Shape::Count { min: 1, max: 1000 }, Nothing("not limited"), "10").about(
        "Years that a lightly worn cell keeps its data. It bounds the reported lifetime: a device that is hardly written \
         does not last for centuries.",
    ),
];
