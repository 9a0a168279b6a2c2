//! The line about one of several streams.

use super::keep;
use nvlab_run::number;
use nvlab_run::result::{OpResult, TenantResult};

/// Its rates and tails, and when it ran.
pub(super) fn line(tenant: &TenantResult) -> String {
    let of = |(name, op): (&str, &OpResult)| {
        let (mean, tail) = (op.latency.mean_ns, op.latency.p99_ns as f64);
        keep(&format!(
            "{name} {} IOPS, {}, mean {}, p99 {}",
            number::count(op.per_s.round() as u64),
            number::bandwidth(op.bytes_per_s),
            number::time_ns(mean),
            number::time_ns(tail)
        ))
    };
    if tenant.ops().iter().all(|(_, op)| op.count == 0) {
        return format!("{}: none of its requests was served", tenant.name);
    }
    let ops: Vec<String> = tenant.ops().into_iter().filter(|(_, op)| op.count > 0).map(of).collect();
    let times = keep(&format!("{} to {}", number::time_s(tenant.from_s), number::time_s(tenant.to_s)));
    format!("{}: {} ({times})", tenant.name, ops.join("; "))
}
