package io.nexthop;

import java.time.Duration;

/**
 * Nothing now; ask again.
 *
 * @param duration when asking again makes sense; null = only after a report of an attempt in flight
 * @param reason {@code queue}, {@code backoff}, {@code hedge} or {@code attempts}
 */
public record Wait(Duration duration, String reason) implements Choice {}
