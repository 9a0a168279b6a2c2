//! The states of zones by the table of the command set, and the limits.

use super::device::{Buffered, Setup};
use crate::array::UNIT;
use nvlab_controller::zoned::{ZoneAction, ZoneError, ZoneState};
use nvlab_controller::{Controller, ControllerError, ZoneMap, Zoned};
use nvlab_medium::MemStore;
use nvlab_units::{Extent, Lpa, Time};

/// NVMe Zoned Namespace Command Set Specification 1.1: a row for each action, a column for each state, in the order of
/// [`ZoneState::ALL`]; `-`: Invalid Zone State Transition.
const TABLE: [(ZoneAction, [char; 7]); 5] = [
    (ZoneAction::Open, ['X', 'X', 'X', 'X', '-', '-', '-']),
    (ZoneAction::Close, ['-', 'C', 'C', 'C', '-', '-', '-']),
    (ZoneAction::Finish, ['F', 'F', 'F', 'F', 'F', '-', '-']),
    (ZoneAction::Reset, ['E', 'E', 'E', 'E', 'E', '-', '-']),
    (ZoneAction::Offline, ['-', '-', '-', '-', '-', 'O', 'O']),
];

fn letter(state: ZoneState) -> char {
    match state {
        ZoneState::Empty => 'E',
        ZoneState::ImplicitlyOpen => 'I',
        ZoneState::ExplicitlyOpen => 'X',
        ZoneState::Closed => 'C',
        ZoneState::Full => 'F',
        ZoneState::ReadOnly => 'R',
        ZoneState::Offline => 'O',
    }
}

#[test]
fn actions_lead_where_the_table_says() {
    for (action, row) in TABLE {
        for (state, wanted) in ZoneState::ALL.into_iter().zip(row) {
            let after = action.after(state).map_or('-', letter);
            assert_eq!(after, wanted, "a zone that is {state}, to be {action}");
        }
    }
}

/// A device whose zone 0 is in a state that the host can bring it to.
fn in_state(state: ZoneState) -> ZoneMap<MemStore> {
    let mut device = Setup::small(Buffered::Protected).device();
    let capacity = device.report(0).capacity;
    let units = match state {
        ZoneState::Empty | ZoneState::ExplicitlyOpen => 0,
        ZoneState::Full => capacity,
        _ => 1,
    };
    if units > 0 {
        device.append(Time::ZERO, 0, units, &vec![7; units as usize * UNIT]).unwrap();
    }
    match state {
        ZoneState::ExplicitlyOpen => _ = device.manage(Time::ZERO, 0, ZoneAction::Open).unwrap(),
        ZoneState::Closed => _ = device.manage(Time::ZERO, 0, ZoneAction::Close).unwrap(),
        _ => {}
    }
    assert_eq!(device.report(0).state, state);
    device
}

#[test]
fn a_device_does_what_the_table_says() {
    use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen};
    for state in [Empty, ImplicitlyOpen, ExplicitlyOpen, Closed, Full] {
        for action in ZoneAction::ALL {
            let mut device = in_state(state);
            let done = device.manage(Time::ZERO, 0, action);
            let wanted = action.after(state);
            assert_eq!(device.report(0).state, wanted.unwrap_or(state), "{state}, {action}");
            let transition = ZoneError::Transition { state, action };
            let refused = ControllerError::Zone { zone: 0, source: transition };
            assert_eq!(done.err(), wanted.is_none().then_some(refused));
            device.check();
        }
    }
}

fn write(device: &mut ZoneMap<MemStore>, zone: u32, unit: u32, units: u32) -> Result<(), ZoneError> {
    let extent = Extent { start: device.report(zone).extent.start + unit, count: units };
    match device.write(Time::ZERO, extent, &vec![1; units as usize * UNIT]) {
        Ok(_) => Ok(()),
        Err(ControllerError::Zone { source, .. }) => Err(source),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn writes_go_to_the_write_pointer_only() {
    let mut device = Setup::small(Buffered::Protected).device();
    let device = &mut device;
    let capacity = device.report(0).capacity;
    assert_eq!(write(device, 0, 1, 1), Err(ZoneError::NotAtPointer { at: 1, pointer: 0 }));
    assert_eq!(write(device, 0, 0, 2), Ok(()));
    assert_eq!(write(device, 0, 0, 1), Err(ZoneError::NotAtPointer { at: 0, pointer: 2 }));
    let boundary = ZoneError::Boundary { at: 2, units: capacity - 1, capacity };
    assert_eq!(write(device, 0, 2, capacity - 1), Err(boundary));
    assert_eq!(write(device, 0, 2, capacity - 2), Ok(()));
    assert_eq!(
        (device.report(0).state, write(device, 0, capacity, 1)),
        (ZoneState::Full, Err(ZoneError::Full))
    );
    // The rest of the zone, and what was not written, read as zero.
    let mut data = vec![9; 4 * UNIT];
    device.read(Time::ZERO, Extent { start: Lpa(capacity - 1), count: 4 }, &mut data).unwrap();
    assert_eq!((data[0], data[UNIT], data[4 * UNIT - 1]), (1, 0, 0));
}

#[test]
fn limits_close_zones_or_refuse_them() {
    let mut device = Setup::small(Buffered::Protected).device();
    let device = &mut device;
    let states =
        |device: &ZoneMap<MemStore>| (0..6).map(|zone| letter(device.report(zone).state)).collect::<String>();
    for zone in 0..3 {
        write(device, zone, 0, 1).unwrap();
    }
    // Two may be open: the one opened first was closed.
    assert_eq!((states(device).as_str(), device.stats().implicit_closes), ("CIIEEE", 1));
    device.manage(Time::ZERO, 1, ZoneAction::Open).unwrap();
    device.manage(Time::ZERO, 3, ZoneAction::Open).unwrap();
    assert_eq!(states(device), "CXCXEE");
    assert_eq!(write(device, 0, 1, 1), Err(ZoneError::TooManyOpen { max: 2 }));
    assert_eq!(write(device, 4, 0, 1), Err(ZoneError::TooManyActive { max: 4 }));
    device.manage(Time::ZERO, 2, ZoneAction::Finish).unwrap();
    assert_eq!(write(device, 4, 0, 1), Err(ZoneError::TooManyOpen { max: 2 }));
    device.manage(Time::ZERO, 3, ZoneAction::Close).unwrap();
    assert_eq!(write(device, 4, 0, 1), Ok(()));
    assert_eq!(states(device), "CXFCIE");
    assert_eq!(write(device, 5, 0, 1), Err(ZoneError::TooManyActive { max: 4 }));
    device.manage(Time::ZERO, 0, ZoneAction::Reset).unwrap();
    assert_eq!(write(device, 5, 0, 1), Ok(()));
    assert_eq!(states(device), "EXFCCI");
    device.check();
}
