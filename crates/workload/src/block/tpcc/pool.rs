//! The buffer pool: exact LRU over frames, in flat arrays.
//!
//! 1. Every access to a page makes its frame the most recently used one; a page that is not in the pool takes the
//!    least recently used frame. Page numbers are dense, so finding the frame of a page is one array read: no hashing.
//! 2. A dirty page is written when it is evicted or at a checkpoint, a clean one is just dropped. The victim is
//!    written before the page that takes its frame is read.
//! 3. A newly created page is not read.
//! 4. The table of pages grows with the database, not with the device.
//! 5. Frames are linked in a ring through an anchor: the anchor's next is the newest, its previous the oldest.

const ABSENT: u32 = u32::MAX;

/// The kind of a page access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    Read,
    /// Read and made dirty.
    Change,
    /// It is new, so nothing is read.
    Create,
}

/// A request of the engine to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageIo {
    /// A page that was not in the pool.
    Read(u32),
    /// A dirty page that is evicted, or written by a checkpoint.
    Write(u32),
    /// A page of the log, durable before the transaction ends.
    Log(u32),
    /// The end of a checkpoint.
    Flush,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    previous: u32,
    next: u32,
    page: u32,
    is_changed: bool,
}

/// The pool, and the queue of its requests.
#[derive(Clone, Debug)]
pub struct Pool {
    /// The frame of every page up to the last one accessed.
    frame_of: Vec<u32>,
    /// The frames, followed by the anchor.
    frames: Vec<Frame>,
    used: u32,
    #[cfg(test)]
    touches: u64,
    /// Requests since the queue was last emptied.
    pub(super) queue: Vec<PageIo>,
}

impl Pool {
    pub fn new(frames: u32) -> Pool {
        assert!(frames > 0 && frames < ABSENT, "{frames} frames");
        let empty = Frame { previous: frames, next: frames, page: ABSENT, is_changed: false };
        Pool {
            frame_of: Vec::new(),
            frames: vec![empty; frames as usize + 1],
            used: 0,
            #[cfg(test)]
            touches: 0,
            queue: Vec::new(),
        }
    }

    pub fn frames(&self) -> u32 {
        self.anchor()
    }

    /// True if every frame holds a page.
    pub fn is_full(&self) -> bool {
        self.used == self.anchor()
    }

    /// The number of page accesses, in the pool or not.
    #[cfg(test)]
    pub fn touches(&self) -> u64 {
        self.touches
    }

    #[inline]
    fn anchor(&self) -> u32 {
        (self.frames.len() - 1) as u32
    }

    /// Accesses `page`. The resulting requests are added to the queue.
    #[inline]
    pub fn touch(&mut self, page: u32, how: Touch) {
        #[cfg(test)]
        {
            self.touches += 1;
        }
        let mut frame = self.frame_of.get(page as usize).copied().unwrap_or(ABSENT);
        if frame == ABSENT {
            frame = self.bring(page, how);
        } else if self.frames[self.anchor() as usize].next != frame {
            self.unlink(frame);
            self.link_newest(frame);
        }
        self.frames[frame as usize].is_changed |= how != Touch::Read;
    }

    /// Assigns a frame to `page`.
    fn bring(&mut self, page: u32, how: Touch) -> u32 {
        let anchor = self.anchor();
        let frame = if self.used < anchor {
            self.used += 1;
            self.used - 1
        } else {
            let oldest = self.frames[anchor as usize].previous;
            let victim = self.frames[oldest as usize];
            if victim.is_changed {
                self.queue.push(PageIo::Write(victim.page));
            }
            self.frame_of[victim.page as usize] = ABSENT;
            self.unlink(oldest);
            oldest
        };
        if how != Touch::Create {
            self.queue.push(PageIo::Read(page));
        }
        if self.frame_of.len() <= page as usize {
            self.frame_of.resize(page as usize + 1, ABSENT);
        }
        self.frame_of[page as usize] = frame;
        self.frames[frame as usize] = Frame { previous: anchor, next: anchor, page, is_changed: false };
        self.link_newest(frame);
        frame
    }

    #[inline]
    fn unlink(&mut self, frame: u32) {
        let Frame { previous, next, .. } = self.frames[frame as usize];
        self.frames[previous as usize].next = next;
        self.frames[next as usize].previous = previous;
    }

    #[inline]
    fn link_newest(&mut self, frame: u32) {
        let anchor = self.anchor();
        let newest = self.frames[anchor as usize].next;
        self.frames[frame as usize].previous = anchor;
        self.frames[frame as usize].next = newest;
        self.frames[newest as usize].previous = frame;
        self.frames[anchor as usize].next = frame;
    }

    /// Writes every dirty page, in order of address, and ends with a flush. The pages stay in the pool.
    pub fn checkpoint(&mut self) {
        let begin = self.queue.len();
        for frame in &mut self.frames {
            if std::mem::take(&mut frame.is_changed) {
                self.queue.push(PageIo::Write(frame.page));
            }
        }
        self.queue[begin..].sort_unstable_by_key(|io| match io {
            PageIo::Write(page) => *page,
            other => panic!("{other:?} among the writes of a checkpoint"),
        });
        self.queue.push(PageIo::Flush);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_units::Rng;
    use std::collections::VecDeque;

    /// The same by moving pages in a list, newest first.
    struct Model {
        frames: usize,
        pages: VecDeque<(u32, bool)>,
        queue: Vec<PageIo>,
    }

    impl Model {
        fn touch(&mut self, page: u32, how: Touch) {
            let place = self.pages.iter().position(|&(other, _)| other == page);
            let was_changed = match place {
                Some(place) => self.pages.remove(place).unwrap().1,
                None => {
                    if self.pages.len() == self.frames
                        && let Some((victim, true)) = self.pages.pop_back()
                    {
                        self.queue.push(PageIo::Write(victim));
                    }
                    if how != Touch::Create {
                        self.queue.push(PageIo::Read(page));
                    }
                    false
                }
            };
            self.pages.push_front((page, was_changed || how != Touch::Read));
        }

        fn checkpoint(&mut self) {
            let mut changed: Vec<u32> = self.pages.iter().filter(|page| page.1).map(|page| page.0).collect();
            changed.sort_unstable();
            self.queue.extend(changed.into_iter().map(PageIo::Write));
            self.queue.push(PageIo::Flush);
            self.pages.iter_mut().for_each(|page| page.1 = false);
        }
    }

    #[test]
    fn a_pool_evicts_as_an_lru_list_does() {
        for (seed, frames, pages) in
            [(1, 1, 3), (2, 2, 3), (3, 8, 40), (4, 30, 31), (5, 50, 20), (6, 100, 400)]
        {
            let mut rng = Rng::new(seed);
            let mut pool = Pool::new(frames);
            let mut model = Model { frames: frames as usize, pages: VecDeque::new(), queue: Vec::new() };
            for step in 0..20_000 {
                let (a, b) = (rng.below(pages as u64), rng.below(pages as u64));
                let how = [Touch::Read, Touch::Change, Touch::Create][rng.below(3) as usize];
                // The lesser of two is skewed, so that some pages stay and some leave.
                pool.touch(a.min(b) as u32, how);
                model.touch(a.min(b) as u32, how);
                if rng.chance(0.001) {
                    pool.checkpoint();
                    model.checkpoint();
                }
                assert_eq!(pool.queue, model.queue, "seed {seed}, step {step}");
                pool.queue.clear();
                model.queue.clear();
            }
            assert_eq!(pool.is_full(), model.pages.len() == frames as usize);
            assert_eq!(pool.touches(), 20_000);
        }
    }
}
