//! Which pages are resident, and what a fault does about it.
//!
//! A page is *absent* (its newest version is in the device), *clean* (resident, write-protected everywhere, equal to
//! the device's version) or *dirty* (resident, and newer than the device's version or about to be). The resident file
//! holds exactly the clean and dirty pages.
//!
//! Invariants
//! 1. Absent: no process has the page mapped. Clean: no process can store to it without a fault.
//! 2. A page leaves in three steps: write-protected in every address space, copied to the device, punched out of the
//!    file. Whoever stores meanwhile waits for the fault to be answered, after the last step: no store is lost, and a kill
//!    between two steps leaves the page in the file, which is newest.
//! 3. At most `limit` pages are resident. They leave in the order they came (eNVy section 3.2: a FIFO buffer).
//! 4. After the device failed nothing is loaded any more: who needs an absent page gets SIGBUS.
//!
//! The loop allocates nothing of its own; the media keep what a power cut would undo until the time has passed.

use super::device::PageDevice;
use super::stats::WindowStats;
use crate::ServeError;
use crate::sys::abi::PAGE_BYTES;
use crate::sys::process;
use crate::sys::userfaultfd::{Answered, PageFault, Userfaultfd};
use nvlab_os::file;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const PAGE: u64 = PAGE_BYTES as u64;

/// With more mappings than this, each new one has the others looked at: a program that maps and unmaps again and again
/// must not fill the table.
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
    /// Whose address space.
    pub(crate) process: i32,
    /// Where it begins.
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

    /// Nothing of it is mapped any more.
    fn is_gone(&self) -> io::Result<bool> {
        // Write-protecting says whether there is something to protect; a store to it faults once more.
        Ok(match self.faults.protect(self.address, self.pages as u64 * PAGE)? {
            Answered::Done | Answered::Present => false,
            Answered::Gone => true,
            Answered::Unmapped => {
                let mut pages = self.first_page..self.first_page + self.pages;
                pages.all(|page| {
                    !matches!(self.faults.protect(self.address_of(page), PAGE), Ok(Answered::Done))
                })
            }
        })
    }

    /// Write-protects what this mapping has of a run of pages.
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
        // Part of it was unmapped: what is left is protected page by page.
        for page in from..to {
            if self.faults.protect(self.address_of(page), PAGE)? == Answered::Gone {
                return Ok(Answered::Gone);
            }
        }
        Ok(Answered::Done)
    }
}

/// The pages, the device, and those who map the window.
#[derive(Debug)]
pub(crate) struct Engine {
    device: PageDevice,
    resident: File,
    pages: Vec<Page>,
    order: VecDeque<u32>,
    limit: usize,
    /// Pages that leave together.
    batch: usize,
    leaving: Vec<u32>,
    clients: Vec<Option<Client>>,
    page: Box<[u8; PAGE_BYTES]>,
    failed: Option<String>,
    stats: WindowStats,
}

impl Engine {
    /// Over a device and a resident file, in which everything that is data is newest.
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
        .map_err(ServeError::io("cannot look through the resident pages"))?;
        while engine.order.len() > engine.limit {
            engine.evict().map_err(ServeError::Failed)?;
        }
        Ok(engine)
    }

    /// What happened so far.
    pub(crate) fn stats(&self) -> WindowStats {
        WindowStats {
            resident_pages: self.order.len() as u64,
            dirty_pages: self.pages.iter().filter(|&&page| page == Page::Dirty).count() as u64,
            controller: *self.device.stats(),
            ..self.stats
        }
    }

    /// The file whose pages are mapped.
    pub(crate) fn resident(&self) -> &File {
        &self.resident
    }

    /// Answers the faults of one more mapping.
    pub(crate) fn admit(&mut self, client: Client) {
        if self.clients().count() >= CLIENTS_UNCHECKED {
            for entry in &mut self.clients {
                // What cannot be looked at stays.
                if entry.as_ref().is_some_and(|client| client.is_gone().unwrap_or(false)) {
                    *entry = None;
                }
            }
        }
        match self.clients.iter_mut().find(|entry| entry.is_none()) {
            Some(entry) => *entry = Some(client),
            None => self.clients.push(Some(client)),
        }
    }

    /// Those who map the window, with their numbers.
    pub(crate) fn clients(&self) -> impl Iterator<Item = (usize, &Client)> {
        self.clients.iter().enumerate().filter_map(|(i, client)| Some((i, client.as_ref()?)))
    }

    /// Takes the faults that wait in one address space and answers them.
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

    /// Makes room before somebody waits for it.
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
            // The program registered more than it said: that is its own affair.
            self.give_up(index, format!("a fault at {:#x} lies outside its mapping", fault.address));
            return Ok(());
        };
        if self.pages[page as usize] == Page::Absent {
            return self.miss(index, page, fault);
        }
        if !fault.is_minor && !fault.is_protected && self.was_removed(page)? {
            self.give_up(index, format!("somebody removed the contents of page {page} (MADV_REMOVE)"));
            return Ok(());
        }
        let faults = &client.faults;
        let answered = if fault.is_minor {
            // It is in the file and only not mapped here. Mapped for stores, so it counts as stored to.
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
            // Somebody else's fault brought it.
            faults.wake(fault.address)
        };
        self.settle(index, fault.address, answered)
    }

    /// A page that should be resident is not in the file.
    fn was_removed(&self, page: u32) -> Result<bool, String> {
        file::is_hole(&self.resident, page as u64 * PAGE)
            .map_err(|error| format!("cannot look at a page: {error}"))
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
                // It was put there past the watch (a mapping moved by a raw system call?).
                self.give_up(index, format!("page {page} was stored to while it was absent"));
                Ok(())
            }
            other => self.settle(index, fault.address, other),
        }
    }

    /// What is left to do after an answer.
    fn settle(&mut self, index: usize, address: u64, answered: io::Result<Answered>) -> Result<(), String> {
        match answered {
            Ok(Answered::Done) => {}
            Ok(Answered::Unmapped | Answered::Present) => {
                if let Some(client) = &self.clients[index] {
                    // Who waited looks again: it finds the page, another mapping, or none.
                    client.faults.wake(address).map_err(|error| error.to_string())?;
                }
            }
            Ok(Answered::Gone) => self.clients[index] = None,
            Err(error) => return Err(format!("the kernel did not take an answer: {error}")),
        }
        Ok(())
    }

    /// The oldest pages leave (invariant 2).
    fn evict(&mut self) -> Result<(), String> {
        let count = self.batch.min(self.order.len());
        self.leaving.clear();
        self.leaving.extend(self.order.drain(..count));
        // Neighbours go in one call.
        self.leaving.sort_unstable();
        let written = self.write_back();
        if let Err(why) = written {
            self.order.extend(&self.leaving);
            return Err(why);
        }
        for run in Runs(&self.leaving) {
            file::punch_hole(&self.resident, run.first as u64 * PAGE, run.count as u64 * PAGE)
                .map_err(|error| format!("cannot give back resident pages: {error}"))?;
        }
        for &page in &self.leaving {
            self.pages[page as usize] = Page::Absent;
        }
        self.stats.evictions += count as u64;
        Ok(())
    }

    /// The pages in `leaving` are in the device, and clean, afterwards.
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

    /// What the device failed with, if it did.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Nobody is served any more: every process that maps the window is ended.
    pub(crate) fn end_clients(&self, why: &str) {
        eprintln!("nvlab: the memory window: {why}; programs that use it are ended");
        for (_, client) in self.clients() {
            process::kill(client.process);
        }
    }

    /// Programs that still map the window are ended. They are watched on: a store that comes before the end counts.
    pub(crate) fn end_rest(&self) {
        for (_, client) in self.clients() {
            // The number of a process that has gone may be another's now.
            if !matches!(client.faults.protect(client.address, PAGE), Ok(Answered::Gone)) {
                process::kill(client.process);
            }
        }
    }

    fn fail(&mut self, why: String) {
        if self.failed.is_none() {
            eprintln!("nvlab: the memory window: {why}; programs that need absent pages get SIGBUS");
            self.failed = Some(why);
        }
    }

    /// A fault that cannot be answered with a page.
    fn poison(&mut self, index: usize, address: u64) {
        let Some(client) = &self.clients[index] else { return };
        // Also one that was poisoned for another thread: that still waits.
        let poisoned = client.faults.poison(address).and_then(|_| client.faults.wake(address));
        match poisoned {
            Ok(Answered::Gone) => self.clients[index] = None,
            Ok(_) => {}
            // Before Linux 6.6 there is no such answer.
            Err(error) => self.give_up(index, format!("no SIGBUS either: {error}")),
        }
    }

    /// The only way not to leave a program hanging.
    pub(crate) fn give_up(&mut self, index: usize, why: String) {
        if let Some(client) = self.clients[index].take() {
            eprintln!("nvlab: the memory window: process {} is killed: {why}", client.process);
            process::kill(client.process);
        }
    }
}

/// Pages that follow each other.
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

    /// A device smaller than the window: what it cannot bring gives an error to who asks, not a wait; what is
    /// resident stays usable. The same where the mapping was write-protected while it was empty, as the door does.
    #[test]
    fn a_failed_device_leaves_nobody_waiting() {
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
        // Through the system, which turns the signal into an error.
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
    fn runs_of_neighbours() {
        let runs = |pages: &[u32]| Runs(pages).map(|run| (run.first, run.count)).collect::<Vec<_>>();
        assert_eq!(runs(&[3, 4, 5, 9, 11, 12]), [(3, 3), (9, 1), (11, 2)]);
        assert_eq!(runs(&[]), []);
    }
}
