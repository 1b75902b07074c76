// One implementation for both module systems, so that classes and engines are the same in a mixed program.
import nexthop from './index.cjs';

export const { Engine, Request, Attempt, NexthopError, ConfigError, RefusedError, WouldWaitError, UsageError } = nexthop;
