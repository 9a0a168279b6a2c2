//! Devices with PRAM: hFTL, and FSMS in front of a controller.
//!
//! They come in two forms: one that only tells the time, and one whose media keep what is written, for workloads that
//! carry bytes. Only then does FSMS learn from what it sees, PRAM compares before it writes, and a mount after a power
//! cut can be tried. Which form it is, and whether there is a driver in front, is decided once, in [`build`]; what is
//! to be done with the device is generic ([`Visit`]).

mod memory;
mod observed;

pub use memory::{Fresh, Pram};

use super::{Counters, Insides, Observed, link};
use crate::design::{Design, Ftl, PramMapped};
use crate::result::MountResult;
use nvlab_access::{Attached, BlockDevice, HostPath};
use nvlab_controller::fsms::Fsms;
use nvlab_controller::{Beside, BesidePram, BlockMap, Controller, ControllerError, Hftl, PageMap};
use nvlab_medium::flash::{FlashConfig, Nand};
use nvlab_medium::{MemStore, PowerCut};
use nvlab_units::{Served, Span, Time};

/// Something to be done with a device of whatever kind.
pub trait Visit {
    /// What comes of it.
    type Output;
    /// Does it.
    fn visit<D: BlockDevice + Observed>(self, device: D) -> Self::Output;
}

/// Builds the device of a design with PRAM, new from the factory, and hands it to `visit`. `payload`: its media are to
/// keep what is written.
pub fn build<V: Visit>(design: &Design, seed: u64, payload: bool, visit: V) -> Result<V::Output, String> {
    match payload {
        true => build_in::<MemStore, V>(design, seed, visit),
        false => build_in::<(), V>(design, seed, visit),
    }
}

/// True if [`build`] is what builds the device of a design.
pub fn is_visited(design: &Design) -> bool {
    design.route.is_some() || matches!(design.ftl, Ftl::Hftl(_) | Ftl::Blocks(_))
}

fn build_in<S: Fresh, V: Visit>(design: &Design, seed: u64, visit: V) -> Result<V::Output, String> {
    match &design.ftl {
        Ftl::Hftl(hftl) => routed(design, self::hftl::<S>(design, hftl, seed)?, visit),
        Ftl::Page(page) => {
            plain::<S, _, V>(design, seed, super::page_map::controller::<S>(design, page, seed)?, visit)
        }
        Ftl::Blocks(blocks) => {
            plain::<S, _, V>(design, seed, super::blocks::build::<S>(design, blocks, seed)?, visit)
        }
        Ftl::Envy(_) => unreachable!("a memory was refused a driver in front when the design was read"),
    }
}

/// The data array of the design.
fn nand<S: Fresh>(design: &Design, seed: u64) -> Nand<S> {
    array(design.flash_config(seed))
}

/// An array, new from the factory.
pub fn array<S: Fresh>(flash: FlashConfig) -> Nand<S> {
    let store = S::fresh(Nand::<S>::store_bytes(&flash.geometry));
    Nand::new(flash, store)
}

/// hFTL of a design.
pub fn hftl<S: Fresh>(design: &Design, hftl: &PramMapped, seed: u64) -> Result<Hftl<S, Pram<S>>, String> {
    Hftl::new(hftl.config(seed), nand(design, seed), Pram::new(design, &hftl.pram, seed)?)
}

/// A controller without PRAM of its own; the memory is beside it if a driver in front wants it.
fn plain<S: Fresh, C, V>(design: &Design, seed: u64, controller: C, visit: V) -> Result<V::Output, String>
where
    C: Controller + Observed + Remount,
    V: Visit,
{
    match &design.route {
        None => Ok(visit.visit(Carrying::new(design, controller))),
        Some(route) => {
            let pram: Pram<S> = Pram::new(design, &route.pram, seed)?;
            routed(design, Beside { controller, pram }, visit)
        }
    }
}

fn routed<C, V>(design: &Design, behind: C, visit: V) -> Result<V::Output, String>
where
    C: BesidePram + Observed + Remount,
    V: Visit,
{
    Ok(match &design.route {
        None => visit.visit(Carrying::new(design, behind)),
        Some(route) => visit.visit(Carrying::new(design, Fsms::new(route.config(), behind)?)),
    })
}

/// A controller whose power can fail.
pub trait Remount: Clone {
    /// The power fails at `at` and comes back; gives what the mount took.
    fn remount(self, at: Time) -> Result<(Self, MountResult), String>;
}

impl<S: Fresh> Remount for Hftl<S, Pram<S>> {
    fn remount(self, at: Time) -> Result<(Self, MountResult), String> {
        let config = self.config().clone();
        let (hftl, report) = Hftl::mount(config, self.power_cut(at), at)?;
        Ok((hftl, MountResult { time_s: report.time.seconds(), nand_reads: report.nand_reads }))
    }
}

impl<S: Fresh> Remount for PageMap<S> {
    fn remount(self, at: Time) -> Result<(Self, MountResult), String> {
        let (config, cache) = (self.config().clone(), self.cache());
        let before = self.nand().stats().reads;
        let (mut map, report) = PageMap::recover(config, self.power_cut(at), at)?;
        let nand_reads = map.nand().stats().reads - before;
        if let Some(cache) = cache {
            map = map.with_cache(cache)?;
        }
        Ok((map, MountResult { time_s: report.time.seconds(), nand_reads }))
    }
}

impl<S: Fresh> Remount for BlockMap<S> {
    fn remount(self, at: Time) -> Result<(Self, MountResult), String> {
        let config = self.config().clone();
        let before = self.data().stats().reads;
        let (map, report) = BlockMap::recover(config, self.power_cut(at), at)?;
        let nand_reads = map.data().stats().reads - before;
        Ok((map, MountResult { time_s: report.time.seconds(), nand_reads }))
    }
}

impl<C: Remount, S: Fresh> Remount for Beside<C, Pram<S>> {
    fn remount(mut self, at: Time) -> Result<(Self, MountResult), String> {
        self.pram.cut(at);
        let (controller, result) = self.controller.remount(at)?;
        Ok((Beside { controller, pram: self.pram }, result))
    }
}

impl<C: BesidePram + Remount> Remount for Fsms<C> {
    fn remount(self, at: Time) -> Result<(Self, MountResult), String> {
        let config = self.config().clone();
        let (behind, result) = self.into_behind().remount(at)?;
        let ready = at + Span::from_ps((result.time_s * 1e12) as u64);
        let (fsms, end) = Fsms::mount(config, behind, ready)?;
        Ok((fsms, MountResult { time_s: end.since(at).seconds(), ..result }))
    }
}

/// A device that may keep bytes under a workload that may carry none: zeros are written then, and what is read is
/// left aside.
pub struct Carrying<C> {
    device: Attached<C>,
    path: HostPath,
    zeros: Vec<u8>,
    left: Vec<u8>,
}

impl<C: Controller> Carrying<C> {
    fn new(design: &Design, controller: C) -> Carrying<C> {
        let path = link(design);
        Carrying { device: Attached::new(controller, path), path, zeros: Vec::new(), left: Vec::new() }
    }
}

impl<C: Controller + Observed> BlockDevice for Carrying<C> {
    fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }
    #[inline]
    fn read(
        &mut self,
        at: Time,
        offset: u64,
        bytes: u32,
        into: &mut [u8],
    ) -> Result<Served, ControllerError> {
        if !C::KEEPS || !into.is_empty() {
            return self.device.read(at, offset, bytes, into);
        }
        self.left.resize(bytes as usize, 0);
        self.device.read(at, offset, bytes, &mut self.left)
    }
    #[inline]
    fn write(&mut self, at: Time, offset: u64, bytes: u32, data: &[u8]) -> Result<Served, ControllerError> {
        if C::KEEPS {
            // Cuts come after requests; what is done by now need not be undone.
            self.device.controller_mut().settle(at);
        }
        if !C::KEEPS || !data.is_empty() {
            return self.device.write(at, offset, bytes, data);
        }
        self.zeros.resize(self.zeros.len().max(bytes as usize), 0);
        self.device.write(at, offset, bytes, &self.zeros[..bytes as usize])
    }
    fn trim(&mut self, at: Time, offset: u64, bytes: u32) -> Result<Served, ControllerError> {
        self.device.trim(at, offset, bytes)
    }
    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        self.device.flush(at)
    }
    fn wants_payload(&self) -> bool {
        C::KEEPS
    }
    #[inline]
    fn expect(&self, offsets: impl Iterator<Item = u64>) {
        self.device.expect(offsets);
    }
}

impl<C: Controller + Observed + Remount> Observed for Carrying<C> {
    fn counters(&self) -> Counters {
        self.device.counters()
    }
    fn reset_stats(&mut self) {
        Observed::reset_stats(&mut self.device);
    }
    fn idle_at(&mut self, at: Time) -> Time {
        self.device.idle_at(at)
    }
    fn settle(&mut self, upto: Time) {
        self.device.settle(upto);
    }
    fn unit_bytes(&self) -> u32 {
        self.device.unit_bytes()
    }
    fn blocks(&self) -> u32 {
        self.device.blocks()
    }
    fn insides(&self, span: Span) -> Insides<'_> {
        self.device.insides(span)
    }
    fn mount(&self, at: Time) -> Option<MountResult> {
        let mounted = C::KEEPS.then(|| self.device.controller().clone().remount(at))?;
        Some(mounted.unwrap_or_else(|why| panic!("nothing is mounted after a power cut: {why}")).1)
    }
    fn power_cycle(&mut self, at: Time) -> Result<Time, String> {
        let (controller, result) = self.device.controller().clone().remount(at)?;
        self.device = Attached::new(controller, self.path);
        Ok(at + Span::from_ps((result.time_s * 1e12) as u64))
    }
}
