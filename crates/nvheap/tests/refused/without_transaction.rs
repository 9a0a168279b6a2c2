//! A change outside a transaction, and through a value that was lent for reading.
use nvlab_nvheap::{Brand, Handle, Heap, Persist, Result};

struct Bank;
impl Brand for Bank {
    type Root = Account;
}

#[derive(Persist)]
#[repr(C)]
struct Account {
    balance: u64,
}

fn change(heap: &Heap<Bank>, account: &Handle<Account, Bank>) -> Result<()> {
    account.balance = 5;
    heap.transaction(|tx| {
        account.read(tx)?.balance = 5;
        Ok(())
    })
}

fn outlive(heap: &Heap<Bank>, account: &Handle<Account, Bank>) -> Result<u64> {
    let lent = heap.transaction(|tx| account.read(tx))?;
    Ok(lent.balance)
}

fn main() {}
