//! The compiler: what it makes of sources, and that recoverable memory keeps it.

use nvlab_rvm::heap::Words;
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::store::SegmentFolder;
use nvlab_rvm::{Options, Region, Rvm};
use nvlab_workload::compiler::{
    CompileError, Image, Source, Survey, compile, create, own_sources, sources_in,
};
use std::path::Path;

const HEAP: usize = 4 << 20;

fn source(path: &str, text: &str) -> Source {
    Source { path: path.into(), text: text.into() }
}

/// What an independent run in memory makes of some sources.
fn compiled(sources: &[Source], bytes: usize) -> Image {
    let mut image = Image::new(bytes);
    create(&mut image).unwrap();
    for source in sources {
        compile(&mut image, source).unwrap_or_else(|error| panic!("{error}"));
    }
    image
}

fn survey(sources: &[Source]) -> Survey {
    Survey::of(compiled(sources, HEAP).contents()).unwrap()
}

#[test]
fn the_counts_of_a_small_file_are_those_of_its_text() {
    let text = [
        "use std::fmt;",
        "pub struct Point { x: i64, y: i64 }",
        "impl Point { const ORIGIN: Point = Point { x: 0, y: 0 }; fn sum(&self) -> i64 { self.x + self.y } }",
        "pub fn twice(point: &Point) -> i64 { let sum = point.sum(); sum + sum }",
    ];
    let text = text.join("\n");
    let one = survey(&[source("crates/plane/src/lib.rs", &text)]);
    assert_eq!((one.files, one.source_bytes, one.functions, one.unsupported), (1, text.len() as u64, 3, 0));
    // Roots: crates, prelude, selectors. Declared: plane, fmt, Point, x, y, impl, ORIGIN, sum, twice.
    // External: std, std::fmt, i64.
    assert_eq!((one.symbols, one.external), (3 + 9 + 3, 3));
    // ORIGIN: x, 0, y, 0 and 4 arguments, Make, Return. sum: 2 fields, the argument, the sum, Return.
    // twice: the receiver, Call, the argument, the sum, Return.
    assert_eq!(one.instructions, 10 + 5 + 5);
}

#[test]
fn a_name_that_is_declared_later_or_elsewhere_is_the_same_symbol() {
    let user =
        source("crates/a/src/user.rs", "use crate::made::Made; fn f(made: &Made) -> u8 { made.value() }");
    let maker = source(
        "crates/a/src/made.rs",
        "pub struct Made(u8); impl Made { pub fn value(&self) -> u8 { self.0 } }",
    );
    let before = survey(std::slice::from_ref(&user));
    // Declared by the first file: a, user, Made (import), f. External: made, made::Made, u8. A selector: value.
    assert_eq!((before.symbols, before.external), (3 + 4 + 3 + 1, 3));
    let both = survey(&[user.clone(), maker.clone()]);
    // The module and the structure are declared now; its field, implementation and method are new.
    assert_eq!((both.symbols, both.external), (before.symbols + 3, 1));
    // In the other order the method is known when it is called, so there is no selector.
    let ordered = survey(&[maker, user]);
    assert_eq!((ordered.symbols, ordered.external), (both.symbols - 1, 1));
    assert_ne!(ordered.checksum, both.checksum);
}

#[test]
fn what_is_not_supported_is_counted_and_what_is_no_rust_is_named() {
    let text = "async fn f() { g().await; asm!(\"nop\", in(\"a\") 1); h![a b]; println!(\"{}\", 1); }";
    assert_eq!(survey(&[source("f.rs", text)]).unsupported, 3);
    let mut image = Image::new(HEAP);
    create(&mut image).unwrap();
    match compile(&mut image, &source("wrong.rs", "fn f() {\n    let = 3;\n}")) {
        Err(CompileError::Syntax { path, line, column, .. }) => {
            assert_eq!((&*path, line, column), ("wrong.rs", 2, 9));
        }
        other => panic!("{other:?}"),
    }
    let many: String = (0..70_000).map(|number| format!("f({number});\n")).collect();
    let large = compile(&mut image, &source("large.rs", &format!("fn g() {{ {many} }}")));
    assert!(matches!(large, Err(CompileError::TooLarge { .. } | CompileError::Heap(_))), "{large:?}");
}

/// Every construct of this workspace's own files is compiled or counted, and the counts are those of the snapshot.
#[test]
fn the_snapshot_is_compiled() {
    let sources = own_sources();
    assert_eq!(sources.len(), 38);
    let found = survey(&sources);
    let bytes: usize = sources.iter().map(|source| source.text.len()).sum();
    assert_eq!((found.files, found.source_bytes), (38, bytes as u64));
    // The snapshot never changes, so these change with the compiler alone.
    assert_eq!((found.symbols, found.external, found.types), (2105, 230, 523), "{found}");
    assert_eq!((found.functions, found.instructions, found.unsupported), (667, 19_733, 22));
    assert_eq!(found.checksum, 0x6680_88b0_03f0_b2c5);
    // Independent of where the objects lie.
    let elsewhere = Survey::of(compiled(&sources, 2 * HEAP).contents()).unwrap();
    assert_eq!(elsewhere, found);
    let own = sources_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/compiler")).unwrap();
    assert!(own.iter().any(|source| source.path == "survey.rs"));
    assert!(survey(&own).functions > 100);
}

#[test]
fn the_listed_changes_make_the_image() {
    let mut image = Image::new(HEAP);
    let mut copy = vec![0; HEAP];
    let (mut ranges, mut bytes) = (0, 0);
    let mut apply = |image: &mut Image| {
        image.changes(|offset, data| {
            copy[offset as usize..][..data.len()].copy_from_slice(data);
            (ranges, bytes) = (ranges + 1, bytes + data.len());
        });
        assert!(copy == image.contents());
        (ranges, bytes)
    };
    create(&mut image).unwrap();
    let created = apply(&mut image);
    for source in own_sources() {
        compile(&mut image, &source).unwrap();
        apply(&mut image);
    }
    // The index and the roots; then 201 ranges and 18.6 KB a file, where the paper's compiler has 15 KB (slide 30).
    let (ranges, bytes) = (ranges - created.0, bytes - created.1);
    assert_eq!((created, ranges / 38, bytes / 38), ((11, 33_912), 201, 18_626));
}

fn open(folder: &Path) -> (Rvm, Region) {
    let log = FileLog::open(&folder.join("log")).unwrap();
    let rvm = Rvm::open(log, SegmentFolder::new(folder), Options::default()).unwrap();
    let region = rvm.map("heap", 0..HEAP as u64).unwrap();
    (rvm, region)
}

/// A commit after each file; then a file that is compiled but not committed. What is found again is what a run in memory
/// makes of the committed files.
#[test]
fn recoverable_memory_keeps_the_committed_files() {
    let sources = own_sources();
    let folder = tempfile::tempdir().unwrap();
    FileLog::create(&folder.path().join("log"), 1 << 20).unwrap();
    SegmentFolder::new(folder.path()).create("heap", HEAP as u64).unwrap();
    let mut done = 0;
    for files in [1, 20, 17] {
        let (rvm, mut region) = open(folder.path());
        if done == 0 {
            let mut transaction = region.begin();
            create(&mut transaction).unwrap();
            transaction.commit().unwrap();
        }
        for source in &sources[done..done + files] {
            let mut transaction = region.begin();
            compile(&mut transaction, source).unwrap();
            transaction.commit().unwrap();
        }
        done += files;
        if let Some(next) = sources.get(done) {
            let mut transaction = region.begin();
            compile(&mut transaction, next).unwrap();
            transaction.abort().unwrap();
            let mut transaction = region.begin();
            compile(&mut transaction, next).unwrap();
            // The files as a kill would leave them now.
            let copy = tempfile::tempdir().unwrap();
            for name in ["log", "heap"] {
                std::fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
            }
            drop(transaction);
            let (_rvm, region) = open(copy.path());
            assert_eq!(Survey::of(&region).unwrap(), survey(&sources[..done]));
        }
        drop((region, rvm));
        let (_rvm, region) = open(folder.path());
        let found = Survey::of(&region).unwrap();
        assert_eq!(found, survey(&sources[..done]));
        assert_eq!(found.files as usize, done);
    }
}

#[test]
fn a_damaged_heap_is_refused_or_read_but_never_a_panic() {
    const BYTES: usize = 1 << 16;
    let image = compiled(
        &[source("crates/a/src/b.rs", "struct A(u8); impl A { fn b(&self) -> u8 { self.0 } }")],
        BYTES,
    );
    Survey::of(image.contents()).unwrap();
    let mut refused = 0;
    for at in (0..BYTES as u64).step_by(8) {
        let mut damaged = image.clone();
        let word = damaged.get(at) ^ 1 << (at * 0x9e37_79b9 / 8 % 64);
        damaged.set(at, word).unwrap();
        // Free space and the chains of the index are not part of the contents.
        refused += u64::from(Survey::of(damaged.contents()).is_err());
    }
    println!("{refused} of {} damaged heaps are refused", BYTES / 8);
    assert!(refused > 100, "only {refused} were refused");
    assert!(Survey::of(&[]).is_err() && Survey::of(&[0; 4096]).is_err());
}
