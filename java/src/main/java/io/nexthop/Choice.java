package io.nexthop;

/** The three answers of choosing a host: send this, ask again later, or there will be no attempt. */
public sealed interface Choice permits Attempt, Wait, Refusal {}
