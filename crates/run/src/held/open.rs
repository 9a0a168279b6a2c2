//! Opens a device: builds it from its design, and preconditions it.

use super::HeldDevice;
use crate::aged::{self, Aged};
use crate::device::backed::Backed;
use crate::device::{self, AnyDevice, Carrying, InMemory};
use crate::drive::Limit;
use crate::error::RunError;
use crate::plan::Named;
use crate::preparation::{Preparation, State};
use crate::prepared::Shelf;
use crate::result::Precondition;
use crate::run_plan::{OnProgress, RunPlan};
use crate::steps::{unaged, unbuildable};
use nvlab_access::Attached;
use nvlab_controller::PageMap;
use nvlab_design::Design;
use nvlab_units::Time;

/// How a device is opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// The state it is brought to.
    pub preparation: Preparation,
    /// Of the random choices of a fresh device; one that is prepared has the seed of its preparation.
    pub seed: u64,
    /// Its media keep what is written, in memory.
    pub keeps: bool,
    /// Where prepared devices are kept.
    pub shelf: Option<&'a Shelf>,
}

impl HeldDevice {
    /// Opens the device of a design. What prepares it reads as zeros. `on_progress` returns false to stop.
    pub fn open(
        named: &Named,
        opening: Opening<'_>,
        on_progress: OnProgress<'_>,
    ) -> Result<HeldDevice, RunError> {
        let Opening { preparation, seed, keeps, shelf } = opening;
        let design = &named.design;
        let plan = plan(named, &preparation, seed);
        if design.path.software.is_some() {
            let why = "its software is the program that holds the device";
            return Err(RunError::Unstaged { design: plan.design_name, why });
        }
        let is_new = preparation.state == State::Fresh;
        if !is_new && aged::is_page_map(design) {
            let aged = aged::page_map(design, &preparation, shelf, on_progress);
            let Aged { device, report, ready } = aged.map_err(|why| unaged(&plan, why))?;
            let (device, ready) = match keeps {
                false => (Box::new(Carrying::new(device)) as Box<dyn AnyDevice>, ready),
                true => with_payload(design, &plan, device, ready)?,
            };
            return Ok(HeldDevice::of(device, plan, design.clone(), (report, ready)));
        }
        let bytes = keeps.then_some(InMemory { filled: !is_new });
        let built = device::any(design, preparation.device_seed(seed), bytes);
        let mut device = built.map_err(|why| unbuildable(&plan, why))?;
        let (report, ready) = match is_new {
            true => (Precondition::none(&preparation.to_string()), Time::ZERO),
            false => aged::prepare(&mut *device, design, &preparation, on_progress)
                .map_err(|why| unaged(&plan, why))?,
        };
        Ok(HeldDevice::of(device, plan, design.clone(), (report, ready)))
    }
}

fn plan(named: &Named, preparation: &Preparation, seed: u64) -> RunPlan {
    RunPlan {
        design_name: named.name.clone(),
        workload_text: "held".into(),
        workload_about: String::new(),
        seed,
        state: *preparation,
        until: None,
        limit: Limit::NONE,
        requests_asked: None,
    }
}

/// The same page map over media that keep bytes.
fn with_payload(
    design: &Design,
    plan: &RunPlan,
    device: Attached<PageMap>,
    ready: Time,
) -> Result<(Box<dyn AnyDevice>, Time), RunError> {
    let given = Backed::aged(&InMemory { filled: false }, device.into_controller(), ready);
    let (map, ready) = given.map_err(|why| unbuildable(plan, why))?;
    let device = Carrying::new(Attached::new(map, device::link(design)));
    Ok((Box::new(device), ready))
}
