//! A processor's cache in front of persistent memory, simulated: what a power cut may leave of the stores made so far.
//!
//! The durable image changes only at fences. Each line of 64 B that differs from it is *dirty*, or *flushed* with the
//! contents it had at the flush. A power cut leaves every such line, independently, with the durable, the flushed or
//! the current contents: caches may evict a line at any time. Contents between two events are not covered.
//!
//! The same object counts fences and lines exactly, and charges the delays of phase-change memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const LINE: usize = 64;

/// The additional time of phase-change memory over DRAM: charged, and optionally waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// Nanoseconds for each line of an object that a transaction opens. Slide 9 of system 004: 67.
    pub read_ns: u64,
    /// Nanoseconds for each line written to memory. Slide 9 of system 004: 215.
    pub write_ns: u64,
    /// Whether the program waits; otherwise the time is only added up.
    pub is_waited_for: bool,
}

impl Delays {
    /// Phase-change memory as system 004 emulates it, added up only.
    pub const PCM: Delays = Delays { read_ns: 67, write_ns: 215, is_waited_for: false };
}

/// Counts since the cache was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Waits for memory.
    pub fences: u64,
    /// Flush instructions, also of clean lines.
    pub flushes: u64,
    /// Lines of the home locations that reached memory by a flush.
    pub flushed_lines: u64,
    /// Lines written past the caches: the logs, and large new objects.
    pub streamed_lines: u64,
    /// Lines of objects that were opened.
    pub read_lines: u64,
    /// Delays charged, in nanoseconds.
    pub charged_ns: u64,
}

impl Counts {
    /// Counts since `earlier`.
    pub fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            fences: self.fences - earlier.fences,
            flushes: self.flushes - earlier.flushes,
            flushed_lines: self.flushed_lines - earlier.flushed_lines,
            streamed_lines: self.streamed_lines - earlier.streamed_lines,
            read_lines: self.read_lines - earlier.read_lines,
            charged_ns: self.charged_ns - earlier.charged_ns,
        }
    }

    /// The sum of two counts.
    pub fn plus(&self, other: &Counts) -> Counts {
        Counts {
            fences: self.fences + other.fences,
            flushes: self.flushes + other.flushes,
            flushed_lines: self.flushed_lines + other.flushed_lines,
            streamed_lines: self.streamed_lines + other.streamed_lines,
            read_lines: self.read_lines + other.read_lines,
            charged_ns: self.charged_ns + other.charged_ns,
        }
    }
}

/// A moment at which power may fail.
#[derive(Clone, Debug)]
pub struct CrashPoint {
    durable: Arc<Vec<u8>>,
    /// Lines that are not durable, with the contents each may have instead.
    unfenced: Vec<(usize, Vec<[u8; LINE]>)>,
}

impl CrashPoint {
    /// Choices for each line that is not durable: 1 (as the image has it) plus its other contents.
    pub fn choices(&self) -> Vec<usize> {
        self.unfenced.iter().map(|(_, contents)| contents.len() + 1).collect()
    }

    /// The contents after a cut that leaves line `i` with its choice `pick(i)`; 0 is the durable image.
    pub fn image(&self, mut pick: impl FnMut(usize) -> usize) -> Vec<u8> {
        let mut image = (*self.durable).clone();
        for (i, (line, contents)) in self.unfenced.iter().enumerate() {
            if let Some(content) = pick(i).checked_sub(1) {
                image[line * LINE..][..LINE].copy_from_slice(&contents[content]);
            }
        }
        image
    }
}

#[derive(Debug, Default)]
struct State {
    durable: Arc<Vec<u8>>,
    flushed: BTreeMap<usize, [u8; LINE]>,
    counts: Counts,
    points: Option<Vec<CrashPoint>>,
}

/// The simulated cache of one heap.
#[derive(Debug)]
pub struct Simulated {
    delays: Delays,
    state: Mutex<State>,
}

impl Simulated {
    /// An empty one; the heap fills it when it is created or opened.
    pub fn new(delays: Delays) -> Arc<Simulated> {
        Arc::new(Simulated { delays, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters.
    pub fn counts(&self) -> Counts {
        self.state().counts
    }

    /// From now on every streamed write and every fence is recorded as a possible moment of a power cut. Nothing is
    /// stored between the flushes before a fence, so the fence covers cuts between them.
    pub fn record(&self) {
        self.state().points = Some(Vec::new());
    }

    /// The moments since [`Simulated::record`]; recording ends.
    pub fn take_points(&self) -> Vec<CrashPoint> {
        self.state().points.take().unwrap_or_default()
    }

    /// All of memory is durable now.
    pub(crate) fn reset(&self, memory: &[u8]) {
        let mut state = self.state();
        state.durable = Arc::new(memory.to_vec());
        state.flushed.clear();
    }

    /// `lines` are about to be flushed, or have been streamed.
    pub(crate) fn flushed(&self, memory: &[u8], lines: std::ops::Range<usize>, is_streamed: bool) {
        let mut state = self.state();
        state.fill(memory);
        if is_streamed {
            state.capture(memory);
        }
        for line in lines {
            let now: [u8; LINE] = memory[line * LINE..][..LINE].try_into().expect("a line");
            let durable = &state.durable[line * LINE..][..LINE];
            let is_clean = state.flushed.get(&line).map_or(durable == now, |flushed| *flushed == now);
            if is_streamed {
                state.counts.streamed_lines += 1;
            } else {
                state.counts.flushes += 1;
                state.counts.flushed_lines += u64::from(!is_clean);
            }
            if !is_clean {
                state.flushed.insert(line, now);
                state.counts.charged_ns += self.delays.write_ns;
                self.wait(self.delays.write_ns);
            }
        }
    }

    /// What was flushed is durable after this.
    pub(crate) fn fence(&self, memory: &[u8]) {
        let mut state = self.state();
        state.fill(memory);
        state.capture(memory);
        state.counts.fences += 1;
        let flushed = std::mem::take(&mut state.flushed);
        let durable = Arc::make_mut(&mut state.durable);
        for (line, content) in flushed {
            durable[line * LINE..][..LINE].copy_from_slice(&content);
        }
    }

    /// `bytes` of an object are opened.
    pub(crate) fn read(&self, bytes: usize) {
        let lines = bytes.div_ceil(LINE) as u64;
        let mut state = self.state();
        state.counts.read_lines += lines;
        state.counts.charged_ns += lines * self.delays.read_ns;
        self.wait(lines * self.delays.read_ns);
    }

    fn wait(&self, ns: u64) {
        let until = self.delays.is_waited_for.then(|| Instant::now() + Duration::from_nanos(ns));
        while until.is_some_and(|until| Instant::now() < until) {
            std::hint::spin_loop();
        }
    }
}

impl State {
    /// The file has grown.
    fn fill(&mut self, memory: &[u8]) {
        if self.durable.len() < memory.len() {
            Arc::make_mut(&mut self.durable).resize(memory.len(), 0);
        }
    }

    fn capture(&mut self, memory: &[u8]) {
        let Some(points) = &mut self.points else { return };
        const LINES: usize = 64;
        let mut unfenced = Vec::new();
        for (page, (now, then)) in
            memory.chunks(LINES * LINE).zip(self.durable.chunks(LINES * LINE)).enumerate()
        {
            let mut flushed = self.flushed.range(page * LINES..(page + 1) * LINES);
            if now == then && flushed.next().is_none() {
                continue;
            }
            for (i, (now, then)) in now.chunks(LINE).zip(then.chunks(LINE)).enumerate() {
                let line = page * LINES + i;
                let mut contents: Vec<[u8; LINE]> = Vec::new();
                for content in self.flushed.get(&line).map(|line| &line[..]).into_iter().chain([now]) {
                    if content != then && !contents.iter().any(|known| known == content) {
                        contents.push(content.try_into().expect("a line"));
                    }
                }
                if !contents.is_empty() {
                    unfenced.push((line, contents));
                }
            }
        }
        points.push(CrashPoint { durable: self.durable.clone(), unfenced });
    }
}
