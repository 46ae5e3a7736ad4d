import type { Clock, Random } from "../../common/time.ts";
import type { Depot } from "../../proto/gen/agent/v1/agent.ts";
import { isAppError } from "../../common/errors.ts";
import type { Exec } from "../commands/exec.ts";
import { hostUsers, type HostUsers } from "../commands/host-user.ts";
import type { Log } from "../log.ts";
import type { AppendOptions, Emission, Outbox } from "../outbox/outbox.ts";

/** Gives plugins access to the depots on this host. */
export interface Depots {
  /** The folder of a depot that is in place; otherwise undefined. */
  folder(name: string): string | undefined;
  /** Resolves with the folder when this version of the depot is in place. It is placed first if necessary. */
  ensure(depot: Depot, signal: AbortSignal): Promise<string>;
}

export interface EmitOptions extends AppendOptions {
  /** Aborts the wait for room. Nothing is written then. */
  readonly signal?: AbortSignal;
  /** Throws `AppError("limited")` instead of waiting for room. It is for callers that can write less. */
  readonly impatient?: boolean;
}

/** The only interface of a plugin to the rest of the agent. */
export interface Host {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly exec: Exec;
  readonly users: HostUsers;
  readonly depots: Depots;
  /**
   * Writes entries and marks in one write, which is durable when the promise resolves. Waits while the outbox has no
   * room.
   */
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
    users: hostUsers(parts.exec),
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

/** The prefix of all marks of a policy. They are removed with the policy. */
export function policyMarks(name: string): string {
  return `policy/${name}/`;
}
