//! The keys of a design outside `[media]`.

use super::super::datum::Shape;
use super::Key;
use super::Preset::{Is, Nothing, Required};

/// Keys about the design itself.
pub const DESIGN: &[Key] = &[
    Key {
        path: "schema",
        kinds: &[],
        shape: Shape::Count { min: 1, max: 1 },
        preset: Is("1"),
        about: "Version of the design file format.",
        example: "1",
    },
    Key {
        path: "design.name",
        kinds: &[],
        shape: Shape::Text,
        preset: Nothing("the name of the file"),
        about: "Short name: it begins the name of the result directory.",
        example: "\"ssd-tlc\"",
    },
    Key {
        path: "design.about",
        kinds: &[],
        shape: Shape::Text,
        preset: Nothing("nothing is said about it"),
        about: "What the design is, in one line; shown in reports.",
        example: "\"A small NVMe drive of today\"",
    },
    Key {
        path: "design.cite",
        kinds: &[],
        shape: Shape::Text,
        preset: Nothing("no source"),
        about: "The publication the design follows; shown in reports.",
        example: "\"Wu, Zwaenepoel: eNVy, ASPLOS 1994\"",
    },
    Key {
        path: "design.extends",
        kinds: &[],
        shape: Shape::Text,
        preset: Nothing("the design stands alone"),
        about: "A design to start from, a built-in NAME or a file relative to this one: everything not said here is \
                as it is there. Another `kind` or `part` drops the other keys of its table; of `spare`, \
                `utilization` and `capacity` the last one said counts.",
        example: "\"builtin:ssd-tlc\"",
    },
];

/// Keys of the controller, its wiring, its power and its host.
pub const KEYS: &[Key] = &[
    Key {
        path: "array.channels",
        kinds: &[],
        shape: Shape::Count { min: 1, max: 1024 },
        preset: Is("1"),
        about: "Buses between the controller and its dies. Transfers on different channels do not wait for each \
                other.",
        example: "8",
    },
    Key {
        path: "array.ways",
        kinds: &[],
        shape: Shape::Count { min: 1, max: 1024 },
        preset: Is("1"),
        about: "Dies (or gangs of chips) on each channel. Each reads, programs and erases by itself.",
        example: "4",
    },
    Key {
        path: "array.gang",
        kinds: &[],
        shape: Shape::Count { min: 1, max: 4096 },
        preset: Is("1"),
        about: "Chips that always work in lockstep as one wide chip: a page is then one page of each, and the \
                bus is as wide as they are together (eNVy: 256 chips of one byte).",
        example: "256",
    },
    Key {
        path: "array.planes",
        kinds: &[],
        shape: Shape::Count { min: 1, max: 64 },
        preset: Nothing("all planes of the part"),
        about: "Planes of a die that are programmed and erased together. A page of the array is then one page of \
                each. With fewer than the part has, the blocks of the others follow one another.",
        example: "4",
    },
    Key {
        path: "array.transfer",
        kinds: &[],
        shape: Shape::Rate,
        preset: Nothing("the rate of the part, times the gang"),
        about: "Rate of one channel.",
        example: "\"1200 MB/s\"",
    },
    Key {
        path: "ftl.kind",
        kinds: &[],
        shape: Shape::OneOf(&[(
            "page",
            "any logical unit to any physical unit: out-of-place writes, cleaning, a map of every unit",
        )]),
        preset: Required,
        about: "How the controller makes the medium overwritable.",
        example: "\"page\"",
    },
    Key {
        path: "ftl.medium",
        kinds: &[],
        shape: Shape::Medium,
        preset: Required,
        about: "The flash medium that holds the data, by its name under [media].",
        example: "\"tlc\"",
    },
    Key {
        path: "ftl.unit",
        kinds: &["page"],
        shape: Shape::Size { min: 16, max: 1 << 20 },
        preset: Is("4 KiB"),
        about: "What the map translates. Smaller host writes read, change and write back a whole unit.",
        example: "\"4 KiB\"",
    },
    Key {
        path: "ftl.spare",
        kinds: &["page"],
        shape: Shape::Share { max: 0.99 },
        preset: Nothing("7 %, unless `utilization` or `capacity` is given"),
        about: "Over-provisioning: the share of the raw capacity that the host cannot address. \
                `logical units = floor(raw units x (1 - spare))`. Blocks bad from the factory come out of it. The \
                more there is, the emptier are the blocks that are cleaned, and the lower is the write \
                amplification.",
        example: "\"12 %\"",
    },
    Key {
        path: "ftl.utilization",
        kinds: &["page"],
        shape: Shape::Share { max: 0.99 },
        preset: Nothing("1 - spare"),
        about: "The share of the raw capacity that the host can address: another way to say `spare`. (eNVy \
                section 4.1: live data limited to 80 % of the array.)",
        example: "\"80 %\"",
    },
    Key {
        path: "ftl.capacity",
        kinds: &["page"],
        shape: Shape::Size { min: 4096, max: u64::MAX },
        preset: Nothing("from spare"),
        about: "What the host can address, in bytes: another way to say `spare`.",
        example: "\"120 GB\"",
    },
    Key {
        path: "ftl.trim",
        kinds: &["page"],
        shape: Shape::Flag,
        preset: Is("true"),
        about: "Whether the host's trim is heard. If not, trimmed data counts as live and is moved by cleaning.",
        example: "true",
    },
    Key {
        path: "ftl.streams",
        kinds: &["page"],
        shape: Shape::OneOf(&[
            ("one", "host writes and relocated data fill the same block"),
            ("host-and-relocated", "host writes in one block, relocated data in another"),
            (
                "hot-cold-relocated",
                "recently written units, other host writes and relocated data in a block each",
            ),
        ]),
        preset: Is("host-and-relocated"),
        about: "Which data shares a block. Data that dies together makes blocks that are cheap to clean.",
        example: "\"host-and-relocated\"",
    },
    Key {
        path: "ftl.hot_within",
        kinds: &["page"],
        shape: Shape::Share { max: 1.0 },
        preset: Is("25 %"),
        about: "For streams = \"hot-cold-relocated\": a unit is hot if its last write is less than this share of \
                the logical capacity of host writes ago.",
        example: "\"25 %\"",
    },
    Key {
        path: "ftl.free_blocks_min",
        kinds: &["page"],
        shape: Shape::Count { min: 1, max: 1_000_000 },
        preset: Is("2"),
        about: "Erased blocks of a die below which cleaning begins.",
        example: "2",
    },
    Key {
        path: "ftl.overhead",
        kinds: &["page"],
        shape: Shape::Time,
        preset: Is("0 ns"),
        about: "Time the controller itself takes for a request (firmware, map look-up), before the medium is \
                asked.",
        example: "\"2 us\"",
    },
    Key {
        path: "ftl.map.in",
        kinds: &[],
        shape: Shape::Medium,
        preset: Required,
        about: "The memory that holds the map, by its name under [media]. It must be large enough.",
        example: "\"dram\"",
    },
    Key {
        path: "ftl.map.entry",
        kinds: &[],
        shape: Shape::Size { min: 1, max: 64 },
        preset: Is("4 B"),
        about: "Memory for one map entry.",
        example: "\"4 B\"",
    },
    Key {
        path: "ftl.map.checkpoint",
        kinds: &[],
        shape: Shape::SizeOrNone,
        preset: Is("none"),
        about: "Host bytes written between two checkpoints of the map on flash; \"none\": no checkpoints, \
                recovery scans the whole array.",
        example: "\"4 GiB\"",
    },
    Key {
        path: "ftl.buffer.kind",
        kinds: &[],
        shape: Shape::OneOf(&[
            ("none", "a write is acknowledged when its page is programmed"),
            ("write-back", "a write is acknowledged when it is in the buffer"),
        ]),
        preset: Is("none"),
        about: "The write buffer. Without one, a write waits for the program operation of its page.",
        example: "\"write-back\"",
    },
    Key {
        path: "ftl.buffer.in",
        kinds: &["write-back"],
        shape: Shape::Medium,
        preset: Required,
        about: "The memory that holds the buffer. If it has a battery or capacitor (`backup`), the buffer \
                survives a power cut and a flush has nothing to do.",
        example: "\"dram\"",
    },
    Key {
        path: "ftl.buffer.size",
        kinds: &["write-back"],
        shape: Shape::Size { min: 1, max: u64::MAX },
        preset: Required,
        about: "Its size: at least one page of the array for every die and stream.",
        example: "\"32 MiB\"",
    },
    Key {
        path: "ftl.clean.kind",
        kinds: &[],
        shape: Shape::OneOf(&[
            ("greedy", "the block with the fewest live units"),
            ("fifo", "the block that was filled first"),
            (
                "cost-benefit",
                "greatest (1 - u) x age / (1 + u), u the live share (Rosenblum and Ousterhout, LFS)",
            ),
            ("d-choices", "the emptiest of `d` blocks drawn at random (Van Houdt, SIGMETRICS 2013)"),
            ("windowed-greedy", "the emptiest of the `window` blocks filled first (Hu et al., SYSTOR 2009)"),
        ]),
        preset: Is("greedy"),
        about: "Cleaning (garbage collection): which block is emptied and erased next.",
        example: "\"greedy\"",
    },
    Key {
        path: "ftl.clean.d",
        kinds: &["d-choices"],
        shape: Shape::Count { min: 1, max: 1_000_000 },
        preset: Is("10"),
        about: "Blocks drawn at random; with 10 the result is close to greedy.",
        example: "10",
    },
    Key {
        path: "ftl.clean.window",
        kinds: &["windowed-greedy"],
        shape: Shape::Count { min: 1, max: 4_000_000_000 },
        preset: Is("64"),
        about: "Blocks looked at, the first filled first.",
        example: "64",
    },
    Key {
        path: "ftl.wear.kind",
        kinds: &[],
        shape: Shape::OneOf(&[
            ("none", "erased blocks are used in any order"),
            (
                "dynamic",
                "host data goes to the erased block with the fewest erases, relocated data to the most worn",
            ),
            ("static", "as dynamic, and blocks that hardly change are moved when wear drifts apart"),
        ]),
        preset: Is("dynamic"),
        about: "Wear levelling: how erases are spread over the blocks.",
        example: "\"static\"",
    },
    Key {
        path: "ftl.wear.threshold",
        kinds: &["static"],
        shape: Shape::Count { min: 1, max: 4_000_000_000 },
        preset: Is("100"),
        about: "When the erase counts of a die differ by more than this, its least worn full block is moved. \
                (eNVy section 4.3: 100.)",
        example: "100",
    },
    Key {
        path: "power.on_cut",
        kinds: &[],
        shape: Shape::OneOf(&[
            ("keep-buffer", "the write buffer survives; its memory must have a battery or capacitor"),
            ("lose-buffer", "what was not flushed is lost, even if the memory could have kept it"),
        ]),
        preset: Nothing("keep-buffer if its memory has a battery or capacitor, lose-buffer otherwise"),
        about: "What a power cut does to the write buffer.",
        example: "\"lose-buffer\"",
    },
    Key {
        path: "path.kind",
        kinds: &[],
        shape: Shape::OneOf(&[
            ("direct", "no link: requests reach the controller at once"),
            ("nvme", "PCIe with NVMe queues; both directions at the same time"),
            ("sata", "one direction at a time, at most 32 commands"),
            ("bus", "a simple host bus, one direction at a time"),
        ]),
        preset: Is("direct"),
        about: "How the host gets to the device.",
        example: "\"nvme\"",
    },
    Key {
        path: "path.rate",
        kinds: &["nvme", "sata", "bus"],
        shape: Shape::Rate,
        preset: Required,
        about: "Rate of the link, per direction if it has two.",
        example: "\"3.5 GB/s\"",
    },
    Key {
        path: "path.queue",
        kinds: &[],
        shape: Shape::Count { min: 1, max: 65_536 },
        preset: Is("32"),
        about: "Requests the device accepts at the same time; more wait in the host.",
        example: "256",
    },
    Key {
        path: "path.overhead.host",
        kinds: &[],
        shape: Shape::Time,
        preset: Is("0 ns"),
        about: "Time the host's software takes for one request: system call, driver, interrupt.",
        example: "\"6 us\"",
    },
    Key {
        path: "path.overhead.device",
        kinds: &[],
        shape: Shape::Time,
        preset: Is("0 ns"),
        about: "Time of the link and its protocol for one request: doorbell, fetching the command, completion. Not \
                the controller's own time, which is `ftl.overhead`.",
        example: "\"2 us\"",
    },
];
