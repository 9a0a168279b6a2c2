//! The keys of `[media.NAME]` that flash has. All keys of a medium are also keys of a part file.

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
        Nothing("the medium is described here, with its `kind`"),
        "\"tlc-2022\"",
    )
    .about(
        "The datasheet the medium is made of: a built-in NAME (`nvlab parts list`), or ./FILE.toml \
         beside the design. Other keys of the table change single values of it.",
    ),
    key(
        "media.*.kind",
        &[],
        Shape::OneOf(&[
            ("nand", "NAND flash: pages programmed in order, blocks erased"),
            ("nor", "NOR flash: any byte programmed from 1 to 0, blocks erased"),
            ("pcm", "phase-change or spin-torque memory: overwritten in place, wears"),
            ("ram", "DRAM or SRAM: overwritten in place, forgets without power unless backed"),
            ("disk", "a rotating disk"),
        ]),
        Nothing("the kind of the part"),
        "\"nand\"",
    )
    .about("What stores the bits. Not needed with `part`."),
    key("media.*.size", &["pcm", "disk"], SIZE, Required, "\"1 GiB\"")
        .about("Capacity of the medium in this design."),
    key(
        "media.*.size",
        &["ram"],
        SIZE,
        Nothing("for the map and write buffer of a page map what they take, rounded up to a power of two; else it must be said"),
        "\"1 GiB\"",
    )
    .about("Capacity of the memory in this design."),
    key("media.*.word", &["ram", "pcm"], Shape::Size { min: 1, max: 1 << 16 }, Required, "\"64 B\"")
        .about("Bytes one access moves: the width of the data path. A power of two."),
    key(
        "media.*.cell",
        &["nand"],
        Shape::OneOf(&[("slc", "1 bit per cell"), ("mlc", "2 bits"), ("tlc", "3 bits"), ("qlc", "4 bits")]),
        Required,
        "\"tlc\"",
    )
    .about(
        "Bits of a cell. What follows from them (times, pages of a word line, endurance) has keys \
         of its own.",
    ),
    key("media.*.page", FLASH, Shape::Size { min: 1, max: 1 << 24 }, Required, "\"16 KiB\"").about(
        "One page of one plane of one chip, without spare area. NOR: the bytes one program \
         operation writes.",
    ),
    key("media.*.oob", FLASH, Shape::Size { min: 0, max: 1 << 20 }, Is("0 B"), "\"2 KiB\"")
        .about("Spare area of a page (out of band): error correction and the controller's notes."),
    key("media.*.pages", FLASH, COUNT, Nothing("from `block`"), "1_152")
        .about("Pages of an erase block of one plane, counting every bit of a cell."),
    key("media.*.block", FLASH, SIZE, Nothing("from `pages`"), "\"512 KiB\"")
        .about("An erase block of one plane, in bytes: another way to say `pages`."),
    key("media.*.blocks", FLASH, COUNT, Required, "460").about("Erase blocks of one plane."),
    key("media.*.planes", FLASH, Shape::Count { min: 1, max: 64 }, Is("1"), "4")
        .about("Planes of a die: they can be programmed and erased together."),
    key("media.*.one_shot", &["nand"], Shape::Count { min: 1, max: 8 }, Is("1"), "3")
        .about("Pages of a word line that one program operation writes in each plane (today's TLC: 3)."),
    key("media.*.read", FLASH, Shape::Times, Required, "[\"45 us\", \"60 us\", \"75 us\"]").about(
        "Cells to page register. One time, or one for each page of a word line that is programmed \
         in one shot: lower, middle, upper.",
    ),
    key(
        "media.*.plane_reads",
        &["nand"],
        Shape::OneOf(&[
            ("one", "a read of the cells fetches a page of one plane, and the reads of a die follow one another"),
            ("multi", "one command senses the same page of all planes; other reads of the die wait"),
            (
                "independent",
                "as multi, and planes sense different pages at the same time (independent multi-plane read)",
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
                "the next read of a plane begins when the data has crossed the channel, and the data of a program crosses it \
                 when the program before is done",
            ),
            (
                "two",
                "cache read: the next page is sensed while the previous one crosses the channel; cache program: one page of \
                 the `one_shot` pages crosses during the program before, the others when it is done",
            ),
            ("unlimited", "transfers never delay the next read or program of the cells"),
        ]),
        Is("unlimited"),
        "\"two\"",
    )
    .about("Page registers of a plane: what it can do while data crosses the channel."),
    key("media.*.decode", &["nand"], Shape::Time, Is("0 ns"), "\"5 us\"").about(
        "Time from the arrival of the last byte until the controller's error correction has decoded it, for each read of \
         the cells by the host. Decoding keeps pace with the channel: it delays no other read.",
    ),
    key("media.*.program", FLASH, Shape::Time, Required, "\"1 ms\"")
        .about("Register to cells: one program operation, all its planes and one-shot pages."),
    key("media.*.erase", FLASH, Shape::Time, Required, "\"5 ms\"").about("Erasing one block."),
    key("media.*.page_buffer", &["nor"], Shape::Size { min: 1, max: 1 << 20 }, Nothing("no page buffers"), "\"256 B\"")
        .about(
            "One page buffer of a chip: bytes that are programmed together at `page_buffer_rate`. Only logs use them \
             (`ftl.log.page_buffers`); eNVy programs a page of a gang in one step.",
        ),
    key("media.*.page_buffer_rate", &["nor"], Shape::Rate, Nothing("no page buffers"), "\"465 KiB/s\"")
        .about("Rate at which one chip programs what is in its page buffers, one filled while the other is programmed."),
    key("media.*.suspend", FLASH, Shape::TimeOrNone, Is("none"), "\"20 us\"").about(
        "A read suspends a program or erase in progress and begins after this time; \"none\": it \
         waits until that operation is done.",
    ),
    key("media.*.resume", FLASH, Shape::Time, Is("0 ns"), "\"5 us\"").about(
        "Time from the end of the last access until a suspended operation resumes (eNVy section \
         3.4: \"a few microseconds\").",
    ),
    key("media.*.suspends", FLASH, COUNT, Nothing("no limit"), "16").about(
        "How often one program or erase may be suspended. After that a read waits until it is done, so that a stream of \
         reads cannot hold it up for ever.",
    ),
    key("media.*.copy_back", FLASH, Shape::Flag, Is("false"), "true").about(
        "Relocation stays inside the die: the data does not cross the channel (and is not \
         corrected).",
    ),
    key("media.*.transfer", &["nand"], Shape::Rate, Required, "\"1200 MB/s\"")
        .about("Rate of the chip's interface, or the time of one byte (\"30 ns/B\")."),
    key(
        "media.*.endurance",
        &["nand", "nor", "pcm"],
        Shape::Count { min: 1, max: u32::MAX as u64 },
        Required,
        "3_000",
    )
    .about("Rated life: program/erase cycles of a block; for PCM, writes of a word."),
    key("media.*.endurance_spread", FLASH, SHARE, Is("0 %"), "\"10 %\"").about(
        "Relative standard deviation of the cycles a block really endures; 0: every block is as rated.",
    ),
    key("media.*.retention_years", FLASH, Shape::Count { min: 1, max: 1000 }, Nothing("not limited"), "10").about(
        "Years a lightly worn cell keeps its data. It bounds the lifetime that is reported: a device that is hardly written \
         to does not last for centuries.",
    ),
];
