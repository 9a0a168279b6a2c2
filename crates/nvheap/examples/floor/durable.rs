//! Words of a mapped file that are changed in steps, each of which is durable when it returns, by hand.
//!
//! * *Logged*: a step is one record in a log, past the caches, with a checksum, and one fence. Then the words are changed at home. When the log is
//!   full, every line that was changed is written back once, which takes two fences more. After a power cut the records that are whole are
//!   applied again: a step has happened or not. Less than this no recoverable structure can do without another fence for each step: a
//!   line that was changed at home before its record is durable may reach memory, and without a checksum nobody knows which record is whole.
//! * *In place*: a step changes the words at home, writes their lines back and fences. A power cut in the middle of a step leaves half of it.

use nvlab_os::stores::{copy_lines, publish};
use nvlab_os::{Flush, Mapping, file};

const LINE: usize = 64;
const LINE_WORDS: usize = 8;
/// As much as a half of one of nvheap's logs.
const LOG_BYTES: usize = 256 << 10;
const RECORD_WORDS_MAX: usize = 2048;
/// The hash and the words of a record.
const HEAD: usize = 2;
const COUNT_BITS: u32 = 8;
/// Where the last epoch is whose changes are all durable at home.
const EPOCH_DONE: usize = 0;

pub type Word = [u8; 8];

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    InPlace,
    Logged,
}

pub struct Durable {
    home: Mapping,
    log: Mapping,
    how: How,
    flush: Flush,
    /// The next record.
    record: Box<[Word; RECORD_WORDS_MAX]>,
    len: usize,
    /// Where it goes, in bytes.
    at: usize,
    epoch: u64,
    /// Lines of the home that are to be written back, and a bit for each line that is among them.
    changed: Vec<u32>,
    is_changed: Vec<u64>,
    /// Lines of records, lines written back at home, and fences so far.
    pub counts: [u64; 3],
    /// What is durable of the home for certain, if power cuts are tried.
    certain: Option<Vec<u8>>,
    /// What a power cut would have left in the middle of the last step, if that is to be tried.
    pub cut: Option<(Vec<u8>, Vec<u8>)>,
    pub is_cut_next: bool,
}

fn mapped(bytes: usize) -> Mapping {
    let file = file::anonymous(c"floor", false).unwrap();
    file.set_len(bytes as u64).unwrap();
    let mapping = Mapping::shared(&file, bytes as u64).unwrap();
    mapping.populate();
    // As nvheap's on tmpfs.
    mapping.use_huge_pages(0..bytes as u64);
    mapping
}

/// As strong as the checksum of nvheap's records.
#[inline]
fn hash(seed: u64, words: &[Word]) -> u64 {
    const KEYS: [u64; 4] =
        [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xd6e8_feb8_6659_fd93];
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let mut lanes: [u64; 4] = std::array::from_fn(|i| seed.rotate_left(16 * i as u32) ^ KEYS[i]);
    for line in words.as_chunks::<LINE_WORDS>().0 {
        for (i, lane) in lanes.iter_mut().enumerate() {
            let [first, second] = [line[2 * i], line[2 * i + 1]].map(u64::from_le_bytes);
            *lane = fold(*lane ^ first, second ^ KEYS[3 - i]).wrapping_add(first);
        }
    }
    let [a, b, c, d] = lanes;
    fold(a ^ words.len() as u64, b ^ KEYS[2]) ^ fold(c ^ KEYS[1], d ^ KEYS[0]) ^ a ^ c.rotate_left(41)
}

impl Durable {
    /// Zeros.
    pub fn new(words: usize, how: How) -> Durable {
        let home = mapped((words * 8).next_multiple_of(2 << 20));
        let lines = home.len() / LINE;
        Durable {
            home,
            log: mapped(LOG_BYTES),
            how,
            flush: Flush::detect().expect("x86-64"),
            record: Box::new([[0; 8]; RECORD_WORDS_MAX]),
            len: HEAD,
            at: 0,
            epoch: 1,
            changed: Vec::new(),
            is_changed: vec![0; lines.div_ceil(64)],
            counts: [0; 3],
            certain: None,
            cut: None,
            is_cut_next: false,
        }
    }

    #[inline]
    pub fn words(&self, at: usize) -> &[Word] {
        &self.home.as_slice().as_chunks().0[at..]
    }

    #[inline]
    pub fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.words(at)[0])
    }

    /// A change of the next step.
    #[inline]
    pub fn put<const N: usize>(&mut self, at: usize, words: [u64; N]) {
        let into = &mut self.record[self.len..][..N + 1];
        into[0] = ((at as u64) << COUNT_BITS | N as u64).to_le_bytes();
        for (into, word) in into[1..].iter_mut().zip(words) {
            *into = word.to_le_bytes();
        }
        self.len += N + 1;
    }

    /// All changes happen.
    #[inline]
    pub fn commit(&mut self) {
        if self.how == How::Logged {
            self.write_record();
        }
        self.apply();
        if self.how == How::InPlace {
            self.flush_changed();
            self.fence();
        }
        self.len = HEAD;
    }

    #[inline]
    fn fence(&mut self) {
        publish();
        self.counts[2] += 1;
    }

    /// Of the record at a place in an epoch: those of another one are not whole.
    fn seed(epoch: u64, at: usize) -> u64 {
        epoch ^ (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[inline]
    fn write_record(&mut self) {
        let words = self.len.next_multiple_of(LINE_WORDS);
        self.record[self.len..words].fill([0; 8]);
        if self.at + words * 8 > LOG_BYTES {
            self.write_back();
        }
        self.record[0] = [0; 8];
        self.record[1] = (words as u64).to_le_bytes();
        self.record[0] = hash(Self::seed(self.epoch, self.at), &self.record[..words]).to_le_bytes();
        copy_lines(&mut self.log.as_mut_slice()[self.at..][..words * 8], self.record[..words].as_flattened());
        self.fence();
        if self.is_cut_next {
            self.cut_here(words * 8);
        }
        self.at += words * 8;
        self.counts[0] += (words / LINE_WORDS) as u64;
    }

    #[inline]
    fn apply(&mut self) {
        let mut rest = &self.record[HEAD..self.len];
        let home = self.home.as_mut_slice().as_chunks_mut::<8>().0;
        while let [head, after @ ..] = rest {
            let head = u64::from_le_bytes(*head);
            let (at, count) = ((head >> COUNT_BITS) as usize, head as usize & ((1 << COUNT_BITS) - 1));
            match count {
                0 => break,
                1 => home[at] = after[0],
                _ => home[at..at + count].copy_from_slice(&after[..count]),
            }
            for line in at / LINE_WORDS..=(at + count - 1) / LINE_WORDS {
                let (bits, bit) = (&mut self.is_changed[line / 64], 1 << (line % 64));
                if *bits & bit == 0 {
                    *bits |= bit;
                    self.changed.push(line as u32);
                }
            }
            rest = &after[count..];
        }
    }

    #[inline]
    fn flush_changed(&mut self) {
        self.counts[1] += self.changed.len() as u64;
        for line in self.changed.drain(..) {
            let bytes = line as usize * LINE..(line as usize + 1) * LINE;
            self.flush.lines(&self.home.as_slice()[bytes.clone()]);
            self.is_changed[line as usize / 64] &= !(1 << (line % 64));
            if let Some(certain) = &mut self.certain {
                certain[bytes.clone()].copy_from_slice(&self.home.as_slice()[bytes]);
            }
        }
    }

    /// The log is full: what it says is brought home for good.
    #[inline(never)]
    fn write_back(&mut self) {
        self.flush_changed();
        self.fence();
        self.home.as_mut_slice().as_chunks_mut::<8>().0[EPOCH_DONE] = self.epoch.to_le_bytes();
        self.changed.push(0);
        self.flush_changed();
        self.fence();
        (self.epoch, self.at) = (self.epoch + 1, 0);
    }

    /// From here on power cuts are tried.
    pub fn expect_cuts(&mut self) {
        self.write_back();
        self.certain = Some(self.home.as_slice().to_vec());
    }

    /// Keeps what a power cut would leave now: every line that is not durable for certain as it was or as it is, and one line of the record
    /// that is being written not there.
    fn cut_here(&mut self, record_bytes: usize) {
        let mut random = self.at as u64 ^ self.epoch << 32 | 1;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize
        };
        let mut home = self.certain.clone().expect("cuts are expected");
        for &line in &self.changed {
            let bytes = line as usize * LINE..(line as usize + 1) * LINE;
            if next() % 2 == 0 {
                home[bytes.clone()].copy_from_slice(&self.home.as_slice()[bytes]);
            }
        }
        let mut log = self.log.as_slice().to_vec();
        log[self.at + next() % (record_bytes / LINE) * LINE..][..LINE].fill(0xa5);
        (self.cut, self.is_cut_next) = (Some((home, log)), false);
    }

    /// What a power cut leaves after the last step.
    pub fn cut_now(&mut self) -> (Vec<u8>, Vec<u8>) {
        let mut log = self.log.as_slice().to_vec();
        // Whatever is behind the last record.
        log[self.at..].iter_mut().step_by(3).for_each(|byte| *byte ^= 0x5a);
        (self.certain.clone().expect("cuts are expected"), log)
    }

    /// What a power cut left, as it was after the last step that happened.
    pub fn recover((home, log): (Vec<u8>, Vec<u8>)) -> Durable {
        let mut memory = Durable::new(home.len() / 8, How::Logged);
        memory.home.as_mut_slice().copy_from_slice(&home);
        memory.epoch = memory.word(EPOCH_DONE) + 1;
        let words: &[Word] = log.as_chunks().0;
        while let Some(record) = Self::whole(&words[memory.at / 8..], memory.epoch, memory.at) {
            memory.record[..record.len()].copy_from_slice(record);
            memory.len = record.len();
            memory.apply();
            memory.at += record.len() * 8;
        }
        memory.len = HEAD;
        memory.write_back();
        memory
    }

    /// The record that begins here, if it is whole.
    fn whole(words: &[Word], epoch: u64, at: usize) -> Option<&[Word]> {
        let count = u64::from_le_bytes(*words.get(1)?) as usize;
        let fits = count.is_multiple_of(LINE_WORDS) && (LINE_WORDS..=RECORD_WORDS_MAX).contains(&count);
        let record = words.get(..count).filter(|_| fits)?;
        let mut unsealed = record.to_vec();
        unsealed[0] = [0; 8];
        (hash(Self::seed(epoch, at), &unsealed).to_le_bytes() == record[0]).then_some(record)
    }
}
