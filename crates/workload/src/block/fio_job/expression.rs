//! Arithmetic in values of a job file: `+ - * / % ^` and brackets, over whole numbers with suffixes. Nothing is rounded before
//! the end, as in fio, which calculates with floating point there.

/// Brackets within brackets, at most.
const DEPTH_MAX: u32 = 32;

/// An exact quotient.
#[derive(Clone, Copy)]
struct Ratio {
    above: i128,
    below: i128,
}

impl Ratio {
    fn whole(number: i128) -> Ratio {
        Ratio { above: number, below: 1 }
    }

    fn times(self, other: Ratio) -> Option<Ratio> {
        let (above, below) = (self.above.checked_mul(other.above)?, self.below.checked_mul(other.below)?);
        if below == 0 {
            return None;
        }
        let common = common_divisor(above.unsigned_abs(), below.unsigned_abs()) as i128;
        let sign = below.signum();
        Some(Ratio { above: sign * above / common, below: sign * below / common })
    }

    fn inverse(self) -> Option<Ratio> {
        (self.above != 0).then_some(Ratio { above: self.below, below: self.above })
    }

    fn plus(self, other: Ratio) -> Option<Ratio> {
        let above = self.above.checked_mul(other.below)?.checked_add(other.above.checked_mul(self.below)?)?;
        Ratio { above, below: self.below.checked_mul(other.below)? }.times(Ratio::whole(1))
    }

    fn floor(self) -> i128 {
        self.above.div_euclid(self.below)
    }

    fn remainder(self, other: Ratio) -> Option<Ratio> {
        let times = self.times(other.inverse()?)?.floor();
        self.plus(other.times(Ratio::whole(-times))?)
    }

    fn power(self, exponent: Ratio) -> Option<Ratio> {
        let exponent = u32::try_from(exponent.above).ok().filter(|_| exponent.below == 1)?;
        Some(Ratio { above: self.above.checked_pow(exponent)?, below: self.below.checked_pow(exponent)? })
    }
}

fn common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// The value of an expression whose numbers `number` reads, rounded down.
pub(super) fn value(text: &str, number: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let mut parser = Parser { rest: text.trim(), depth: 0, number: &number };
    let value = parser.sum()?;
    parser.rest.is_empty().then(|| u64::try_from(value.floor()).ok()).flatten()
}

struct Parser<'a> {
    rest: &'a str,
    depth: u32,
    number: &'a dyn Fn(&str) -> Option<u64>,
}

impl Parser<'_> {
    /// Takes the next sign, if it is one of these.
    fn sign(&mut self, signs: &[char]) -> Option<char> {
        let sign = self.rest.chars().next().filter(|sign| signs.contains(sign))?;
        self.rest = self.rest[sign.len_utf8()..].trim_start();
        Some(sign)
    }

    fn sum(&mut self) -> Option<Ratio> {
        let mut value = self.product()?;
        while let Some(sign) = self.sign(&['+', '-']) {
            let next = self.product()?;
            value = value.plus(if sign == '+' { next } else { next.times(Ratio::whole(-1))? })?;
        }
        Some(value)
    }

    fn product(&mut self) -> Option<Ratio> {
        let mut value = self.power()?;
        while let Some(sign) = self.sign(&['*', '/', '%']) {
            let next = self.power()?;
            value = match sign {
                '*' => value.times(next)?,
                '/' => value.times(next.inverse()?)?,
                _ => value.remainder(next)?,
            };
        }
        Some(value)
    }

    fn power(&mut self) -> Option<Ratio> {
        let base = self.term()?;
        match self.sign(&['^']) {
            Some(_) => base.power(self.power()?),
            None => Some(base),
        }
    }

    fn term(&mut self) -> Option<Ratio> {
        if self.sign(&['(']).is_some() {
            self.depth += 1;
            let value = if self.depth > DEPTH_MAX { None } else { self.sum() }?;
            self.depth -= 1;
            return self.sign(&[')']).map(|_| value);
        }
        let end = self.rest.find(['+', '-', '*', '/', '%', '^', '(', ')']).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        (self.number)(number.trim()).map(|number| Ratio::whole(number.into()))
    }
}
