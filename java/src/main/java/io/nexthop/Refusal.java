package io.nexthop;

import java.time.Duration;

/**
 * The request ends without another attempt.
 *
 * @param refusal Envoy's word, such as {@code no_healthy_upstream} or {@code overflow}
 * @param resource which limit refused, or why a composite found no host; null when neither applies
 * @param retryAfter when it could work again; null when nobody knows
 * @param host the host that was chosen before a limit refused; null when there was none
 * @param reply what Envoy would answer
 * @param missing of {@code no_cluster}: which name nothing has, and the nearest one; empty else
 */
public record Refusal(String refusal, String resource, Duration retryAfter, Host host, LocalReply reply, String missing)
    implements Choice {}
