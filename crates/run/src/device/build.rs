//! From a design to its device. The kind of controller is matched only here: everything else is generic over the
//! device ([`Visit`]), so that the inner loop is compiled for each controller.

use super::backing::{Backing, BuildError};
use super::power::Device;
use super::pram::Pram;
use super::{Observed, blocks, cached, direct, envy, hftl, link, memory, page_map, ram_disk, zoned};
use nvlab_access::{Attached, RamDisk};
use nvlab_controller::fsms::Fsms;
use nvlab_controller::{Beside, BesidePram, Controller};
use nvlab_design::{Design, Ftl, Route};
use nvlab_units::Time;

/// Something to do with a device of any kind.
pub trait Visit {
    /// What it returns.
    type Output;
    /// Does it. The device is ready at `ready`; a new one is ready from the beginning.
    fn visit<D: Device + Send + 'static>(self, device: D, ready: Time) -> Self::Output;
}

/// Builds the device of a design, or recovers it from its stores, and passes it to `visit`; a memory as a RAM disk, a log
/// not at all. A
/// device too large for this machine's memory is refused before anything is allocated.
pub fn build<B: Backing + ?Sized, V: Visit>(
    design: &Design,
    seed: u64,
    backing: &B,
    visit: V,
) -> Result<V::Output, BuildError> {
    match &design.ftl {
        Ftl::Page(page) => {
            memory::check(design, backing.payload()).map_err(BuildError::Memory)?;
            let pram = pram_beside(design, seed, backing)?;
            let built = page_map::build(design, page, seed, backing)?;
            beside_pram(design, backing, built, pram, visit)
        }
        Ftl::Cached(lines) => {
            memory::check(design, backing.payload()).map_err(BuildError::Memory)?;
            let (lines, ready) = cached::build(design, lines, seed, backing)?;
            Ok(visit.visit(Attached::new(lines, link(design)), ready))
        }
        Ftl::Blocks(blocks) => {
            memory::check(design, backing.payload()).map_err(BuildError::Memory)?;
            let pram = pram_beside(design, seed, backing)?;
            let built = blocks::build(design, blocks, seed, backing)?;
            beside_pram(design, backing, built, pram, visit)
        }
        Ftl::Hftl(hftl) => {
            memory::check(design, backing.payload()).map_err(BuildError::Memory)?;
            let (hftl, ready) = hftl::build(design, hftl, seed, backing)?;
            match &design.route {
                None => Ok(visit.visit(Attached::new(hftl, link(design)), ready)),
                Some(route) => routed(design, route, backing, (hftl, ready), visit),
            }
        }
        Ftl::Zoned(zones) => {
            memory::check(design, backing.payload()).map_err(BuildError::Memory)?;
            let (map, ready) = zoned::build(design, zones, seed, backing)?;
            Ok(visit.visit(zoned::InTurn::new(Attached::new(map, link(design))), ready))
        }
        Ftl::Direct(in_place) => {
            memory::check(design, backing.payload()).map_err(BuildError::Memory)?;
            if in_place.is_disk() {
                let disks = direct::disks(design, in_place, seed, backing)?;
                return Ok(visit.visit(Attached::new(disks, link(design)), Time::ZERO));
            }
            let (memories, ready) = direct::memories(design, in_place, seed, backing)?;
            Ok(visit.visit(Attached::new(memories, link(design)), ready))
        }
        // Reading the design refuses a driver in front of a memory.
        Ftl::Envy(envy) => {
            let (memory, ready) = envy::build(design, envy, seed, backing)?;
            Ok(visit.visit(RamDisk::new(memory, design.path.overhead_host), ready))
        }
        Ftl::RamDisk(disk) => {
            let (disk, ready) = ram_disk::build(design, disk, seed, backing)?;
            Ok(visit.visit(Attached::new(disk, link(design)), ready))
        }
        Ftl::Rvm(_) => {
            let why = "it is a log: it serves transactions such as debit-credit, not block requests";
            Err(BuildError::Design(why.into()))
        }
    }
}

/// A PRAM and when it is ready.
type Ready<B> = (Pram<<B as Backing>::Store>, Time);

/// The memory that a driver in front of a controller needs. Built before the controller: a controller's recovery changes
/// its array, and must not begin before the other media are known to be there.
fn pram_beside<B: Backing + ?Sized>(
    design: &Design,
    seed: u64,
    backing: &B,
) -> Result<Option<Ready<B>>, BuildError> {
    design.route.as_ref().map(|route| Pram::build(design, &route.pram, seed, backing)).transpose()
}

/// A controller without PRAM of its own; the memory is beside it if a driver in front needs it.
fn beside_pram<B: Backing + ?Sized, C, V: Visit>(
    design: &Design,
    backing: &B,
    (controller, ready): (C, Time),
    pram: Option<Ready<B>>,
    visit: V,
) -> Result<V::Output, BuildError>
where
    C: Controller + Observed + Send + 'static,
{
    match (&design.route, pram) {
        (None, _) | (_, None) => Ok(visit.visit(Attached::new(controller, link(design)), ready)),
        (Some(route), Some((pram, found))) => {
            routed(design, route, backing, (Beside { controller, pram }, ready.max(found)), visit)
        }
    }
}

/// A controller with PRAM behind the driver of the design.
fn routed<B: Backing + ?Sized, C, V: Visit>(
    design: &Design,
    route: &Route,
    backing: &B,
    (behind, ready): (C, Time),
    visit: V,
) -> Result<V::Output, BuildError>
where
    C: BesidePram + Observed + Send + 'static,
{
    let (fsms, ready) = match backing.is_used() {
        true => Fsms::mount(route.config(), behind, ready).map_err(BuildError::Recovery)?,
        false => (Fsms::new(route.config(), behind).map_err(BuildError::Design)?, ready),
    };
    Ok(visit.visit(Attached::new(fsms, link(design)), ready))
}
