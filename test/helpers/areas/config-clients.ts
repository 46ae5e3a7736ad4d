import { isAppError } from "../../../common/errors.ts";
import type { ConfigService } from "../../../controller/areas/config/index.ts";
import { realClock, seededRandom } from "../time/clock.ts";
import { expiringRegister, isLinearizable, type Operation, type RegisterCall } from "../engines/linearizable.ts";
import { testPrincipal } from "../time/runtime.ts";

type Recorded = Operation<RegisterCall>;

export interface ConfigClientsOptions {
  /** One service per controller; the clients are distributed over them. */
  readonly services: readonly ConfigService[];
  readonly keys: readonly string[];
  readonly clients: number;
  readonly seed: number;
}

/** Number of calls so far, by their result. */
export interface ConfigTally {
  calls: number;
  /** Calls that certainly had no effect and are therefore in no history. */
  refused: number;
  /** Writes that may have taken effect. */
  unknown: number;
}

const TTL_SECONDS = 1;
const admin = testPrincipal();

/** Clients that read, write, delete and let expire a few keys on several controllers, and record what they saw. */
export class ConfigClients {
  readonly tally: ConfigTally = { calls: 0, refused: 0, unknown: 0 };
  readonly #options: ConfigClientsOptions;
  readonly #histories: ReadonlyMap<string, Recorded[]>;
  readonly #random: readonly { next(): number }[];

  constructor(options: ConfigClientsOptions) {
    this.#options = options;
    this.#histories = new Map(options.keys.map((key) => [key, []]));
    this.#random = Array.from({ length: options.clients }, (_, at) => seededRandom(options.seed * 100 + at));
  }

  /** Every client makes this many further calls, one after the other. */
  async make(calls: number): Promise<void> {
    await this.#all(async (next) => {
      for (let call = 0; call < calls; call += 1) await next();
    });
  }

  /** Every client makes calls until one of its calls gets no answer. */
  async fail(): Promise<void> {
    await this.#all(async (next) => {
      while ((await next()) !== "fault");
    });
  }

  /** Keys whose calls have no possible order, with their histories. */
  impossible(): readonly { readonly key: string; readonly history: readonly Recorded[] }[] {
    const all = [...this.#histories].map(([key, history]) => ({ key, history }));
    return all.filter(({ history }) => !isLinearizable(history, expiringRegister()));
  }

  async #all(work: (next: () => Promise<Ending>) => Promise<void>): Promise<void> {
    await Promise.all(this.#random.map((random, client) => work(() => this.#next(client, random))));
  }

  async #next(client: number, random: { next(): number }): Promise<Ending> {
    const { services, keys } = this.#options;
    const config = services[client % services.length];
    if (config === undefined) throw new Error("Clients need a controller.");
    const key = keys[Math.floor(random.next() * keys.length)] ?? "";
    this.tally.calls += 1;
    const { recorded, ending } = await called(config, key, { value: `${this.tally.calls}`, chance: random.next() });
    if (recorded) this.#histories.get(key)?.push(recorded);
    if (ending === "fault" && recorded) this.tally.unknown += 1;
    else if (!recorded) this.tally.refused += 1;
    return ending;
  }
}

/** A call recorded as a fault may have taken effect. */
type Ending = "answer" | "fault";

async function called(
  config: ConfigService,
  key: string,
  { value, chance }: { readonly value: string; readonly chance: number },
): Promise<{ readonly recorded?: Recorded; readonly ending: Ending }> {
  const invokedMs = realClock.nowMs();
  const answer = (what: RegisterCall) => {
    return { recorded: { what, invokedMs, returnedMs: realClock.nowMs() + 1 }, ending: "answer" } as const;
  };
  const isShort = chance >= 0.6 && chance < 0.75;
  const set: RegisterCall = { kind: "set", value, ...(isShort && { ttlMs: TTL_SECONDS * 1_000 }) };
  try {
    if (chance < 0.4) return answer({ kind: "get", value: await valueOf(config, key) });
    if (chance < 0.6) return answer({ kind: "delete", found: await isRemoved(config, key) });
    await config.set(admin, { key, value, ...(isShort && { ttlSeconds: TTL_SECONDS }) });
    return answer(set);
  } catch (error) {
    if (isAppError(error, "conflict")) return { ending: "answer" };
    if (isAppError(error, "unavailable")) return { ending: "fault" };
    if (!isAppError(error, "unknown_outcome")) throw error;
    // A delete that found nothing would change nothing.
    return { recorded: { invokedMs, what: chance < 0.6 ? { kind: "delete", found: true } : set }, ending: "fault" };
  }
}

/** Value of the key; `undefined` if there is none. */
export async function valueOf(config: ConfigService, key: string): Promise<string | undefined> {
  try {
    return (await config.tree(admin, key)).value;
  } catch (error) {
    if (isAppError(error, "not_found")) return undefined;
    throw error;
  }
}

async function isRemoved(config: ConfigService, key: string): Promise<boolean> {
  try {
    return (await config.remove(admin, key)) > 0;
  } catch (error) {
    if (isAppError(error, "not_found")) return false;
    throw error;
  }
}
