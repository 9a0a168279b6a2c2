//! Page allocation: loaded data in one piece, later growth in extents.
//!
//! 1. Every table and every tree is a segment. Its loaded pages are contiguous; a segment that grows takes extents
//!    of 64 pages from the end of the database, as storage engines do, so that rows added one after another are
//!    stored one after another.
//! 2. An extent is never freed.

/// Pages of an extent: 256 KiB of 4 KiB pages (an assumption; products use 64 KiB to 1 MiB).
pub const EXTENT_PAGES: u32 = 64;

/// The pages of the device, of which the first ones are allocated.
#[derive(Clone, Debug)]
pub struct Space {
    next: u32,
    end: u32,
}

impl Space {
    /// The pages `0..end`, all free.
    pub fn new(end: u32) -> Space {
        Space { next: 0, end }
    }

    pub fn used_pages(&self) -> u32 {
        self.next
    }

    pub fn free_extents(&self) -> u32 {
        (self.end - self.next) / EXTENT_PAGES
    }

    /// Allocates `count` contiguous pages and returns the first. Panics if they do not fit: the caller must have
    /// checked.
    pub fn take(&mut self, count: u32) -> u32 {
        assert!(count <= self.end - self.next, "{count} pages, {} of {} used", self.next, self.end);
        self.next += count;
        self.next - count
    }
}

/// The pages of one table or tree, numbered from 0.
#[derive(Clone, Debug)]
pub struct Segment {
    first: u32,
    loaded: u32,
    pages: u32,
    extents: Vec<u32>,
}

impl Segment {
    /// A segment with `loaded` contiguous pages.
    pub fn new(space: &mut Space, loaded: u32) -> Segment {
        Segment { first: space.take(loaded), loaded, pages: loaded, extents: Vec::new() }
    }

    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// The device page of its page `number`.
    #[inline]
    pub fn page(&self, number: u32) -> u32 {
        if number < self.loaded {
            return self.first + number;
        }
        let grown = number - self.loaded;
        self.extents[(grown / EXTENT_PAGES) as usize] + grown % EXTENT_PAGES
    }

    /// Adds a page and returns its device page.
    pub fn grow(&mut self, space: &mut Space) -> u32 {
        if (self.pages - self.loaded).is_multiple_of(EXTENT_PAGES) {
            self.extents.push(space.take(EXTENT_PAGES));
        }
        self.pages += 1;
        self.page(self.pages - 1)
    }
}

/// Rows in the order in which they were added.
#[derive(Clone, Debug)]
pub struct Heap {
    segment: Segment,
    rows: u32,
    per_page: u32,
}

impl Heap {
    /// A heap with `rows` loaded rows, `per_page` on a page.
    pub fn new(space: &mut Space, rows: u32, per_page: u32) -> Heap {
        Heap { segment: Segment::new(space, rows.div_ceil(per_page)), rows, per_page }
    }

    pub fn rows(&self) -> u32 {
        self.rows
    }

    pub fn pages(&self) -> u32 {
        self.segment.pages()
    }

    #[inline]
    pub fn page(&self, row: u32) -> u32 {
        self.segment.page(row / self.per_page)
    }

    /// Adds a row and returns its page and whether that page is new.
    #[inline]
    pub fn append(&mut self, space: &mut Space) -> (u32, bool) {
        let number = self.rows / self.per_page;
        self.rows += 1;
        match number < self.segment.pages() {
            true => (self.segment.page(number), false),
            false => (self.segment.grow(space), true),
        }
    }

    /// Removes the newest row and returns its page.
    pub fn take_back(&mut self) -> u32 {
        self.rows -= 1;
        self.page(self.rows)
    }
}
