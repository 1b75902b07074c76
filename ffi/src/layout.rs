//! Holds the structs of this crate against C's view of the header: size and offset of every field.

use crate::types::{
    nexthop_attempt, nexthop_check, nexthop_decision, nexthop_document, nexthop_engine, nexthop_engine_facts,
    nexthop_error_parts, nexthop_head, nexthop_host_info, nexthop_host_op, nexthop_local_reply,
    nexthop_options, nexthop_outcome, nexthop_ready, nexthop_request, nexthop_request_facts, nexthop_str,
    nexthop_verdict,
};
use std::fmt::Write as _;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

/// C assertions about one struct. The destructuring has no `..`: a field that is not listed does not compile.
macro_rules! layout {
    ($program:ident, $name:ident: $($field:ident)*) => {{
        const _: fn($name) = |$name { $($field: _),* }| ();
        let (size, align) = (size_of::<$name>(), align_of::<$name>());
        let name = stringify!($name);
        let _ = writeln!($program, "_Static_assert(sizeof({name}) == {size} && _Alignof({name}) == {align}, \"{name}\");");
        let mut last = 0;
        $(
            let (field, at) = (stringify!($field), offset_of!($name, $field));
            let _ = writeln!($program, "_Static_assert(offsetof({name}, {field}) == {at}, \"{name}.{field}\");");
            assert!(at >= last, "{name}.{field} is out of order");
            last = at;
        )*
        let _ = last;
    }};
}

#[test]
fn c_sees_the_same_structs() {
    let mut program = String::from("#include \"nexthop.h\"\n#include \"nexthop.h\"\n");
    layout!(program, nexthop_engine: id);
    layout!(program, nexthop_request: id);
    layout!(program, nexthop_attempt: id);
    layout!(program, nexthop_str: ptr len);
    layout!(program, nexthop_options: struct_size workers seed lease events clock reserved draws n_draws);
    layout!(program, nexthop_document: struct_size dialect kind reserved name text);
    layout!(program, nexthop_head: struct_size bits target number want priority body reserved method scheme
        authority path headers source local key tried override_host metadata filter_metadata hash timeout user_data);
    layout!(program, nexthop_decision: struct_size kind bits request attempt host host_version number want_ok
        want_err try_timeout remaining wait status refusal resource flags);
    layout!(program, nexthop_outcome: struct_size status failure grpc_status bits reserved headers detail latency bytes);
    layout!(program, nexthop_verdict: code action reason bits flags status reserved after_ms);
    layout!(program, nexthop_ready: request user_data);
    layout!(program, nexthop_host_info: struct_size version cluster weight bits port priority connect_timeout address
        hostname cluster_name region zone sub_zone metadata);
    layout!(program, nexthop_host_op: struct_size weight bits port priority health op reserved address hostname region
        zone sub_zone metadata);
    layout!(program, nexthop_local_reply: struct_size flags status reserved n_headers details body headers);
    layout!(program, nexthop_request_facts: struct_size reserved timeout idle_timeout cluster route);
    layout!(program, nexthop_engine_facts: struct_size reserved epoch live_requests seed);
    layout!(program, nexthop_error_parts: struct_size line column reserved file path message found allowed nearest);
    layout!(program, nexthop_check: struct_size protocol bits want id timeout host host_version method path authority send
        address headers cluster name extension body_limit);
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../include");
    let directory = std::env::temp_dir().join(format!("nexthop-layout-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let source = directory.join("layout.c");
    std::fs::write(&source, program).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let output = Command::new(compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "-I"])
        .args([&header, &source])
        .output()
        .expect("a C compiler");
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// On 64-bit targets the sizes of the first version are what every later one must accept.
#[cfg(target_pointer_width = "64")]
#[test]
fn sizes_of_this_version() {
    let sizes = [
        size_of::<nexthop_options>(),
        size_of::<nexthop_document>(),
        size_of::<nexthop_head>(),
        size_of::<nexthop_decision>(),
        size_of::<nexthop_outcome>(),
        size_of::<nexthop_verdict>(),
        size_of::<nexthop_ready>(),
        size_of::<nexthop_host_info>(),
        size_of::<nexthop_host_op>(),
        size_of::<nexthop_local_reply>(),
        size_of::<nexthop_request_facts>(),
        size_of::<nexthop_engine_facts>(),
        size_of::<nexthop_error_parts>(),
        size_of::<nexthop_check>(),
    ];
    assert_eq!(sizes, [56, 40, 240, 72, 64, 16, 16, 144, 120, 64, 56, 32, 112, 184]);
}
