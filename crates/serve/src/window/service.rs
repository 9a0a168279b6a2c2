//! An open window, mapped here or by other programs: device, resident file, state and handler.

use super::device::{PageDevice, PageDeviceConfig};
use super::engine::{Client, Engine};
use super::handler::{FaultHandler, Shared};
use super::state::{Found, SHARED_MEMORY, WindowState};
use super::stats::WindowStats;
use crate::ServeError;
use crate::clock::TimeMode;
use crate::mapped_store::MappedStore;
use crate::sys::abi;
use crate::sys::abi::PAGE_BYTES;
use crate::sys::userfaultfd::Userfaultfd;
use nvlab_os::{Mapping, file};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a window is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowOptions {
    /// Bytes, a multiple of 4 KiB. `None`: as many as the state has, or [`WindowOptions::BYTES`].
    pub bytes: Option<u64>,
    /// Folder of the state; `None`: the window is forgotten when it is closed.
    pub state: Option<PathBuf>,
    /// Bytes that may be resident, at least 64 KiB. `None`: a quarter of the window.
    pub resident_bytes: Option<u64>,
    /// Whether faults are answered as late as the modelled device would.
    pub time: TimeMode,
    /// Pages evicted together, at most a quarter of the resident ones; 1 shows the cost of each eviction.
    pub evict_pages: u32,
    /// The core that the handler is pinned to; `None`: any.
    pub handler_core: Option<usize>,
}

impl WindowOptions {
    /// Size of a new window without `bytes`: 256 MiB.
    pub const BYTES: u64 = 256 << 20;
}

impl Default for WindowOptions {
    fn default() -> WindowOptions {
        WindowOptions {
            bytes: None,
            state: None,
            resident_bytes: None,
            time: TimeMode::default(),
            evict_pages: 32,
            handler_core: None,
        }
    }
}

/// State and media files of a window that outlives its processes.
#[derive(Debug)]
struct Kept {
    state: WindowState,
    media: [File; 2],
}

impl Kept {
    fn sync(&self) -> Result<(), ServeError> {
        self.media
            .iter()
            .try_for_each(|file| file.sync_data())
            .map_err(ServeError::io("cannot write the media files to disk"))
    }
}

/// An open window.
#[derive(Debug)]
pub(crate) struct Service {
    handler: FaultHandler,
    kept: Option<Kept>,
    bytes: u64,
    found: Found,
    user_only: bool,
    closed: bool,
}

impl Service {
    /// Opens a window, new or from its state.
    pub(crate) fn open(options: &WindowOptions) -> Result<Service, ServeError> {
        // Before anything is created: a window needs a userfaultfd.
        let (_, user_only) = Userfaultfd::new().map_err(ServeError::NotPermitted)?;
        let (state, found) = match &options.state {
            Some(folder) => {
                let (state, found) = WindowState::open(folder, options.bytes, WindowOptions::BYTES)?;
                (Some(state), found)
            }
            None => (None, Found::Fresh),
        };
        let bytes =
            state.as_ref().map_or(options.bytes.unwrap_or(WindowOptions::BYTES), WindowState::window_bytes);
        let config = PageDeviceConfig::envy(bytes).map_err(ServeError::Options)?;
        let limit = limit(options, bytes)?;
        let sizes = config.media_bytes();
        let (mut kept, stores) = match state {
            Some(state) => {
                let (nor, nor_file) = state.medium("nor", sizes[0], &found)?;
                let (sram, sram_file) = state.medium("sram", sizes[1], &found)?;
                if found == Found::Fresh {
                    state.warn_of_space(sizes.iter().sum())?;
                }
                (Some(Kept { state, media: [nor_file, sram_file] }), [nor, sram])
            }
            None => {
                let memory = |bytes| {
                    Mapping::anonymous(bytes)
                        .map_err(ServeError::io(format!("cannot allocate {bytes} B of memory for the media")))
                };
                (None, [memory(sizes[0])?, memory(sizes[1])?])
            }
        };
        let device =
            PageDevice::open(&config, stores.map(MappedStore::new), found != Found::Fresh, options.time);
        let device = device.map_err(|error| match (error, &options.state) {
            (ServeError::Recovery(why), Some(folder)) => {
                ServeError::Recovery(format!("{} (nor, sram): {why}", folder.display()))
            }
            (error, _) => error,
        })?;
        let resident = resident(kept.as_ref(), &found, bytes, limit)?;
        if let Some(kept) = &mut kept {
            kept.state.mark_open()?;
        }
        let pages = (bytes / PAGE_BYTES as u64) as u32;
        // A page that was just loaded must not be evicted with the oldest.
        let batch = (options.evict_pages as usize).clamp(1, limit / 4);
        let engine = Engine::new(device, resident, pages, limit, batch)?;
        let handler = FaultHandler::start(engine, options.handler_core)?;
        Ok(Service { handler, kept, bytes, found, user_only, closed: false })
    }

    /// How it was found.
    pub(crate) fn found(&self) -> &Found {
        &self.found
    }

    /// True if faults of system calls are not served.
    pub(crate) fn is_user_only(&self) -> bool {
        self.user_only
    }

    /// Bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What others need to have mappings served.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handler.shared
    }

    /// Maps the whole window into this process.
    pub(crate) fn map(&self) -> Result<Mapping, ServeError> {
        let failed = || ServeError::io("cannot map the window");
        let mapping = Mapping::shared_inaccessible(self.shared().engine().resident(), self.bytes);
        // Before it is watched, the kernel would fill absent pages with zeros.
        let mapping = mapping.map_err(failed())?;
        mapping.exclude_from_fork().map_err(failed())?;
        mapping.refuse_huge_pages(0);
        let (faults, _) = Userfaultfd::new().map_err(ServeError::NotPermitted)?;
        let address = mapping.start().expose_provenance() as u64;
        faults.register(address, self.bytes).map_err(ServeError::NotPermitted)?;
        let pages = (self.bytes / abi::PAGE_BYTES as u64) as u32;
        let process = std::process::id() as i32;
        let client = Client { faults, process, address, first_page: 0, pages };
        self.shared().admit(client).map_err(failed())?;
        mapping.make_accessible().map_err(failed())?;
        Ok(mapping)
    }

    /// Writes everything stored before to the device, and the device to its files.
    pub(crate) fn sync(&self) -> Result<(), ServeError> {
        let mut from = 0;
        // In batches, so that faults are answered in between.
        loop {
            let mut engine = self.shared().engine();
            self.shared().whole()?;
            let next = engine.write_back_from(from)?;
            drop(engine);
            let Some(next) = next else { break };
            from = next;
            std::thread::yield_now();
        }
        self.kept.as_ref().map_or(Ok(()), Kept::sync)
    }

    /// The counts so far.
    pub(crate) fn stats(&self) -> WindowStats {
        self.shared().engine().stats()
    }

    /// Writes everything back and marks the state closed. No mapping may be in use any more.
    pub(crate) fn close(&mut self) -> Result<(), ServeError> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(());
        }
        self.handler.stop();
        self.sync()?;
        self.kept.as_mut().map_or(Ok(()), |kept| kept.state.mark_closed())
    }
}

/// With fewer, pages could be evicted before an instruction that needs several of them completes.
const RESIDENT_PAGES_MIN: u64 = 16;

/// Pages that may be resident.
fn limit(options: &WindowOptions, bytes: u64) -> Result<usize, ServeError> {
    let least = RESIDENT_PAGES_MIN * PAGE_BYTES as u64;
    let asked = options.resident_bytes.unwrap_or((bytes / 4).max(least));
    if asked < least {
        return Err(ServeError::Options(format!("{asked} B resident: at least {least} B are needed")));
    }
    Ok((asked / PAGE_BYTES as u64) as usize)
}

/// The resident file of a state, or one that vanishes with the processes that have it open.
fn resident(kept: Option<&Kept>, found: &Found, bytes: u64, limit: usize) -> Result<File, ServeError> {
    let Some(kept) = kept else {
        let failed = || ServeError::io("cannot create the resident file");
        let file = file::anonymous(c"nvlab-window-resident", false).map_err(failed())?;
        file.set_len(bytes).map_err(failed())?;
        return Ok(file);
    };
    let file = kept.state.resident(found)?;
    let needed = limit as u64 * PAGE_BYTES as u64;
    let free = file::free_bytes(Path::new(SHARED_MEMORY))
        .map_err(ServeError::io(format!("cannot inspect {SHARED_MEMORY}")))?;
    if *found != Found::Resident && free < needed {
        return Err(ServeError::Options(format!(
            "{SHARED_MEMORY} has {free} B free, but {needed} B must be resident"
        )));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread panics while it has the engine locked: no page is written back any more, and the next start recovers the window
    /// as after a kill.
    #[test]
    fn after_a_panic_nothing_is_written_back() {
        let folder = std::env::temp_dir().join(format!("nvlab-serve-window-panic-{}", std::process::id()));
        let options =
            WindowOptions { bytes: Some(256 << 10), state: Some(folder.clone()), ..WindowOptions::default() };
        let mut service = match Service::open(&options) {
            Err(ServeError::NotPermitted(error)) => return eprintln!("SKIPPED: {error}"),
            opened => opened.unwrap(),
        };
        let shared = Arc::clone(service.shared());
        let panics = move || {
            let _engine = shared.engine();
            panic!("while it has the engine");
        };
        assert!(std::thread::spawn(panics).join().is_err());
        assert!(matches!(service.sync(), Err(ServeError::Bug(_))));
        assert!(matches!(service.close(), Err(ServeError::Bug(_))));
        drop(service);
        assert_eq!(*Service::open(&options).unwrap().found(), Found::Resident);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
