//! TPC-B on rvm: CPU time a transaction.
use nvlab_rvm::log::battery_ram::BatteryRam;
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::store::SegmentFolder;
use nvlab_rvm::*;
use std::time::Instant;
use zerocopy::*;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Row { balance: i64, filler: [u8; 104] }

const ACCOUNTS: usize = 100_000;
const TELLERS: usize = 10;
const HISTORY: usize = 50_000;

fn cpu() -> f64 {
    unsafe {
        let mut t: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t);
        t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
    }
}

fn run(region: &mut Region, count: usize) {
    let mut random = 1u64;
    for n in 0..count {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let account = (random >> 33) as usize % ACCOUNTS;
        let delta = (random >> 20) as i64 % 1000;
        let mut t = region.begin();
        t.get_mut::<Row>(account * 112).unwrap().balance += delta;
        t.get_mut::<Row>((ACCOUNTS + account % TELLERS) * 112).unwrap().balance += delta;
        t.get_mut::<Row>((ACCOUNTS + TELLERS) * 112).unwrap().balance += delta;
        let history = t.get_mut::<Row>((ACCOUNTS + TELLERS + 1 + n % HISTORY) * 112).unwrap();
        history.balance = delta;
        t.commit().unwrap();
    }
}

fn main() {
    let bytes = ((ACCOUNTS + TELLERS + 1 + HISTORY) * 112).next_multiple_of(4096) as u64;
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    SegmentFolder::new(folder.path()).create("data", bytes).unwrap();
    let log = BatteryRam::create(&folder.path().join("log"), 256 << 20).unwrap();
    let counts = log.counts();
    for diff in [false, true] {
        let _ = &counts;
        let _ = diff;
    }
    let rvm = Rvm::open(log, SegmentFolder::new(folder.path()), Options::default()).unwrap();
    let mut region = rvm.map("data", 0..bytes).unwrap();
    for _ in 0..4 {
        let (began, start) = (Instant::now(), cpu());
        run(&mut region, 30_000);
        println!("battery ram: {:.0} CPU-ns, {:.0} wall ns a transaction", (cpu() - start) * 1e9 / 3e4, began.elapsed().as_secs_f64() * 1e9 / 3e4);
    }
    println!("{:?} {:?}", rvm.statistics(), counts);
    drop((region, rvm));
    let folder = tempfile::tempdir_in(".").unwrap();
    SegmentFolder::new(folder.path()).create("data", bytes).unwrap();
    let log = FileLog::create(&folder.path().join("log"), 64 << 20).unwrap();
    let rvm = Rvm::open(log, SegmentFolder::new(folder.path()), Options::default()).unwrap();
    let mut region = rvm.map("data", 0..bytes).unwrap();
    let began = Instant::now();
    run(&mut region, 2000);
    println!("file: {:.0} commits/s", 2000.0 / began.elapsed().as_secs_f64());
    let file = std::fs::File::options().write(true).open(folder.path().join("log")).unwrap();
    use std::os::unix::fs::FileExt;
    let began = Instant::now();
    for n in 0..2000u64 { file.write_all_at(&[1; 500], 8192 + n * 488).unwrap(); file.sync_data().unwrap(); }
    println!("raw: {:.0} fdatasync/s", 2000.0 / began.elapsed().as_secs_f64());
}
