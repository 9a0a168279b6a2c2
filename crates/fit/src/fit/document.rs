//! The answer as JSON.

use super::answer::Other;
use super::{Answer, Compared, Next, Number, Residual};
use crate::figures::Side;
use serde_json::{Value, json};

impl Answer {
    /// All of it, for programs: values in base units.
    pub fn document(&self) -> Value {
        let residual = |residual: &Residual| {
            json!({
                "figure": residual.name, "stated": residual.stated, "simulated": residual.simulated,
                "difference": residual.difference(), "within": residual.is_within(), "tolerance": residual.tolerance,
                "interval": [residual.interval.0, residual.interval.1], "source": residual.source, "line": residual.line,
                "latencies": residual.latencies.map(|(measured, simulated)| json!({ "measured": measured, "simulated": simulated })),
            })
        };
        let number = |number: &Number| {
            json!({
                "name": number.name, "key": number.key, "value": number.value,
                "interval": [number.interval.0, number.interval.1], "usual": [number.usual.0, number.usual.1],
                "prior_only": number.is_prior_only, "source": number.source,
            })
        };
        let next = |next: &Next| json!({ "figure": next.what, "interval": [next.between.0, next.between.1], "number": next.number });
        let compared = |job: &Compared| {
            let side = |side: &Side| json!({ "per_s": side.per_s, "bytes_per_s": side.bytes_per_s, "latencies": side.latencies });
            let both = |[read, write]: &[Side; 2]| json!({ "read": side(read), "write": side(write) });
            json!({ "job": job.name, "why": job.why, "measured": both(&job.measured), "simulated": both(&job.simulated) })
        };
        let other = |other: &Other| json!({ "differs": other.differs, "simulated": other.simulated, "design": other.text });
        json!({
            "schema": "nvlab.fit/1",
            "drive": self.name,
            "residuals": self.residuals.iter().map(residual).collect::<Vec<_>>(),
            "numbers": self.numbers.iter().map(number).collect::<Vec<_>>(),
            "compared": self.compared.iter().map(compared).collect::<Vec<_>>(),
            "notes": self.notes,
            "doubts": self.doubts,
            "next": self.next.iter().map(next).collect::<Vec<_>>(),
            "others": self.others.iter().map(other).collect::<Vec<_>>(),
            "design": self.text,
            "runs": self.runs,
        })
    }
}
