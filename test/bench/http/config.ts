import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Etcd3 } from "etcd3";
import { openEmbeddedEngine } from "../../../controller/store/embedded/index.ts";
import { encodeJson } from "../../../controller/store/format.ts";
import { clusterVariables, Installation } from "../../e2e/installation.ts";
import { realClock } from "../../helpers/time/clock.ts";
import { Calls, succeeding } from "./calls.ts";
import { withCluster } from "../driver/cluster.ts";
import { inTurns, perSecond, type Bench, type Figure } from "../driver/frame.ts";

const SETS = 2_000;
const GETS = 4_000;
const AT_ONCE = 32;
const VALUE = "a value of some forty characters, no more";
const EMPTY_CALL = { againstName: "an empty call, signed in", unit: "calls/s", kind: "ratio", goal: 0.8 } as const;

/** Writes a value without a version, an audit record or a call over HTTP. */
type BarePut = (key: string, value: Uint8Array) => Promise<unknown>;

/**
 * Configuration of the whole program on either engine. Entries set over HTTP, each with its version, are compared with
 * bare puts into a key-value store of the same kind. Reads of entries, from the store and of entries read before, are
 * compared with a call that does almost nothing.
 */
export const configBench: Bench = {
  name: "config",
  async run() {
    const onEmbedded = await withEmbeddedPut((put) => figures("embedded", {}, put));
    const onEtcd = await withCluster(async (settings) => {
      const etcd = new Etcd3({ hosts: [...settings.etcdEndpoints] });
      const prefix = `bench-config-${randomBytes(5).toString("hex")}/`;
      try {
        const put: BarePut = async (key, value) => etcd.put(prefix + key).value(Buffer.from(value));
        return await figures("etcd", clusterVariables(settings), put);
      } finally {
        await etcd.delete().prefix(prefix);
        etcd.close();
      }
    });
    return [...onEmbedded, ...onEtcd];
  },
};

async function withEmbeddedPut<T>(work: (put: BarePut) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), "odp-bench-config-"));
  const random = { next: () => Math.random(), bytes: (count: number) => new Uint8Array(randomBytes(count)) };
  const engine = await openEmbeddedEngine({ dir, runtime: { clock: realClock, random } });
  try {
    await engine.createTenant("bare");
    const { kv } = await engine.tenant("bare");
    return await work((key, value) => kv.put(key, value));
  } finally {
    await engine.close();
    await rm(dir, { recursive: true });
  }
}

async function figures(
  engine: string,
  settings: Readonly<Record<string, string>>,
  put: BarePut,
): Promise<readonly Figure[]> {
  const odp = await Installation.start(settings);
  const calls = new Calls({ port: odp.port, atOnce: AT_ONCE });
  const session = `sessionid=${await odp.session()}`;
  const value = encodeJson(VALUE);
  const keyOf = (n: number): string => `/matrix/bench/${n % (SETS / 2)}`;
  const empty = () => perSecond(GETS, AT_ONCE, () => succeeding(calls.get(`/cluster/info?${session}`)));
  const reads = (more: string) => () =>
    perSecond(GETS, AT_ONCE, (n) => succeeding(calls.get(`/config/get?key=${keyOf(n)}${more}&${session}`)));
  let round = 0;
  try {
    const sets = await inTurns(
      () =>
        perSecond(SETS, AT_ONCE, (n) =>
          succeeding(calls.form(`/config/set?${session}`, { key: keyOf(n), value: `${VALUE} ${(round += 1)}` })),
        ),
      () => perSecond(SETS, AT_ONCE, (n) => put(`config${keyOf(n)}`, value)),
    );
    const gets = await inTurns(reads(""), empty);
    const cached = await inTurns(reads("&cached=true"), empty);
    return [
      {
        name: `set over HTTP, ${engine}`,
        unit: "entries/s",
        ...sets,
        againstName: "bare puts at equal concurrency",
        kind: "ratio",
        goal: 0.7,
      },
      { name: `get, ${engine}`, ...gets, ...EMPTY_CALL },
      { name: `get, cached, ${engine}`, ...cached, ...EMPTY_CALL },
    ];
  } finally {
    calls.close();
    await odp.stop();
  }
}
