import { SSH_JOURNAL_KEEP_MS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvStore } from "../../../store/kv.ts";
import type { CommandOutcome, Target } from "../types.ts";
import type { DepotPlace } from "./depots.ts";

const COMMANDS = "hosts/ssh/commands/";
const DEPOTS = "hosts/ssh/depots/";

interface StoredCommand {
  readonly host: string;
  readonly beganMs: number;
  readonly outcome?: CommandOutcome;
}

export interface PlacedDepot extends DepotPlace {
  readonly name: string;
  readonly version: string;
}

/**
 * Journal for hosts without an agent: commands that were begun, and depots on the host. (An agent keeps such a journal
 * on its own host.) It is in the tenant's KvStore. So a command id begins only once, even if two controllers dispatch
 * it.
 */
export class SshJournal {
  readonly #kv: (tenant: string) => Promise<KvStore>;
  readonly #clock: Clock;

  constructor(dependencies: { readonly kv: (tenant: string) => Promise<KvStore>; readonly clock: Clock }) {
    this.#kv = dependencies.kv;
    this.#clock = dependencies.clock;
  }

  /**
   * Records that the command begins. Returns `undefined` if it may begin. If it was begun before, returns its outcome;
   * if that is unknown, an outcome `failed` that says so.
   */
  async begin(target: Target, commandId: string): Promise<CommandOutcome | undefined> {
    const kv = await this.#kv(target.tenant);
    const nowMs = this.#clock.nowMs();
    const stored: StoredCommand = { host: target.host, beganMs: nowMs };
    const written = await kv.put(commandKey(target, commandId), encodeJson(stored), {
      ifRevision: 0,
      ...keptSince(nowMs),
    });
    if (written.ok) return undefined;
    const earlier = written.current && decodeStored<StoredCommand>(written.current.value);
    const message = "The command was begun before; how it ended is not known.";
    return (
      earlier?.outcome ?? {
        host: target.host,
        state: "failed",
        message,
        startedMs: earlier?.beganMs ?? nowMs,
        endedMs: nowMs,
      }
    );
  }

  async finish(target: Target, commandId: string, outcome: CommandOutcome): Promise<void> {
    const kv = await this.#kv(target.tenant);
    const stored: StoredCommand = { host: target.host, beganMs: outcome.startedMs, outcome };
    await kv.put(commandKey(target, commandId), encodeJson(stored), keptSince(stored.beganMs));
  }

  async put(target: Target, depot: PlacedDepot): Promise<void> {
    await (await this.#kv(target.tenant)).put(depotKey(target, depot.name), encodeJson(depot));
  }

  async take(target: Target, name: string): Promise<void> {
    await (await this.#kv(target.tenant)).delete(depotKey(target, name));
  }

  async depotOf(target: Target, name: string): Promise<PlacedDepot | undefined> {
    const entry = await (await this.#kv(target.tenant)).get(depotKey(target, name));
    return entry && decodeStored<PlacedDepot>(entry.value);
  }

  /** Call when the host was removed. Removes the entries about its depots. */
  async forget(tenant: string, host: string): Promise<void> {
    const kv = await this.#kv(tenant);
    for await (const { key } of entriesUnder(kv, `${DEPOTS}${host}/`)) await kv.delete(key);
  }
}

function keptSince(beganMs: number): { readonly expiresAtMs: number } {
  return { expiresAtMs: beganMs + SSH_JOURNAL_KEEP_MS };
}

function commandKey(target: Target, commandId: string): string {
  return `${COMMANDS}${commandId}/${target.host}`;
}

function depotKey(target: Target, name: string): string {
  return `${DEPOTS}${target.host}/${name}`;
}
