//! The plugin starts by itself, without the start of a C library: `src/main.rs` says why.

fn main() {
    println!("cargo:rustc-link-arg-bins=-nostartfiles");
    println!("cargo:rerun-if-changed=build.rs");
}
