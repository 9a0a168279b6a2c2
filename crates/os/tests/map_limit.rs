//! A watch over more pages than the kernel has mappings. In a program of its own: beside other threads that map memory, those
//! could fail.

use nvlab_os::{Mapping, WriteWatch};

fn watch(memory: &Mapping) -> WriteWatch {
    // SAFETY: the memory is anonymous, and the test keeps it longer than the watch.
    unsafe { WriteWatch::new(memory.start(), memory.len()).unwrap() }
}

/// Stores to a byte as a program does that has a pointer.
fn store(memory: &Mapping, at: usize, byte: u8) {
    assert!(at < memory.len());
    // SAFETY: the byte is in the mapping, and no reference to it is alive.
    unsafe { memory.start().add(at).write_volatile(byte) };
}

/// Every second page splits the mapping in two; beyond the kernel's limit all pages are kept at once.
#[test]
fn more_pages_than_the_kernel_has_mappings() {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
    let pages = limit.trim().parse::<usize>().unwrap() + 1000;
    if pages > 100_000 {
        // The limit is higher than usual; the test would take gigabytes.
        return;
    }
    let memory = Mapping::anonymous(pages as u64 * 4096).unwrap();
    memory.refuse_huge_pages(0);
    store(&memory, 4096, 5);
    let mut watch = watch(&memory);
    (0..pages).step_by(2).for_each(|page| store(&memory, page * 4096, 1));
    assert_eq!(watch.count(), pages);
    store(&memory, 4096, 6);
    let touched = watch.touched();
    let is_old = |(index, (page, old)): (usize, &(usize, &[u8]))| {
        index == *page && old[0] == if *page == 1 { 5 } else { 0 }
    };
    assert!(touched.iter().enumerate().all(is_old));
    watch.clear().unwrap();
    store(&memory, 0, 2);
    assert_eq!(watch.touched().iter().map(|(page, old)| (*page, old[0])).collect::<Vec<_>>(), [(0, 1)]);
}
