//! A device of any kind behind a pointer. Code that takes one is compiled once; only its inner loop is compiled for
//! each kind.

use super::{BuildError, Carrying, Device, InMemory, Media, NoBytes, Visit, build, link, memory, page_map};
use crate::DeviceUnderTest;
use nvlab_access::Attached;
use nvlab_controller::{PageMap, Powered, RecoveryReport};
use nvlab_design::{Design, Ftl, Payload};
use nvlab_units::Time;

/// A block device as a design describes it, whose power can fail, with any controller.
pub trait AnyDevice: DeviceUnderTest + Send {
    /// True if its media keep what is written.
    fn keeps(&self) -> bool;
    /// The power fails at `at` and comes back.
    fn power_cycle(self: Box<Self>, at: Time) -> Result<(Box<dyn AnyDevice>, RecoveryReport), String>;
}

impl<D: Device + Send + 'static> AnyDevice for D {
    fn keeps(&self) -> bool {
        D::KEEPS
    }

    fn power_cycle(self: Box<Self>, at: Time) -> Result<(Box<dyn AnyDevice>, RecoveryReport), String> {
        let (device, report) = Powered::power_cycle(*self, at)?;
        Ok((Box::new(device), report))
    }
}

/// Builds the device of a design, new from the factory; requests may carry no bytes ([`Carrying`]). Its media keep what is written
/// if there is memory for it.
pub fn any(design: &Design, seed: u64, bytes: Option<InMemory>) -> Result<Box<dyn AnyDevice>, BuildError> {
    struct Boxed;
    impl Visit for Boxed {
        type Output = Box<dyn AnyDevice>;
        fn visit<D: Device + Send + 'static>(self, device: D, _: Time) -> Box<dyn AnyDevice> {
            Box::new(Carrying::new(device))
        }
    }
    match bytes {
        Some(bytes) => build(design, seed, &bytes as &Media<'_>, Boxed),
        None => build(design, seed, &NoBytes, Boxed),
    }
}

/// Builds the page map of a design that has nothing else, without payload. Panics if it has another controller.
pub(crate) fn plain_page_map(design: &Design, seed: u64) -> Result<Attached<PageMap>, BuildError> {
    let Ftl::Page(page) = &design.ftl else { panic!("{} has no page map", design.name) };
    memory::check(design, Payload::Nothing).map_err(BuildError::Memory)?;
    let (map, _) = page_map::build(design, page, seed, &NoBytes)?;
    Ok(Attached::new(map, link(design)))
}
