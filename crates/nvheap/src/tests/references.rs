//! Counts of references, handles and logs under every schedule.

use super::*;

/// The last strong pointer goes while a weak one is upgraded, and another weak one goes.
#[test]
fn counts_agree_with_pointers() {
    explore(250, || {
        let (heap, _) = create(4);
        let root = heap.root().unwrap();
        heap.transaction(|tx| {
            let root = root.read(tx)?;
            let place = |which: usize| root.places[which].as_ref().unwrap().write(tx);
            let number = Strong::new(tx, Number::new(7))?;
            place(1)?.weak = Some(number.downgrade(tx)?);
            let mut first = place(0)?;
            first.weak = Some(number.downgrade(tx)?);
            first.strong = Some(number);
            Ok(())
        })
        .unwrap();
        thread::scope(|scope| {
            scope.spawn(|| at(&heap, &root, 0, |place, _| Ok(place.strong = None)).unwrap());
            scope.spawn(|| at(&heap, &root, 0, |place, _| Ok(place.weak = None)).unwrap());
            scope.spawn(|| {
                let upgraded = |tx: &Borrowed<'_>| {
                    let root = root.read(tx)?;
                    let place = root.places[1].as_ref().unwrap().read(tx)?;
                    place.weak.as_ref().unwrap().upgrade(tx)
                };
                at(&heap, &root, 2, |place, tx| Ok(place.strong = upgraded(tx)?)).unwrap();
            });
        });
        let lives = heap.transaction(|tx| {
            let root = root.read(tx)?;
            let place = root.places[2].as_ref().unwrap().read(tx)?;
            place.strong.as_ref().map(|number| Ok(number.read(tx)?.get())).transpose()
        });
        assert!(matches!(lives, Ok(None | Some(7))), "{lives:?}");
        at(&heap, &root, 1, |place, _| Ok(place.weak = None)).unwrap();
        drop(root);
        checked(heap, BASE + u64::from(lives.unwrap().is_some()));
    });
}

/// An object lives as long as a handle of it does, and no longer, whoever drops its last pointer meanwhile.
#[test]
fn handles_keep_their_objects() {
    explore(250, || {
        let (heap, _) = create(4);
        let root = heap.root().unwrap();
        at(&heap, &root, 0, |place, tx| Ok(place.strong = Some(Strong::new(tx, Number::new(7))?))).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let taken = heap.transaction(|tx| {
                    let root = root.read(tx)?;
                    let place = root.places[0].as_ref().unwrap().read(tx)?;
                    place.strong.as_ref().map(|number| number.handle(tx)).transpose()
                });
                let Some(handle) = taken.unwrap() else { return };
                let another = handle.clone();
                thread::scope(|scope| {
                    scope.spawn(move || drop(another));
                    let value = heap.transaction(|tx| Ok(handle.read(tx)?.get()));
                    assert_eq!(value.unwrap(), 7);
                });
                drop(handle);
            });
            scope.spawn(|| at(&heap, &root, 0, |place, _| Ok(place.strong = None)).unwrap());
        });
        drop(root);
        checked(heap, BASE);
    });
}

/// A log is leased by one thread at a time, and whoever has it next goes on where the last one stopped.
#[test]
fn a_log_has_one_user() {
    explore(150, || {
        let (heap, file) = create(2);
        let root = heap.root().unwrap();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let add = || heap.transaction(|tx| set(tx, &root, 0, number(tx, &root, 0)? + 1));
                    loop {
                        match add() {
                            Err(Error::TooManyThreads { .. }) => yield_now(),
                            done => break done.unwrap(),
                        }
                    }
                });
            }
        });
        let image = bytes(&file);
        drop((root, heap));
        let heap = reopen(killed(&image));
        let root = heap.root().unwrap();
        assert_eq!(heap.transaction(|tx| number(tx, &root, 0)).unwrap(), 3);
    });
}
