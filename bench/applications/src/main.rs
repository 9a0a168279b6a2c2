//! The applications of Swanson's talk (slide 13) at 1/128 of its footprints, to be recorded by
//! `scripts/record-applications.sh`.
//!
//! Each has up to three phases: `load` makes its data, `run` is what is recorded, `verify` checks the result. All of
//! them access the device past the page cache, with one thread; what they keep in memory stands in their modules. A
//! wrong result is an error and the exit status is 1.

mod direct;
mod matmul;
mod random_io;
mod record;
mod sort;
mod store;

use direct::{DirectFile, Durability};
use random_io::RandomIo;
use std::path::Path;
use std::process::ExitCode;
use store::{Method, Store};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const USAGE: &str = "\
usage: nvlab-bench-applications APPLICATION PHASE PLACE
       nvlab-bench-applications convert FTRACE MAJOR:MINOR FILE.nvt
  raw        run               random 4 KiB reads and writes; PLACE is a block device, which is overwritten
  file       load run          the same in a file, each write durable; PLACE is a folder, as below
  bdb-btree  load run verify   updates of a Berkeley DB B-tree, a transaction each
  bdb-hash   load run verify   updates of a Berkeley DB hash table, a transaction each
  matmul     load run verify   an out-of-core matrix product
  is         load run verify   an out-of-core integer sort, after NAS IS
  convert                      block_rq_issue and block_rq_complete events of one device, as a trace with response times";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("nvlab-bench-applications: {}: {error}", words.join(" "));
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<String> {
    match *words {
        ["convert", ftrace, device, out] => record::convert(Path::new(ftrace), device, Path::new(out)),
        [application, phase, place] => phase_of(application, phase, Path::new(place)),
        _ => Err(USAGE.into()),
    }
}

fn phase_of(application: &str, phase: &str, place: &Path) -> Result<String> {
    let random = RandomIo::RECORDED;
    let file = place.join("file");
    match (application, phase) {
        ("raw", "run") => random.run(&DirectFile::open(place, Durability::OnSync)?),
        ("file", "load") => random.load(&DirectFile::create(&file, random.bytes())?),
        ("file", "run") => random.run(&DirectFile::open(&file, Durability::EachWrite)?),
        ("bdb-btree", phase) => store_phase(Method::BTree, phase, place),
        ("bdb-hash", phase) => store_phase(Method::Hash, phase, place),
        ("matmul", phase) => {
            let product = matmul::Product::in_folder(place, matmul::Size::RECORDED);
            match phase {
                "load" => product.load(),
                "run" => product.run(),
                "verify" => product.verify(),
                _ => Err(USAGE.into()),
            }
        }
        ("is", phase) => {
            let sort = sort::Sort::in_folder(place, sort::Class::RECORDED);
            match phase {
                "load" => sort.load(),
                "run" => sort.run(),
                "verify" => sort.verify(),
                _ => Err(USAGE.into()),
            }
        }
        _ => Err(USAGE.into()),
    }
}

fn store_phase(method: Method, phase: &str, place: &Path) -> Result<String> {
    let updates = store::Updates::RECORDED;
    match phase {
        "load" => updates.load(&Store::open(place, method, store::LOAD_CACHE_BYTES)?),
        "run" => updates.run(&Store::open(place, method, store::CACHE_BYTES)?),
        "verify" => updates.verify(&Store::open(place, method, store::LOAD_CACHE_BYTES)?),
        _ => Err(USAGE.into()),
    }
}
