//! Finds out which of the libraries are installed: each that a small C program can be linked with gets a `cfg`, here and, by
//! `DEP_NVLAB_BENCH_STORES_INSTALLED`, in the packages that depend on this one. Nothing is downloaded or built but a C file for
//! Berkeley DB, whose interface is macros and tables of functions.

use std::path::Path;
use std::process::{Command, Stdio};

/// `cfg`, header, library.
const LIBRARIES: [(&str, &str, &str); 5] = [
    ("has_sqlite", "sqlite3.h", "sqlite3"),
    ("has_berkeley_db", "db.h", "db-5.3"),
    ("has_lmdb", "lmdb.h", "lmdb"),
    ("has_rocksdb", "rocksdb/c.h", "rocksdb"),
    ("has_pmemobj", "libpmemobj.h", "pmemobj"),
];

fn main() {
    println!("cargo::rerun-if-env-changed=CC");
    println!("cargo::rerun-if-changed=build.rs");
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    let probe = Path::new(&out).join("probe.c");
    let mut installed = Vec::new();
    for (name, header, library) in LIBRARIES {
        println!("cargo::rustc-check-cfg=cfg({name})");
        // Installing the package must be noticed.
        println!("cargo::rerun-if-changed=/usr/include/{header}");
        let source = format!("#include <stddef.h>\n#include <{header}>\nint main(void) {{ return 0; }}\n");
        std::fs::write(&probe, source).expect("the output folder can be written");
        let link = format!("-l{library}");
        if compile(&[probe.to_str().expect("UTF-8"), "-o", &format!("{out}/probe"), &link]) {
            println!("cargo::rustc-cfg={name}");
            installed.push(name);
            if name == "has_berkeley_db" {
                build_berkeley_db(&out);
            }
            println!("cargo::rustc-link-lib={library}");
        }
    }
    println!("cargo::metadata=INSTALLED={}", installed.join(","));
}

fn build_berkeley_db(out: &str) {
    let (source, object) = ("src/berkeley_db.c", format!("{out}/berkeley_db.o"));
    let archive = format!("{out}/libnvlab_berkeley_db.a");
    println!("cargo::rerun-if-changed={source}");
    assert!(compile(&["-O2", "-Wall", "-fPIC", "-c", source, "-o", &object]), "{source} does not compile");
    let packed = Command::new("ar").args(["crs", &archive, &object]).status();
    assert!(packed.is_ok_and(|status| status.success()), "ar packs {object}");
    println!("cargo::rustc-link-search=native={out}");
    println!("cargo::rustc-link-lib=static=nvlab_berkeley_db");
}

fn compile(arguments: &[&str]) -> bool {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let status = Command::new(compiler).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
