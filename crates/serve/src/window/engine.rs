//! Which pages are resident, and what a fault does about it.
//!
//! A page is *absent* (its newest version is in the device), *clean* (resident, write-protected everywhere, equal to
//! the device's version) or *dirty* (resident, and newer than the device's version or about to be). The resident file
//! holds exactly the clean and dirty pages.
//!
//! Invariants
//! 1. Absent: no process has the page mapped. Clean: no process can store to it without a fault.
//! 2. A page is evicted in three steps: it is write-protected in every address space, copied to the device, and punched out
//!    of the file. A store meanwhile waits for its fault to be answered, after the last step: no store is lost, and a kill
//!    between two steps leaves the page in the file, which is newest.
//! 3. At most `limit` pages are resident. They are evicted in the order in which they were loaded (eNVy section 3.2: a FIFO
//!    buffer).
//! 4. After the device failed nothing is loaded any more: an access to an absent page raises SIGBUS.
//!
//! The loop does not allocate; the media keep undo records for a power cut until the time has passed.

use super::device::PageDevice;
use super::stats::WindowStats;
use crate::ServeError;
use crate::served::View;
use crate::sys::abi::PAGE_BYTES;
use crate::sys::process;
use crate::sys::userfaultfd::{Answered, PageFault, Userfaultfd};
use nvlab_os::file;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

const PAGE: u64 = PAGE_BYTES as u64;

/// With more mappings than this, each new one has the others checked: a program that maps and unmaps repeatedly must not
/// fill the table.
const CLIENTS_UNCHECKED: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Absent,
    Clean,
    Dirty,
}

/// A mapping of the window, or of part of it, in some address space.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) faults: Userfaultfd,
    /// The process whose address space it is.
    pub(crate) process: i32,
    /// Its first byte.
    pub(crate) address: u64,
    pub(crate) first_page: u32,
    pub(crate) pages: u32,
}

impl Client {
    fn address_of(&self, page: u32) -> u64 {
        self.address + (page - self.first_page) as u64 * PAGE
    }

    fn page_at(&self, address: u64) -> Option<u32> {
        let page = address.checked_sub(self.address)? / PAGE;
        (page < self.pages as u64).then(|| self.first_page + page as u32)
    }

    fn end(&self) -> u64 {
        self.address + self.pages as u64 * PAGE
    }

    /// A newer mapping of its process has the addresses that both claim: what lay there was unmapped. False if nothing of it
    /// is left. A hole in the middle stays: no fault comes from there.
    fn make_way(&mut self, newer: &Client) -> bool {
        let (from, to) = (newer.address, newer.end());
        if newer.process != self.process || to <= self.address || self.end() <= from {
            return true;
        }
        match (self.address < from, to < self.end()) {
            (false, false) => return false,
            (true, false) => self.pages = ((from - self.address) / PAGE) as u32,
            (false, true) => {
                let gone = ((to - self.address) / PAGE) as u32;
                (self.address, self.first_page, self.pages) = (to, self.first_page + gone, self.pages - gone);
            }
            (true, true) => {}
        }
        true
    }

    /// Whether nothing of it is mapped any more; `inode` is that of the resident file.
    fn is_gone(&self, inode: u64) -> io::Result<bool> {
        // Write-protecting fails if there is nothing to protect; otherwise a store faults once more, which is harmless. Of a
        // mapping that is there one page is enough: more leave a marker each.
        for bytes in [PAGE, self.pages as u64 * PAGE] {
            match self.faults.protect(self.address, bytes)? {
                Answered::Done | Answered::Present => return Ok(false),
                Answered::Gone => return Ok(true),
                Answered::Unmapped => {}
            }
        }
        // It also fails where something else lies in between.
        match process::maps(self.process, self.address..self.end(), inode) {
            Ok(maps) => Ok(!maps),
            // Page by page, which takes long.
            Err(_) => Ok((self.first_page..self.first_page + self.pages)
                .all(|page| !matches!(self.faults.protect(self.address_of(page), PAGE), Ok(Answered::Done)))),
        }
    }

    /// Write-protects the part of a run of pages that this mapping has.
    fn protect(&self, first: u32, count: u32) -> io::Result<Answered> {
        let from = first.max(self.first_page);
        let to = (first + count).min(self.first_page + self.pages);
        if from >= to {
            return Ok(Answered::Done);
        }
        let answered = self.faults.protect(self.address_of(from), (to - from) as u64 * PAGE)?;
        if answered != Answered::Unmapped {
            return Ok(answered);
        }
        // Part of it was unmapped: the rest is protected page by page.
        for page in from..to {
            if self.faults.protect(self.address_of(page), PAGE)? == Answered::Gone {
                return Ok(Answered::Gone);
            }
        }
        Ok(Answered::Done)
    }
}

/// The pages, the device, and the mappings of the window.
#[derive(Debug)]
pub(crate) struct Engine {
    device: PageDevice,
    resident: File,
    pages: Vec<Page>,
    order: VecDeque<u32>,
    limit: usize,
    /// Pages evicted together.
    batch: usize,
    leaving: Vec<u32>,
    clients: Vec<Option<Client>>,
    page: Box<[u8; PAGE_BYTES]>,
    failed: Option<String>,
    stats: WindowStats,
}

impl Engine {
    /// An engine over a device and a resident file; every page with data in the file is newer than the device's.
    pub(crate) fn new(
        device: PageDevice,
        resident: File,
        pages: u32,
        limit: usize,
        batch: usize,
    ) -> Result<Engine, ServeError> {
        let mut engine = Engine {
            device,
            pages: vec![Page::Absent; pages as usize],
            order: VecDeque::with_capacity(limit + 1),
            limit,
            batch,
            leaving: Vec::with_capacity(batch),
            clients: Vec::new(),
            page: Box::new([0; PAGE_BYTES]),
            failed: None,
            stats: WindowStats::default(),
            resident,
        };
        let (found, order) = (&mut engine.pages, &mut engine.order);
        file::data_ranges(&engine.resident, |offset, bytes| {
            for page in offset / PAGE..(offset + bytes).div_ceil(PAGE) {
                found[page as usize] = Page::Dirty;
                order.push_back(page as u32);
            }
        })
        .map_err(ServeError::io("cannot scan the resident pages"))?;
        while engine.order.len() > engine.limit {
            engine.evict().map_err(ServeError::Failed)?;
        }
        Ok(engine)
    }

    /// The counts so far.
    pub(crate) fn stats(&self) -> WindowStats {
        WindowStats {
            resident_pages: self.order.len() as u64,
            dirty_pages: self.pages.iter().filter(|&&page| page == Page::Dirty).count() as u64,
            controller: *self.device.stats(),
            ..self.stats
        }
    }

    /// What the window looks like now.
    pub(crate) fn view(&mut self) -> View {
        let WindowStats { resident_pages, dirty_pages, faults, .. } = self.stats();
        let figures =
            vec![("resident pages", resident_pages), ("dirty pages", dirty_pages), ("page faults", faults)];
        View { figures, lost: self.failed.clone(), ..self.device.view() }
    }

    /// The file whose pages are mapped.
    pub(crate) fn resident(&self) -> &File {
        &self.resident
    }

    /// Answers the faults of one more mapping.
    pub(crate) fn admit(&mut self, client: Client) {
        for entry in &mut self.clients {
            entry.take_if(|older| !older.make_way(&client));
        }
        if self.clients().count() >= CLIENTS_UNCHECKED {
            // A file always has a number.
            let inode = self.resident.metadata().map_or(0, |metadata| metadata.ino());
            for entry in &mut self.clients {
                // A mapping that cannot be checked stays.
                if entry.as_ref().is_some_and(|client| client.is_gone(inode).unwrap_or(false)) {
                    *entry = None;
                }
            }
        }
        match self.clients.iter_mut().find(|entry| entry.is_none()) {
            Some(entry) => *entry = Some(client),
            None => self.clients.push(Some(client)),
        }
    }

    /// The mappings of the window, with their numbers.
    pub(crate) fn clients(&self) -> impl Iterator<Item = (usize, &Client)> {
        self.clients.iter().enumerate().filter_map(|(i, client)| Some((i, client.as_ref()?)))
    }

    /// Reads and answers the pending faults of one address space.
    pub(crate) fn serve(&mut self, index: usize, batch: &mut [PageFault; crate::sys::userfaultfd::BATCH]) {
        let Some(client) = &self.clients[index] else { return };
        let count = match client.faults.read(batch) {
            Ok(count) => count,
            Err(error) => return self.give_up(index, format!("cannot read faults: {error}")),
        };
        for &fault in &batch[..count] {
            self.stats.faults += 1;
            if let Err(why) = self.answer(index, fault) {
                self.fail(why);
                self.poison(index, fault.address);
            }
        }
    }

    /// Evicts pages before a fault has to wait for that.
    pub(crate) fn make_room_ahead(&mut self) {
        if self.failed.is_none()
            && self.order.len() + self.batch > self.limit
            && let Err(why) = self.evict()
        {
            self.fail(why);
        }
    }

    fn answer(&mut self, index: usize, fault: PageFault) -> Result<(), String> {
        let Some(client) = &self.clients[index] else { return Ok(()) };
        let Some(page) = client.page_at(fault.address) else {
            // The program registered more than it declared: only it is affected.
            self.give_up(index, format!("a fault at {:#x} lies outside its mapping", fault.address));
            return Ok(());
        };
        if self.pages[page as usize] == Page::Absent {
            return self.miss(index, page, fault);
        }
        if !fault.is_minor && !fault.is_protected && self.was_removed(page)? {
            self.give_up(index, format!("the contents of page {page} were removed (MADV_REMOVE)"));
            return Ok(());
        }
        let faults = &client.faults;
        let answered = if fault.is_minor {
            // It is in the file and only not mapped here. It is mapped writable, so it counts as dirty.
            self.pages[page as usize] = Page::Dirty;
            self.stats.minor += 1;
            faults.map(fault.address)
        } else if fault.is_write || fault.is_protected {
            if self.pages[page as usize] == Page::Clean {
                self.pages[page as usize] = Page::Dirty;
                self.stats.first_stores += 1;
            }
            faults.permit(fault.address)
        } else {
            // Another thread's fault loaded it.
            faults.wake(fault.address)
        };
        self.settle(index, fault.address, answered)
    }

    /// Whether a page that should be resident is not in the file.
    fn was_removed(&self, page: u32) -> Result<bool, String> {
        file::is_hole(&self.resident, page as u64 * PAGE)
            .map_err(|error| format!("cannot inspect a page: {error}"))
    }

    fn miss(&mut self, index: usize, page: u32, fault: PageFault) -> Result<(), String> {
        if let Some(why) = &self.failed {
            return Err(why.clone());
        }
        if self.order.len() >= self.limit {
            self.evict()?;
        }
        self.device.load(page, &mut self.page).map_err(|error| format!("page {page} is lost: {error}"))?;
        let Some(client) = &self.clients[index] else { return Ok(()) };
        let protected = !fault.is_write;
        match client.faults.copy(fault.address, &self.page, protected) {
            Ok(Answered::Done) => {
                self.stats.misses += 1;
                self.pages[page as usize] = if protected { Page::Clean } else { Page::Dirty };
                self.order.push_back(page);
                Ok(())
            }
            Ok(Answered::Present) => {
                // It was stored to unwatched (through a mapping moved by a raw system call?).
                self.give_up(index, format!("page {page} was written while it was absent"));
                Ok(())
            }
            other => self.settle(index, fault.address, other),
        }
    }

    /// Handles the effect of an answer.
    fn settle(&mut self, index: usize, address: u64, answered: io::Result<Answered>) -> Result<(), String> {
        match answered {
            Ok(Answered::Done) => {}
            Ok(Answered::Unmapped | Answered::Present) => {
                if let Some(client) = &self.clients[index] {
                    // The waiting threads try again and find the page, another mapping, or none.
                    client.faults.wake(address).map_err(|error| error.to_string())?;
                }
            }
            Ok(Answered::Gone) => self.clients[index] = None,
            Err(error) => return Err(format!("the kernel rejected the resolution of a fault: {error}")),
        }
        Ok(())
    }

    /// Evicts the oldest pages (invariant 2).
    fn evict(&mut self) -> Result<(), String> {
        let count = self.batch.min(self.order.len());
        self.leaving.clear();
        self.leaving.extend(self.order.drain(..count));
        // One call for adjacent pages.
        self.leaving.sort_unstable();
        let written = self.write_back();
        if let Err(why) = written {
            self.order.extend(&self.leaving);
            return Err(why);
        }
        for run in Runs(&self.leaving) {
            file::punch_hole(&self.resident, run.first as u64 * PAGE, run.count as u64 * PAGE)
                .map_err(|error| format!("cannot release resident pages: {error}"))?;
        }
        for &page in &self.leaving {
            self.pages[page as usize] = Page::Absent;
        }
        self.stats.evictions += count as u64;
        Ok(())
    }

    /// Writes the dirty pages in `leaving` to the device; all are clean afterwards.
    fn write_back(&mut self) -> Result<(), String> {
        for run in Runs(&self.leaving) {
            let pages = run.first as usize..(run.first + run.count) as usize;
            if self.pages[pages].contains(&Page::Dirty) {
                for client in &mut self.clients {
                    let protected = client.as_ref().map(|client| client.protect(run.first, run.count));
                    match protected {
                        None | Some(Ok(Answered::Done | Answered::Unmapped | Answered::Present)) => {}
                        Some(Ok(Answered::Gone)) => *client = None,
                        Some(Err(error)) => return Err(format!("cannot write-protect: {error}")),
                    }
                }
            }
        }
        for &page in &self.leaving {
            if self.pages[page as usize] != Page::Dirty {
                continue;
            }
            self.resident
                .read_exact_at(&mut self.page[..], page as u64 * PAGE)
                .map_err(|error| format!("cannot read resident page {page}: {error}"))?;
            self.device
                .store(page, &self.page)
                .map_err(|error| format!("page {page} cannot be stored: {error}"))?;
            self.pages[page as usize] = Page::Clean;
            self.stats.written_back += 1;
        }
        Ok(())
    }

    /// Writes back the next dirty pages at or after `from`; they stay resident. `None`: there were none.
    pub(crate) fn write_back_from(&mut self, from: u32) -> Result<Option<u32>, ServeError> {
        if let Some(why) = &self.failed {
            return Err(ServeError::Failed(why.clone()));
        }
        let dirty = (from..self.pages.len() as u32).filter(|&page| self.pages[page as usize] == Page::Dirty);
        self.leaving.clear();
        self.leaving.extend(dirty.take(self.batch));
        let Some(&last) = self.leaving.last() else { return Ok(None) };
        match self.write_back() {
            Ok(()) => Ok(Some(last + 1)),
            Err(why) => {
                self.fail(why.clone());
                Err(ServeError::Failed(why))
            }
        }
    }

    /// Why the device failed, if it did.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Kills every process that maps the window: no fault is answered any more.
    pub(crate) fn end_clients(&self, why: &str) {
        eprintln!("nvlab: the memory window: {why}; programs that use it are killed");
        for (_, client) in self.clients() {
            process::kill(client.process);
        }
    }

    /// Kills the programs that still map the window. They stay watched: a store before their end counts.
    pub(crate) fn end_rest(&self) {
        for (_, client) in self.clients() {
            // The number of an ended process may belong to another by now.
            if !matches!(client.faults.protect(client.address, PAGE), Ok(Answered::Gone)) {
                process::kill(client.process);
            }
        }
    }

    fn fail(&mut self, why: String) {
        if self.failed.is_none() {
            eprintln!("nvlab: the memory window: {why}; programs that access absent pages get SIGBUS");
            self.failed = Some(why);
        }
    }

    /// A fault that cannot be answered with a page.
    fn poison(&mut self, index: usize, address: u64) {
        let Some(client) = &self.clients[index] else { return };
        // A page that was poisoned for another thread needs the wake, too.
        let poisoned = client.faults.poison(address).and_then(|_| client.faults.wake(address));
        match poisoned {
            Ok(Answered::Gone) => self.clients[index] = None,
            Ok(_) => {}
            // Before Linux 6.6 there is no such answer.
            Err(error) => self.give_up(index, format!("no SIGBUS either: {error}")),
        }
    }

    /// Kills a program whose fault cannot be answered: it would wait for ever.
    pub(crate) fn give_up(&mut self, index: usize, why: String) {
        if let Some(client) = self.clients[index].take() {
            eprintln!("nvlab: the memory window: process {} is killed: {why}", client.process);
            process::kill(client.process);
        }
    }
}

/// Adjacent pages.
struct Run {
    first: u32,
    count: u32,
}

/// The runs of a sorted list of pages.
struct Runs<'a>(&'a [u32]);

impl Iterator for Runs<'_> {
    type Item = Run;
    fn next(&mut self) -> Option<Run> {
        let &first = self.0.first()?;
        let count = self.0.iter().zip(first..).take_while(|&(&page, expected)| page == expected).count();
        self.0 = &self.0[count..];
        Some(Run { first, count: count as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device smaller than the window: an access to a page that it does not have fails instead of waiting, and resident
    /// pages stay usable. The same where the mapping was write-protected while it was empty, as `attach` does.
    #[test]
    fn after_a_device_failure_no_access_waits() {
        for protected in [false, true] {
            let (done, wait) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                fail_a_device(protected);
                let _ = done.send(());
            });
            let waited = wait.recv_timeout(std::time::Duration::from_secs(20));
            waited.unwrap_or_else(|error| panic!("{error}; the mapping was protected before: {protected}"));
        }
    }

    fn fail_a_device(protected: bool) {
        use crate::clock::TimeMode;
        use crate::mapped_store::MappedStore;
        use crate::window::device::PageDeviceConfig;
        use crate::window::handler::FaultHandler;
        use nvlab_os::Mapping;

        let Ok((faults, _)) = Userfaultfd::new() else {
            return eprintln!("SKIPPED: userfaultfd is not permitted on this machine");
        };
        let config = PageDeviceConfig::envy(64 * PAGE).unwrap();
        let stores = config.media_bytes().map(|bytes| MappedStore::new(Mapping::anonymous(bytes).unwrap()));
        let device = PageDevice::open(&config, stores, false, TimeMode::Fast).unwrap();
        let file = file::anonymous(c"test", false).unwrap();
        file.set_len(128 * PAGE).unwrap();
        let mut memory = Mapping::shared(&file, 128 * PAGE).unwrap();
        let address = memory.start().expose_provenance() as u64;
        faults.register(address, 128 * PAGE).unwrap();
        if protected {
            assert_eq!(faults.protect(address, 128 * PAGE).unwrap(), Answered::Done);
        }
        let mut engine = Engine::new(device, file, 128, 32, 4).unwrap();
        let process = std::process::id() as i32;
        engine.admit(Client { faults, process, address, first_page: 0, pages: 128 });
        let handler = FaultHandler::start(engine, None).unwrap();
        memory.as_mut_slice()[5] = 6;
        // By a system call, which returns an error instead of the signal.
        let mut sink = file::anonymous(c"sink", false).unwrap();
        let absent = 100 * PAGE_BYTES;
        for _ in 0..2 {
            let error = io::Write::write(&mut sink, &memory.as_slice()[absent..absent + 1]).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EFAULT), "{error}");
        }
        assert!(handler.shared.engine().failure().unwrap().contains("page 100"));
        assert_eq!(memory.as_slice()[5], 6);
        let absent = 9 * PAGE_BYTES;
        assert!(io::Write::write(&mut sink, &memory.as_slice()[absent..absent + 1]).is_err());
        assert!(handler.shared.engine().write_back_from(0).is_err(), "nothing is stored after a failure");
    }

    #[test]
    fn a_newer_mapping_takes_the_addresses_of_an_older_one() {
        let client = |process: i32, first: u32, pages: u32| {
            let (faults, _) = Userfaultfd::new().ok()?;
            Some(Client { faults, process, address: (100 + first) as u64 * PAGE, first_page: first, pages })
        };
        // Pages 10 to 20, and which of them are left.
        for (process, first, pages, left) in [
            (1, 10, 10, None),
            (1, 5, 30, None),
            (1, 5, 8, Some((13, 7))),
            (1, 15, 5, Some((10, 5))),
            (1, 15, 50, Some((10, 5))),
            (1, 12, 2, Some((10, 10))),
            (1, 20, 5, Some((10, 10))),
            (1, 5, 5, Some((10, 10))),
            (2, 10, 10, Some((10, 10))),
        ] {
            let (Some(mut older), Some(newer)) = (client(1, 10, 10), client(process, first, pages)) else {
                return eprintln!("SKIPPED: userfaultfd is not permitted on this machine");
            };
            let is_left = older.make_way(&newer);
            assert_eq!(is_left.then_some((older.first_page, older.pages)), left, "{first} {pages}");
            assert_eq!(older.address_of(older.first_page), (100 + older.first_page) as u64 * PAGE);
        }
    }

    #[test]
    fn neighbouring_pages_form_runs() {
        let runs = |pages: &[u32]| Runs(pages).map(|run| (run.first, run.count)).collect::<Vec<_>>();
        assert_eq!(runs(&[3, 4, 5, 9, 11, 12]), [(3, 3), (9, 1), (11, 2)]);
        assert_eq!(runs(&[]), []);
    }
}
