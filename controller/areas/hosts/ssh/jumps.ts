import { AppError, errorText } from "../../../../common/errors.ts";
import { SSH_JUMP_TARGETS_MAX } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import type { ProxiedHost, Target } from "../types.ts";
import { SshConnection, type SshAddress, type SshWay } from "./connection.ts";

export interface SshJumpDependencies {
  readonly clock: Clock;
  readonly address: (target: Target) => Promise<SshAddress>;
  readonly checkKey: (target: Target, fingerprint: string) => Promise<boolean>;
}

/** A connection to one host through a jump host; release it once. */
export interface JumpWay extends SshWay {
  /** Returns true if the connection to the jump host is lost. */
  readonly isLost: () => boolean;
  readonly release: () => void;
}

/** A connection to a jump host, shared from its first user to its last. */
interface Jump {
  readonly key: string;
  /** Destination and credentials. */
  readonly address: string;
  readonly connection: Promise<SshConnection>;
  readonly over: AbortController;
  fingerprint: string;
  users: number;
  isLost: boolean;
}

/**
 * Connections to hosts behind jump hosts. Up to `SSH_JUMP_TARGETS_MAX` commands share a connection to a jump host,
 * as long as its record has the same address, credentials and key. Two commands on one target count as two.
 */
export class SshJumps {
  readonly #with: SshJumpDependencies;
  readonly #jumps = new Set<Jump>();

  constructor(dependencies: SshJumpDependencies) {
    this.#with = dependencies;
  }

  /** Opens a stream to the host through its jump host. Throws `AppError("unavailable")` that names the jump host. */
  async way(
    { tenant, traceparent }: Target,
    { behind, signal }: { readonly behind: ProxiedHost; readonly signal: AbortSignal },
  ): Promise<JumpWay> {
    const { host, port, proxy } = behind;
    try {
      const via: Target = { tenant, host: proxy, traceparent };
      const jump = this.#take(via, await this.#with.address(via));
      try {
        const connection = await unlessAborted(jump.connection, signal);
        // The record may have another key since the connection was made.
        await this.#with.checkKey(via, jump.fingerprint);
        const stream = await connection.forward({ address: host, port }, signal);
        const release = (): void => this.#leave(jump);
        return { stream, proxy, release, isLost: () => jump.isLost };
      } catch (error) {
        this.#leave(jump);
        throw error;
      }
    } catch (error) {
      throw jumpFailed(behind, error);
    }
  }

  #take(via: Target, address: SshAddress): Jump {
    const sought = { key: JSON.stringify([via.tenant, via.host]), address: JSON.stringify(address) };
    const isFit = (jump: Jump): boolean =>
      jump.key === sought.key &&
      jump.address === sought.address &&
      jump.users < SSH_JUMP_TARGETS_MAX &&
      !jump.isLost &&
      !jump.over.signal.aborted;
    const found = [...this.#jumps].find(isFit) ?? this.#begin(sought, via, address);
    found.users += 1;
    return found;
  }

  #begin(sought: Pick<Jump, "key" | "address">, via: Target, address: SshAddress): Jump {
    const { clock, checkKey } = this.#with;
    const over = new AbortController();
    const connection = SshConnection.connect(address, {
      clock,
      signal: over.signal,
      checkKey: (fingerprint) => {
        jump.fingerprint = fingerprint;
        return checkKey(via, fingerprint);
      },
    });
    const jump: Jump = { ...sought, connection, over, fingerprint: "", users: 0, isLost: false };
    const lose = (): void => {
      jump.isLost = true;
      this.#jumps.delete(jump);
    };
    connection.then((made) => made.onLost(lose), lose);
    this.#jumps.add(jump);
    return jump;
  }

  #leave(jump: Jump): void {
    jump.users -= 1;
    if (jump.users > 0) return;
    this.#jumps.delete(jump);
    jump.over.abort();
    // A connection that failed to open has already reported the reason to its users.
    jump.connection.then(
      (made) => made.close(),
      () => undefined,
    );
  }
}

export function jumpFailed({ proxy, host }: ProxiedHost, cause: unknown): AppError {
  return new AppError("unavailable", `The jump host ${proxy} of ${host} failed: ${errorText(cause)}`, { cause });
}

/** Rejects on abort; the work continues for its other users. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => reject(new Error("the time was over before the connection stood"));
    if (signal.aborted) return aborted();
    signal.addEventListener("abort", aborted, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", aborted));
  });
}
