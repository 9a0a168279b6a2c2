//! Stream detection: predicts the next lines of a program from equally distant accesses.
//!
//! Only misses, and first uses of prefetched lines, are examined: a hit costs nothing.

/// Streams followed at the same time.
const STREAMS: usize = 8;
/// Lines further apart than this belong to different streams.
const STRIDE_MAX: u32 = 64;
/// Equal strides before lines are prefetched.
const CONFIRMED: u8 = 2;

/// A stream: the line used last, how far it was from the one before, and how often in succession.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    last: u32,
    stride: i32,
    seen: u8,
    /// The first line beyond the prefetched ones.
    ahead: i64,
}

/// Streams of a few programs.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    streams: [Stream; STREAMS],
    /// The stream that is replaced next.
    next: usize,
}

/// Lines to fetch: the first, how far apart, how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    pub first: u32,
    pub stride: i32,
    pub count: u32,
}

impl Streams {
    /// A line of a device of `lines` lines was used. Returns what to fetch so that up to `depth` lines beyond it are on
    /// their way: nothing until half of them have been used, so that neighbours are read together.
    pub fn used(&mut self, line: u32, depth: u32, lines: u32) -> Option<Ahead> {
        let near = |stream: &&mut Stream| stream.seen > 0 && stream.last.abs_diff(line) <= STRIDE_MAX;
        let Some(stream) = self.streams.iter_mut().find(near) else {
            self.streams[self.next] = Stream { last: line, stride: 0, seen: 1, ahead: 0 };
            self.next = (self.next + 1) % STREAMS;
            return None;
        };
        let stride = line.wrapping_sub(stream.last) as i32;
        stream.last = line;
        if stride == 0 {
            return None;
        }
        if stride != stream.stride {
            (stream.stride, stream.seen, stream.ahead) = (stride, 1, line as i64);
            return None;
        }
        stream.seen = (stream.seen + 1).min(CONFIRMED);
        if stream.seen < CONFIRMED {
            return None;
        }
        let (line, stride) = (line as i64, stride as i64);
        // What is on its way lies beyond this line, in the direction of the stream.
        let on_its_way = ((stream.ahead - line) / stride - 1).max(0);
        if on_its_way > depth as i64 / 2 {
            return None;
        }
        let first = line + (on_its_way + 1) * stride;
        let wanted = depth as i64 - on_its_way;
        // As many of them as the device has.
        let inside = |nth: i64| (0..lines as i64).contains(&(first + nth * stride));
        let count = (0..wanted).take_while(|&nth| inside(nth)).count() as i64;
        stream.ahead = first + count * stride;
        (count > 0).then_some(Ahead { first: first as u32, stride: stride as i32, count: count as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stride_is_followed_in_either_direction_and_to_the_end_of_the_device() {
        for (stride, begin) in [(1i32, 10u32), (7, 10), (-3, 900)] {
            let mut streams = Streams::default();
            let mut fetched = Vec::new();
            for nth in 0..100 {
                let line = begin as i32 + nth * stride;
                if let Some(ahead) = streams.used(line as u32, 4, 1000) {
                    assert!((1..=4).contains(&ahead.count));
                    fetched
                        .extend((0..ahead.count as i32).map(|nth| ahead.first as i32 + nth * ahead.stride));
                }
                // From the fourth use on a line was asked for before it is used.
                assert!(nth < 3 || fetched.contains(&line), "{stride}: line {line}");
            }
            let distinct = fetched.iter().collect::<std::collections::BTreeSet<_>>();
            assert_eq!(distinct.len(), fetched.len(), "{stride}: nothing is fetched twice");
            assert!(fetched.iter().all(|&line| (0..1000).contains(&line)));
        }
    }

    #[test]
    fn random_lines_are_no_stream_and_several_streams_do_not_disturb_each_other() {
        let mut rng = nvlab_units::Rng::new(3);
        let mut streams = Streams::default();
        let random = (0..10_000).filter(|_| streams.used(rng.below(1 << 30) as u32, 4, u32::MAX).is_some());
        assert_eq!(random.count(), 0);
        let mut streams = Streams::default();
        let mut asked = 0;
        for nth in 0..60 {
            for start in [0, 100_000, 200_000] {
                asked += streams.used(start + nth, 4, 1 << 20).map_or(0, |ahead| ahead.count);
            }
        }
        assert!((3 * 56..=3 * 62).contains(&asked), "{asked}");
    }
}
