//! Stacks against closed forms: one thread, threads at a lock, threads on too few cores, interrupts and spinning; and
//! against their own books: no time and no request is lost.

use nvlab_access::stack::{Completion, Event, Machine, Spent, Stack, Stage, When};
use nvlab_units::{Rng, Span, Time};

const fn us(n: u64) -> Span {
    Span::from_us(n)
}

fn stage(name: &str, when: When, cpu: Span) -> Stage {
    let (per_4k, wait) = (Span::ZERO, Span::ZERO);
    Stage { name: name.into(), when, cpu, per_4k, wait, lock: None, only: None, above_driver: false }
}

fn stack(completion: Completion, stages: Vec<Stage>) -> Stack {
    Stack { stages, locks: vec!["queue".into()], cores: None, completion, spin_below: None }
}

/// What a run of requests did.
struct Ran {
    /// Until the last was complete.
    time: Span,
    latencies: Span,
    spent: Spent,
}

impl Ran {
    fn each(&self, total: nvlab_units::Total) -> Span {
        Span::from_ps((total.ps() / self.spent.requests as u128) as u64)
    }
    fn per_second(&self) -> f64 {
        self.spent.requests as f64 / self.time.seconds()
    }
    fn cpu(&self) -> u128 {
        self.spent.stages.iter().map(|stage| stage.cpu.ps()).sum()
    }
    fn at_locks(&self) -> u128 {
        self.spent.stages.iter().map(|stage| stage.lock.ps()).sum()
    }
    /// Every picosecond of every request is somewhere, and spinning is part of the time of the device.
    fn check(&self) {
        let waits: u128 = self.spent.stages.iter().map(|stage| stage.wait.ps()).sum();
        let known = self.cpu() + self.at_locks() + waits + self.spent.device.ps() + self.spent.queue.ps();
        assert_eq!(known, self.latencies.ps() as u128);
        assert!(self.spent.spin.ps() <= self.spent.device.ps());
    }
}

/// `threads`, each with `depth` requests in flight, until `count` are complete, on a device that takes `device` for each of
/// them, however many it has.
fn run(stack: &Stack, threads: u32, depth: u32, count: u64, bytes: u32, device: impl FnMut() -> Span) -> Ran {
    let mut device = device;
    let mut machine = Machine::new(stack, threads);
    let slots = threads * depth;
    let mut began = vec![Time::ZERO; slots as usize];
    let (mut issued, mut done, mut last) = (0, 0, Time::ZERO);
    let mut latencies = Span::ZERO;
    for slot in 0..slots.min(count as u32) {
        machine.submit(slot, slot % threads, Time::ZERO, bytes);
        issued += 1;
    }
    while let Some(event) = machine.next(Time::MAX) {
        match event {
            Event::Device { slot, at } => {
                assert!(at >= last, "the device is called in order of time");
                last = at;
                machine.device_done(slot, at, at + device());
            }
            Event::Done { slot, at } => {
                assert!(at >= last);
                last = at;
                done += 1;
                latencies += at.since(began[slot as usize]);
                if issued < count {
                    began[slot as usize] = at;
                    machine.submit(slot, slot % threads, at, bytes);
                    issued += 1;
                }
            }
        }
    }
    assert_eq!((issued, done, machine.spent().requests), (count, count, count), "no request is lost");
    let ran = Ran { time: last.since(Time::ZERO), latencies, spent: machine.spent().clone() };
    ran.check();
    ran
}

fn close(found: f64, expected: f64, within: f64) {
    assert!((found / expected - 1.0).abs() <= within, "{found} instead of {expected}");
}

#[test]
fn one_thread_is_the_sum_of_its_stages_and_the_device() {
    let copy = Stage { per_4k: us(2), ..stage("copy", When::Complete, us(1)) };
    let wake = Stage { wait: us(3), ..stage("interrupt", When::Complete, us(1)) };
    let locked = Stage { lock: Some(0), ..stage("queue", When::Submit, us(4)) };
    let stack = stack(Completion::Interrupt, vec![stage("call", When::Submit, us(2)), locked, wake, copy]);
    for (bytes, copied) in [(512, Span::from_ns(250)), (4096, us(2)), (65536, us(32))] {
        let ran = run(&stack, 1, 1, 100, bytes, || us(7));
        let each = us(2 + 4 + 7 + 1 + 3 + 1) + copied;
        assert_eq!(ran.time.ps(), each.ps() * 100);
        assert_eq!((ran.each(ran.spent.device), ran.at_locks(), ran.spent.spin.ps()), (us(7), 0, 0));
        assert_eq!(ran.cpu(), 100 * (us(8) + copied).ps() as u128);
    }
}

/// Bottleneck analysis (Denning and Buzen, 1978): min(T / sum, 1 / lock).
#[test]
fn threads_at_one_lock_reach_the_rate_of_the_lock() {
    let locked = Stage { lock: Some(0), ..stage("queue", When::Submit, us(5)) };
    let stages = vec![stage("call", When::Submit, us(3)), locked, stage("return", When::Complete, us(2))];
    let stack = stack(Completion::Spin, stages);
    for threads in [1, 2, 3, 4, 5, 8, 16] {
        let ran = run(&stack, threads, 1, 40_000, 4096, || us(10));
        let expected = (threads as f64 / 20e-6).min(1.0 / 5e-6);
        close(ran.per_second(), expected, 0.001);
        // What is not work or device is waiting for the lock.
        let waited = (threads as f64 / expected * 1e6 - 20.0).max(0.0);
        let found = ran.at_locks() as f64 / 40_000.0 / 1e6;
        assert!((found - waited).abs() < 0.02, "{threads} threads wait {found} us instead of {waited}");
    }
}

/// What follows under the same lock does not let others in between; after a pause it does.
#[test]
fn stages_that_follow_each_other_hold_a_lock_throughout() {
    let locked = |name, when| Stage { lock: Some(0), ..stage(name, when, us(4)) };
    let rest = || vec![locked("second", When::Submit), stage("return", When::Complete, us(2))];
    let together = [vec![locked("first", When::Submit)], rest()].concat();
    let apart = [vec![Stage { wait: us(1), ..locked("first", When::Submit) }], rest()].concat();
    // The second thread waits once for both stages; or for the first one, and again for the second.
    let waits = |stages: Vec<Stage>| {
        let ran = run(&stack(Completion::Interrupt, stages), 2, 1, 2, 4096, || us(5));
        [0, 1].map(|index| ran.spent.stages[index].lock.ps() / 1_000_000)
    };
    assert_eq!((waits(together), waits(apart)), ([8, 0], [4, 6]));
}

#[test]
fn cores_limit_what_runs_and_not_what_waits() {
    let work = || vec![stage("call", When::Submit, us(3)), stage("return", When::Complete, us(2))];
    for cores in [1, 2, 4] {
        for threads in [1, 2, 4, 8, 64] {
            let limited = |completion| Stack { cores: Some(cores), ..stack(completion, work()) };
            // An interrupt leaves the core to others: 5 us of each request are on a core.
            let ran = run(&limited(Completion::Interrupt), threads, 1, 40_000, 4096, || us(20));
            let expected = (threads as f64 / 25e-6).min(cores as f64 / 5e-6);
            close(ran.per_second(), expected, 0.002);
            assert_eq!(ran.spent.spin.ps(), 0);
            // Spinning does not: all 25 us are.
            let ran = run(&limited(Completion::Spin), threads, 1, 40_000, 4096, || us(20));
            close(ran.per_second(), threads.min(cores) as f64 / 25e-6, 0.002);
            assert_eq!(ran.each(ran.spent.spin), us(20));
        }
    }
}

/// Both take the same time of the same cores for their stages; spinning adds the time of the device.
#[test]
fn spinning_is_counted_apart_from_the_software() {
    let work = || vec![stage("call", When::Submit, us(3)), stage("return", When::Complete, us(2))];
    let interrupted = run(&stack(Completion::Interrupt, work()), 4, 1, 1000, 4096, || us(9));
    let polled = run(&stack(Completion::Spin, work()), 4, 1, 1000, 4096, || us(9));
    assert_eq!(interrupted.cpu(), polled.cpu());
    assert_eq!((interrupted.spent.spin.ps(), polled.each(polled.spent.spin)), (0, us(9)));
    assert_eq!(interrupted.time, polled.time);
}

#[test]
fn only_small_requests_are_spun_for() {
    let interrupt =
        Stage { wait: us(4), only: Some(Completion::Interrupt), ..stage("interrupt", When::Complete, us(1)) };
    let poll = Stage { only: Some(Completion::Spin), ..stage("poll", When::Complete, us(2)) };
    let stages = vec![stage("call", When::Submit, us(3)), interrupt, poll];
    let hybrid = Stack { spin_below: Some(4096), ..stack(Completion::Spin, stages) };
    let small = run(&hybrid, 1, 1, 10, 4096, || us(6));
    let large = run(&hybrid, 1, 1, 10, 4097, || us(6));
    assert_eq!((small.time, small.each(small.spent.spin)), (us(10 * (3 + 6 + 2)), us(6)));
    assert_eq!((large.time, large.spent.spin.ps()), (us(10 * (3 + 6 + 1 + 4)), 0));
    assert!(hybrid.has(Completion::Spin) && hybrid.has(Completion::Interrupt));
}

/// A thread with many requests in flight does the work of all of them itself, and spins only when it has none to do.
#[test]
fn a_thread_with_a_deep_queue_is_one_thread() {
    let work = || vec![stage("call", When::Submit, us(3)), stage("return", When::Complete, us(2))];
    let ran = run(&stack(Completion::Spin, work()), 1, 2, 10_000, 4096, || us(20));
    close(ran.per_second(), 2.0 / 25e-6, 0.001);
    // In 25 us two requests have 10 us of work; the other 15 us the thread polls for both.
    close(ran.each(ran.spent.spin).seconds(), 7.5e-6, 0.001);
    let ran = run(&stack(Completion::Spin, work()), 1, 32, 10_000, 4096, || us(20));
    close(ran.per_second(), 1.0 / 5e-6, 0.001);
    assert!(ran.spent.spin.ps() < 20_000_000, "{}", ran.spent.spin.ps());
}

/// Many stacks, thread counts, depths and device times at random: what [`Ran::check`] says holds for all of them.
#[test]
fn no_time_and_no_request_is_lost() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let span = |rng: &mut Rng| Span::from_ns(rng.below(2) * rng.below(5000));
        let count = 1 + rng.below(7);
        let mut stages = Vec::new();
        for index in 0..count {
            let when = if rng.below(2) == 0 { When::Submit } else { When::Complete };
            let mut stage = stage(&index.to_string(), when, span(&mut rng));
            (stage.per_4k, stage.wait) = (span(&mut rng), span(&mut rng));
            stage.lock = (rng.below(3) == 0).then_some(0);
            stage.only =
                [None, None, Some(Completion::Spin), Some(Completion::Interrupt)][rng.below(4) as usize];
            stages.push(stage);
        }
        let completion = [Completion::Spin, Completion::Interrupt][rng.below(2) as usize];
        let cores = (rng.below(2) == 0).then(|| 1 + rng.below(4) as u32);
        let stack = Stack { cores, ..stack(completion, stages) };
        let (threads, depth) = (1 + rng.below(9) as u32, 1 + rng.below(4) as u32);
        let times = (1 + rng.below(3), rng.below(20_000));
        let ran = run(&stack, threads, depth, 500, 1 + rng.below(70_000) as u32, || {
            Span::from_ns(times.1 / times.0 + rng.below(times.1 + 1))
        });
        let used = ran.cpu() + ran.at_locks() + ran.spent.spin.ps();
        let bound = cores.unwrap_or(threads).min(threads) as u128 * ran.time.ps() as u128;
        assert!(used <= bound, "seed {seed}: {used} ps of core time of {bound}");
    }
}
