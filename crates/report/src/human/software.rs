//! The lines about the host's software as stages.

use super::keep;
use nvlab_run::number;
use nvlab_run::result::{SoftwareResult, StageResult};

/// The processor time, and the parts of the latency of a request.
pub(super) fn lines(software: &SoftwareResult) -> [(&'static str, String); 3] {
    let time = |ns: f64| number::time_ns(ns).to_string();
    let threads = number::things(software.threads as u64, "thread");
    let cores = software.cores.map_or(String::new(), |cores| format!(" of {}", number::count(cores as u64)));
    let mut costs = vec![format!("{} a request", time(software.cpu_ns))];
    if software.spin_ns > 0.0 {
        costs.push(format!("{} spinning", time(software.spin_ns)));
    }
    if software.lock_ns > 0.0 {
        costs.push(format!("{} at locks", time(software.lock_ns)));
    }
    costs.push(format!("{}{cores} cores used", number::three(software.cores_used)));
    let locks = match software.locks {
        0 => "no lock".to_string(),
        locks => {
            let share = number::share(software.lock_share);
            format!("{}, {share} of the latency spent waiting for them", number::things(locks as u64, "lock"))
        }
    };
    let software_line =
        format!("{}: {threads}, {} above the device, {locks}", software.stack, time(software.latency_ns));
    let costs: Vec<String> = costs.iter().map(|cost| keep(cost)).collect();
    [("Software", software_line), ("Processor", costs.join(", ")), ("Time goes to", places(software))]
}

/// The parts of the latency, in the order in which a request passes them; parts of zero are left out.
fn places(software: &SoftwareResult) -> String {
    let stage = |stage: &StageResult| (stage.name.clone(), stage.total_ns());
    let side = |submits| software.stages.iter().filter(move |stage| stage.submits == submits).map(stage);
    let device = ("device".to_string(), software.device_ns);
    let queue = ("waiting for thread or core".to_string(), software.queue_ns);
    let all = side(true).chain([device]).chain(side(false)).chain([queue]);
    let place = |(name, ns): (String, f64)| keep(&format!("{name} {}", number::time_ns(ns)));
    all.filter(|(_, ns)| *ns > 0.0).map(place).collect::<Vec<_>>().join(", ")
}
