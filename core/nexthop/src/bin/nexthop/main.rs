//! The `nexthop` program.

fn main() -> std::process::ExitCode {
    nexthop::program::main()
}
