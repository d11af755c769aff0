//! The first process of a PID namespace: it waits, reaps what is left to it, and leaves when it is asked to.
//!
//! The kernel ignores a signal to such a process unless there is a handler, so SIGTERM and SIGINT have one here.

use std::os::raw::c_int;

const SIGINT: c_int = 2;
const SIGTERM: c_int = 15;
const SIGCHLD: c_int = 17;
const WNOHANG: c_int = 1;

extern "C" {
    fn signal(number: c_int, handler: extern "C" fn(c_int)) -> usize;
    fn pause() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

extern "C" fn leave(_: c_int) {
    unsafe { _exit(0) }
}

extern "C" fn reap(_: c_int) {
    while unsafe { waitpid(-1, std::ptr::null_mut(), WNOHANG) } > 0 {}
}

fn main() {
    unsafe {
        signal(SIGINT, leave);
        signal(SIGTERM, leave);
        signal(SIGCHLD, reap);
    }
    reap(SIGCHLD); // whoever ended before there was a handler
    loop {
        unsafe { pause() };
    }
}
