//! Retry and hedge policies.

use super::{bootstrap, cluster};
use crate::json::Json;
use crate::object;

pub(super) fn documents(id: &str) -> Result<Vec<Json>, String> {
    let mut policy = object! {"retry_on" => "5xx", "num_retries" => 1};
    let mut route = object! {"cluster" => "c"};
    let header = || Json::List(vec![object! {"name" => "retry-after"}]);
    match id {
        "retry_back_off without base_interval" => {
            policy.set("retry_back_off", object! {"max_interval" => "1s"})
        }
        "retry_back_off.base_interval 0s" => policy.set("retry_back_off", object! {"base_interval" => "0s"}),
        "retry_back_off.base_interval 0.0001s" => {
            policy.set("retry_back_off", object! {"base_interval" => "0.0001s"})
        }
        "retry_back_off max < base" => {
            policy.set("retry_back_off", object! {"base_interval" => "1s", "max_interval" => "0.5s"});
        }
        "retry_back_off base 0.0005s max 0.0001s" => {
            policy.set("retry_back_off", object! {"base_interval" => "0.0005s", "max_interval" => "0.0001s"});
        }
        "rate_limited_retry_back_off.reset_headers empty" => {
            policy.set("rate_limited_retry_back_off", object! {"reset_headers" => Json::List(Vec::new())});
        }
        "rate_limited_retry_back_off.max_interval 0s" => {
            let back_off = object! {"reset_headers" => header(), "max_interval" => "0s"};
            policy.set("rate_limited_retry_back_off", back_off);
        }
        "unknown retry_on token" => policy.set("retry_on", "5xx,sometimes".into()),
        "host_selection_retry_max_attempts -1" => {
            policy.set("host_selection_retry_max_attempts", (-1).into())
        }
        "previous_priorities update_frequency 0 or unset" => {
            let typed = object! {
                "@type" => "type.googleapis.com/envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig",
                "update_frequency" => 0,
            };
            let plugin =
                object! {"name" => "envoy.retry_priorities.previous_priorities", "typed_config" => typed};
            policy.set("retry_priority", plugin);
        }
        "hedge_policy.initial_requests 0" => {
            route.set("hedge_policy", object! {"initial_requests" => 0});
        }
        "max_grpc_timeout and max_stream_duration.grpc_timeout_header_max together" => {
            route.set("max_grpc_timeout", "1s".into());
            route.set("max_stream_duration", object! {"grpc_timeout_header_max" => "2s"});
        }
        "per_try_timeout negative" => policy.set("per_try_timeout", "-1s".into()),
        "retriable_status_codes 99999" => {
            policy.set("retriable_status_codes", Json::List(vec![99999.into()]));
        }
        other => return Err(format!("no document for {other}")),
    }
    route.set("retry_policy", policy);
    let route = object! {"match" => object! {"prefix" => "/"}, "route" => route};
    let host = object! {
        "name" => "v",
        "domains" => Json::List(vec!["*".into()]),
        "routes" => Json::List(vec![route]),
    };
    let routes = object! {"name" => "routes", "virtual_hosts" => Json::List(vec![host])};
    Ok(vec![bootstrap(vec![cluster("c")]), routes])
}
