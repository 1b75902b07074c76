package io.nexthop;

import java.util.Map;

/**
 * What Envoy would answer by itself.
 *
 * @param status HTTP status
 * @param flags Envoy's response flags, comma-joined, {@code -} for none
 * @param details Envoy's response code details
 * @param headers headers to add, in order
 * @param body body text
 */
public record LocalReply(int status, String flags, String details, Map<String, String> headers, String body) {}
