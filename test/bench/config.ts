import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openEmbeddedEngine } from "../../controller/store/embedded/index.ts";
import { encodeJson } from "../../controller/store/format.ts";
import { Installation } from "../e2e/installation.ts";
import { realClock } from "../helpers/clock.ts";
import { Calls, succeeding } from "./calls.ts";
import { inTurns, perSecond, type Bench } from "./frame.ts";

const SETS = 2_000;
const GETS = 4_000;
const AT_ONCE = 32;
const VALUE = "a value of some forty characters, no more";

const EMPTY_CALL = { againstName: "an empty call, signed in", kind: "ratio", goal: 0.8 } as const;

/**
 * Configuration of the whole program on embedded: entries set over HTTP, each with its version, beside bare puts into a
 * key-value store of the same kind, and entries read, from the store and as they were read before, beside a call that
 * does next to nothing.
 */
export const configBench: Bench = {
  name: "config",
  async run() {
    const odp = await Installation.start({});
    const dir = await mkdtemp(join(tmpdir(), "odp-bench-config-"));
    const random = { next: () => Math.random(), bytes: (count: number) => new Uint8Array(randomBytes(count)) };
    const engine = await openEmbeddedEngine({ dir, runtime: { clock: realClock, random } });
    const calls = new Calls({ port: odp.port, atOnce: AT_ONCE });
    const session = `sessionid=${await odp.session()}`;
    let round = 0;
    try {
      await engine.createTenant("bare");
      const { kv } = await engine.tenant("bare");
      const value = encodeJson(VALUE);
      const keyOf = (n: number): string => `/matrix/bench/${n % (SETS / 2)}`;
      const sets = await inTurns(
        () =>
          perSecond(SETS, AT_ONCE, (n) =>
            succeeding(calls.form(`/config/set?${session}`, { key: keyOf(n), value: `${VALUE} ${(round += 1)}` })),
          ),
        () => perSecond(SETS, AT_ONCE, (n) => kv.put(`config${keyOf(n)}`, value)),
      );
      const gets = await inTurns(
        () => perSecond(GETS, AT_ONCE, (n) => succeeding(calls.get(`/config/get?key=${keyOf(n)}&${session}`))),
        () => perSecond(GETS, AT_ONCE, () => succeeding(calls.get(`/cluster/info?${session}`))),
      );
      const cached = await inTurns(
        () =>
          perSecond(GETS, AT_ONCE, (n) => succeeding(calls.get(`/config/get?key=${keyOf(n)}&cached=true&${session}`))),
        () => perSecond(GETS, AT_ONCE, () => succeeding(calls.get(`/cluster/info?${session}`))),
      );
      return [
        {
          name: "set over HTTP",
          unit: "entries/s",
          ...sets,
          againstName: "bare puts at equal concurrency",
          kind: "ratio",
          goal: 0.7,
        },
        { name: "get", unit: "calls/s", ...gets, ...EMPTY_CALL },
        { name: "get, cached", unit: "calls/s", ...cached, ...EMPTY_CALL },
      ];
    } finally {
      calls.close();
      await engine.close();
      await rm(dir, { recursive: true });
      await odp.stop();
    }
  },
};
