import type { Clock, Random } from "../../common/time.ts";
import type { Depot } from "../../proto/gen/agent/v1/agent.ts";
import { isAppError } from "../../common/errors.ts";
import type { Exec } from "../commands/exec.ts";
import type { Log } from "../log.ts";
import type { AppendOptions, Emission, Outbox } from "../outbox/outbox.ts";

/** Places depots on this host; one plugin does it, others ask for it here. */
export interface Depots {
  /** The folder in which the depot lies when it is in place, else undefined. */
  folder(name: string): string | undefined;
  /** Resolves with its folder when this very version is in place, bringing it there first if need be. */
  ensure(depot: Depot, signal: AbortSignal): Promise<string>;
}

export interface EmitOptions extends AppendOptions {
  /** Gives up waiting for room; then nothing was written. */
  readonly signal?: AbortSignal;
  /** `AppError("limited")` instead of waiting, for work that can do with less. */
  readonly impatient?: boolean;
}

/** Everything a plugin may touch; there is no other way out. */
export interface Host {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly exec: Exec;
  readonly depots: Depots;
  /** Durable when it resolves, entries and marks in one write. Waits while the outbox has no room. */
  emit(emissions: readonly Emission[], options?: EmitOptions): Promise<void>;
  hasRoom(): boolean;
  /** Resolves when there is room, or the signal fires. */
  room(signal: AbortSignal): Promise<void>;
  /** A small text that lives as long as the outbox. Plugins name theirs `policy/<name>/…`. */
  mark(key: string): string | undefined;
  marks(prefix: string): [key: string, value: string][];
}

export interface HostParts {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly exec: Exec;
  readonly depots: Depots;
  readonly outbox: Outbox;
}

export function createHost(parts: HostParts): Host {
  const { outbox, ...rest } = parts;
  return {
    ...rest,
    emit: (emissions, options) => emitWhenRoom(outbox, emissions, options),
    hasRoom: () => outbox.hasRoom(),
    room: (signal) => outbox.room(signal),
    mark: (key) => outbox.mark(key),
    marks: (prefix) => outbox.marks(prefix),
  };
}

export async function emitWhenRoom(
  outbox: Outbox,
  emissions: readonly Emission[],
  options: EmitOptions = {},
): Promise<void> {
  for (;;) {
    options.signal?.throwIfAborted();
    try {
      await outbox.append(emissions, options);
      return;
    } catch (error) {
      if (!isAppError(error, "limited") || options.impatient) throw error;
      await outbox.room(options.signal, options.reserve);
    }
  }
}

/** The prefix of all marks of a policy; they go when the policy goes. */
export function policyMarks(name: string): string {
  return `policy/${name}/`;
}
