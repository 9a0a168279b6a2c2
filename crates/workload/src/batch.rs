//! The fixed-size buffer in which requests are passed.

use nvlab_trace::Request;

/// Up to 32 consecutive requests, appended by [`crate::BlockWorkload::fill`] and processed by a simulator.
#[derive(Clone, Debug)]
pub struct Batch {
    requests: [Request; Batch::LEN],
    len: usize,
}

impl Default for Batch {
    fn default() -> Batch {
        Batch::new()
    }
}

impl Batch {
    /// Requests that fit: enough to prefetch their map entries together.
    pub const LEN: usize = 32;

    /// A batch without requests.
    pub fn new() -> Batch {
        Batch { requests: [Request::default(); Batch::LEN], len: 0 }
    }
    /// Makes it empty again.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }
    /// Requests in it, at most [`Batch::LEN`].
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }
    /// True after `new` or `clear`.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Requests that can still be pushed.
    #[inline]
    pub fn room(&self) -> usize {
        Batch::LEN - self.len
    }
    /// Appends one request. Panics if there is no room.
    #[inline]
    pub fn push(&mut self, request: Request) {
        self.requests[self.len] = request;
        self.len += 1;
    }
    /// Appends `count` requests made by `make`. Panics if they do not fit.
    #[inline]
    pub fn extend(&mut self, count: usize, mut make: impl FnMut() -> Request) {
        for slot in &mut self.requests[self.len..self.len + count] {
            *slot = make();
        }
        self.len += count;
    }
    /// Removes those of the requests from number `first` on that `keep` is false for.
    pub fn retain(&mut self, first: usize, keep: impl Fn(&Request) -> bool) {
        let mut kept = first;
        for index in first..self.len {
            if keep(&self.requests[index]) {
                self.requests[kept] = self.requests[index];
                kept += 1;
            }
        }
        self.len = kept;
    }
    /// In the order they were pushed.
    #[inline]
    pub fn requests(&self) -> &[Request] {
        &self.requests[..self.len]
    }

    /// As [`Batch::requests`], for wrappers that shift or tag them.
    pub fn requests_mut(&mut self) -> &mut [Request] {
        &mut self.requests[..self.len]
    }
}

impl<'a> IntoIterator for &'a Batch {
    type Item = &'a Request;
    type IntoIter = std::slice::Iter<'a, Request>;
    fn into_iter(self) -> Self::IntoIter {
        self.requests().iter()
    }
}
