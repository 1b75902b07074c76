//! Gives the shared library its SONAME, so that an incompatible one is never loaded in its place.

/// Grows with `nexthop_abi_version`.
const ABI: u32 = 1;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnexthop.so.{ABI}");
    }
}
