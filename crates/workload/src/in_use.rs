//! How much of a device is in use, as users say it: `used=300GB trimmed=yes`.
//!
//! Whoever says that 300 GB of a drive are in use may mean two drives: one whose other bytes hold nothing, since they were
//! never written or were trimmed, and one that keeps stale data there. Under the same writes the life of the first is a
//! multiple of that of the second. So `used` is not without `trimmed`.

use crate::WorkloadError;
use crate::block::generator::Amount;
use nvlab_units::quantity::{display_bytes, display_fraction};

const USED: &str = "used=";
const TRIMMED: &str = "trimmed=";

/// How much of a device is in use: its first bytes. All requests go there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InUse {
    /// Bytes, or a share of the device.
    pub amount: Amount,
    /// True: the rest holds no data. False: the device keeps stale data there.
    pub trimmed: bool,
}

impl InUse {
    /// Takes `used=` and `trimmed=` out of the text of a workload; returns what they say and the other words.
    pub(crate) fn take(text: &str) -> Result<(Option<InUse>, String), WorkloadError> {
        let wrong = |reason: String| WorkloadError::Text { text: text.to_owned(), reason };
        let (mut used, mut trimmed, mut rest) = (None, None, Vec::new());
        let mut words = text.split_whitespace().peekable();
        while let Some(word) = words.next() {
            if let Some(value) = word.strip_prefix(TRIMMED) {
                let value = match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(wrong(format!("{word} is wrong: yes or no"))),
                };
                if trimmed.replace(value).is_some() {
                    return Err(wrong("'trimmed' is given twice".into()));
                }
            } else if let Some(value) = word.strip_prefix(USED) {
                // `used=300 GB`: the unit stands alone.
                let with_unit = words.peek().map(|unit| format!("{value} {unit}"));
                let amount = match (with_unit.map(|text| Amount::read(&text)), Amount::read(value)) {
                    (Some(Ok(amount)), _) => {
                        words.next();
                        amount
                    }
                    (_, Ok(amount)) => amount,
                    (_, Err(error)) => return Err(wrong(format!("used: {error}"))),
                };
                if used.replace(amount).is_some() {
                    return Err(wrong("'used' is given twice".into()));
                }
            } else {
                rest.push(word);
            }
        }
        let in_use = match (used, trimmed) {
            (None, None) => return Ok((None, text.to_owned())),
            (Some(amount), Some(trimmed)) => InUse { amount, trimmed },
            (Some(_), None) => {
                return Err(wrong(
            "used= needs trimmed=yes (the rest of the device holds no data) or trimmed=no (the rest holds stale data that the \
             device must keep): write amplification differs by factors"
                        .into(),
                ));
            }
            (None, Some(_)) => {
                return Err(wrong("trimmed= needs used=SIZE: the part of the device in use".into()));
            }
        };
        Ok((Some(in_use), rest.join(" ")))
    }

    /// The first bytes of a device of `capacity_bytes` that are in use; what is wrong if there are none or it has fewer.
    pub fn bytes(self, capacity_bytes: u64) -> Result<u64, String> {
        match self.amount.of(capacity_bytes, 1 << 20) {
            0 => Err("used= leaves nothing in use".into()),
            bytes if bytes > capacity_bytes => {
                Err(format!("{self}: the device has only {}", display_bytes(capacity_bytes)))
            }
            bytes => Ok(bytes),
        }
    }
}

impl std::fmt::Display for InUse {
    /// `300 GB in use, the rest trimmed`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rest = if self.trimmed { "the rest holds no data" } else { "the rest holds stale data" };
        match self.amount {
            Amount::Bytes(bytes) => write!(f, "{} in use, {rest}", display_bytes(bytes)),
            Amount::Share(share) => write!(f, "{} in use, {rest}", display_fraction(share)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorkloadSpec;
    use crate::{Serves, Target};

    #[test]
    fn what_is_in_use_is_read_and_bounds_the_requests() {
        let spec = WorkloadSpec::parse("uniform bs=4KiB used=300 MB qd=4 trimmed=no").unwrap();
        assert_eq!(spec.in_use, Some(InUse { amount: Amount::Bytes(300_000_000), trimmed: false }));
        let opened = spec.open(Target::blocks(1 << 30, 512), 1).unwrap();
        assert_eq!(opened.streams[0].work.footprint(), 0..300_000_000 / 4096 * 4096);
        let half = WorkloadSpec::parse("zipf used=50% trimmed=yes span=50%").unwrap();
        let opened = half.open(Target::blocks(1 << 30, 512), 1).unwrap();
        assert_eq!(opened.streams[0].work.footprint(), 0..1 << 28, "a share of what is in use");
        assert_eq!(half.in_use.unwrap().to_string(), "50 % in use, the rest holds no data");
    }

    #[test]
    fn what_leaves_the_question_open_is_refused() {
        for (text, reason) in [
            ("uniform used=1GB", "trimmed=no"),
            ("uniform trimmed=yes", "needs used=SIZE"),
            ("uniform used=1GB trimmed=maybe", "yes or no"),
            ("uniform used=big trimmed=yes", "used: "),
            ("uniform used=1GB used=2GB trimmed=yes", "twice"),
            ("words used=1GB trimmed=yes", "block requests"),
        ] {
            let error = WorkloadSpec::parse(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
        let large = WorkloadSpec::parse("uniform used=2GiB trimmed=yes").unwrap();
        let target = Target { capacity_bytes: 1 << 30, unit_bytes: 512, serves: Serves::Blocks };
        assert!(large.open(target, 1).unwrap_err().to_string().contains("the device has only 1 GiB"));
    }
}
