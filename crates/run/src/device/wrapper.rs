//! What a device around another one reports: what the inner one does, except where it has something of its own to say.

use super::{Counters, Fill, Insides, Maps, Observed, Twin};
use nvlab_access::Attached;
use nvlab_controller::{Background, ControllerError, PageMap};
use nvlab_units::{Lpa, Span, Time};

/// A device around another one. Each method is that of [`Observed`] and passes on to the inner device.
pub trait Wrapper: Background {
    /// The device inside.
    type Inner: Observed + ?Sized;
    /// The device inside.
    fn inner(&self) -> &Self::Inner;
    /// The same, mutable.
    fn inner_mut(&mut self) -> &mut Self::Inner;

    /// See [`Observed::reset_stats`].
    fn reset_stats(&mut self) {
        self.inner_mut().reset_stats();
    }
    /// See [`Observed::expect_appends`].
    fn expect_appends(&mut self, appends: bool) {
        self.inner_mut().expect_appends(appends);
    }
    /// See [`Observed::unit_bytes`].
    fn unit_bytes(&self) -> u32 {
        self.inner().unit_bytes()
    }
    /// See [`Observed::insides`].
    fn insides(&self, span: Span) -> Insides<'_> {
        self.inner().insides(span)
    }
    /// See [`Observed::maps`].
    fn maps(&self) -> Maps {
        self.inner().maps()
    }
    /// See [`Observed::buffered`].
    fn buffered(&mut self, at: Time) -> Option<Fill> {
        self.inner_mut().buffered(at)
    }
    /// See [`Observed::page_map`]. None by default: what is kept has nothing around it.
    fn page_map(&self) -> Option<&Attached<PageMap>> {
        None
    }
    /// See [`Observed::twin`].
    fn twin(&self, requests: &[u32], flushes: bool) -> Option<Twin> {
        self.inner().twin(requests, flushes)
    }
}

impl<W: Wrapper> Observed for W {
    fn counters(&self) -> Counters {
        self.inner().counters()
    }
    fn reset_stats(&mut self) {
        Wrapper::reset_stats(self);
    }
    fn expect_scattered_fill(&mut self) {
        self.inner_mut().expect_scattered_fill();
    }
    fn expect_appends(&mut self, appends: bool) {
        Wrapper::expect_appends(self, appends);
    }
    fn zones(&self) -> Option<(u64, u64)> {
        self.inner().zones()
    }
    fn unit_bytes(&self) -> u32 {
        Wrapper::unit_bytes(self)
    }
    fn blocks(&self) -> u32 {
        self.inner().blocks()
    }
    fn insides(&self, span: Span) -> Insides<'_> {
        Wrapper::insides(self, span)
    }
    fn maps(&self) -> Maps {
        Wrapper::maps(self)
    }
    fn buffered(&mut self, at: Time) -> Option<Fill> {
        Wrapper::buffered(self, at)
    }
    fn is_log_full(&self) -> Option<bool> {
        self.inner().is_log_full()
    }
    fn rest(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.inner_mut().rest(at)
    }
    fn page_map(&self) -> Option<&Attached<PageMap>> {
        Wrapper::page_map(self)
    }
    fn twin(&self, requests: &[u32], flushes: bool) -> Option<Twin> {
        Wrapper::twin(self, requests, flushes)
    }
    fn split(&mut self, twin: &Twin, member: &mut dyn FnMut(Lpa, u32) -> Option<Lpa>) -> bool {
        self.inner_mut().split(twin, member)
    }
}
