//! The executable that a container runtime starts for every pod. It hands the call to the node's agent and prints
//! the answer; PROTOCOL.md is all it knows. `podtide.py` beside it does the same, word for word.
//!
//! It starts without a C library, whose own start takes longer than all that the plugin does: it asks the processor
//! what it can do, dozens of times, and in a virtual machine each such question goes to the hypervisor and back. This
//! file is what is needed in its place, and `system.rs` asks Linux directly. The rest is like any other program.

#![no_std]
#![no_main]

use core::arch::global_asm;
use core::ptr::addr_of_mut;

use plugin::system::{exit, Environment};
use plugin::{run, Memory};

/// Nothing of it takes room until it is written to.
static mut MEMORY: Memory = Memory::EMPTY;

// Linux begins here, with everything it has to say on the stack.
#[cfg(target_arch = "x86_64")]
global_asm!(".globl _start", "_start:", "mov rdi, rsp", "call begin");
#[cfg(target_arch = "aarch64")]
global_asm!(".globl _start", "_start:", "mov x0, sp", "bl begin");

/// # Safety
/// For Linux to start, once, with the stack as it makes it.
#[no_mangle]
unsafe extern "C" fn begin(stack: *const usize) -> ! {
    let environment = Environment::on_stack(stack);
    exit(run(environment, &mut *addr_of_mut!(MEMORY)))
}

/// Nothing panics, as far as a linter can tell. If something does, the call has failed.
#[cfg(not(test))] // the linter looks at it as a test too, and tests have another
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    exit(1)
}

// What the compiler takes for granted. Volatile, or it would see what a loop does, and call these for it.

/// # Safety
/// As in C.
#[no_mangle]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    for place in 0..length {
        to.add(place).write_volatile(*from.add(place));
    }
    to
}

/// # Safety
/// As in C.
#[no_mangle]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    if to as *const u8 <= from {
        return memcpy(to, from, length);
    }
    for place in (0..length).rev() {
        to.add(place).write_volatile(*from.add(place));
    }
    to
}

/// # Safety
/// As in C.
#[no_mangle]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, length: usize) -> *mut u8 {
    for place in 0..length {
        to.add(place).write_volatile(byte as u8);
    }
    to
}

/// # Safety
/// As in C.
#[no_mangle]
unsafe extern "C" fn memcmp(one: *const u8, other: *const u8, length: usize) -> i32 {
    for place in 0..length {
        let (one, other) = (one.add(place).read_volatile(), *other.add(place));
        if one != other {
            return i32::from(one) - i32::from(other);
        }
    }
    0
}

/// # Safety
/// As in C.
#[no_mangle]
unsafe extern "C" fn bcmp(one: *const u8, other: *const u8, length: usize) -> i32 {
    memcmp(one, other, length)
}
