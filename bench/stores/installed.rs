//! The build script of the comparisons: passes on which of the libraries are installed.

fn main() {
    println!("cargo::rerun-if-changed=../stores/installed.rs");
    for name in ["has_sqlite", "has_berkeley_db", "has_lmdb", "has_rocksdb", "has_pmemobj"] {
        println!("cargo::rustc-check-cfg=cfg({name})");
    }
    let installed =
        std::env::var("DEP_NVLAB_BENCH_STORES_INSTALLED").expect("the build script of the stores sets it");
    for name in installed.split(',').filter(|name| !name.is_empty()) {
        println!("cargo::rustc-cfg={name}");
    }
}
