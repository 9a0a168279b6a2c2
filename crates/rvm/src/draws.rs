//! Random choices of the models of failing devices.

/// Numbers by splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Debug, Default)]
pub(crate) struct Draws(u64);

impl Draws {
    /// Those of one operation of a device with this seed.
    pub fn new(seed: u64, operation: u64) -> Draws {
        Draws(seed ^ operation.wrapping_mul(0xd6e8_feb8_6659_fd93))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }
}
