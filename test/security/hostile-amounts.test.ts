import {
  AGENT_FRAME_MAX_FIELDS,
  HOST_CONFIG_MAX_ENTRIES,
  HOST_FACTS_MAX_ENTRIES,
  INGEST_HINTS_STREAMS_MAX,
} from "../../common/limits.ts";
import { decodeStored } from "../../controller/store/format.ts";
import { describe, expect, test } from "vitest";
import { BareAgent } from "../helpers/hosts/hosts.ts";
import { eventually } from "../helpers/programs/programs.ts";
import {
  ADMIN,
  OWN_RULE,
  engine,
  stores,
  odp,
  port,
  agents,
  useHostileAgents,
  othersAreServed,
  policy,
  enrolled,
  connected,
  records,
  rows,
} from "../helpers/hosts/hostile-world.ts";

useHostileAgents();

const DEADLINE_MS = 20_000;

describe("how much an agent may send", () => {
  test("a frame with more fields than an agent's can have ends its stream before it is decoded", async () => {
    const web = await connected("web");
    const tiny = Array.from({ length: AGENT_FRAME_MAX_FIELDS + 1 }, () => "");
    web.sendRaw([records(1, tiny)]);
    expect(await web.agent.next("refused")).toMatchObject({
      code: "too_large",
      message: expect.stringContaining("270000 fields"),
    });
    await othersAreServed();
  });

  test("a frame that is too large ends its stream", async () => {
    const web = await connected("web");
    web.sendRaw([records(1, ["x".repeat(9 * 1024 * 1024)])]);
    expect(await web.agent.next("refused")).toMatchObject({
      code: "too_large",
      message: expect.stringContaining("8388608 bytes"),
    });
    await othersAreServed();
  });

  test("ever new streams of a host leave one entry in the store that names its latest ones", async () => {
    const { kv } = await engine.tenant("matrix");
    await odp.hosts.save(ADMIN, { host: "streams" });
    await odp.policies.save(ADMIN, policy("streaming", OWN_RULE, ["streams"]));
    for (let at = 0; at < INGEST_HINTS_STREAMS_MAX + 3; at++) {
      const streams = await connected("streams", `new-stream-${at}`);
      await streams.send(records(1, [`new${at},1`], { policy: "streaming" }));
      await streams.acknowledged(1);
      streams.agent.close();
    }
    const hint = await eventually("how far they are is known", DEADLINE_MS, async () => {
      const entry = await kv.get("ingest/streams");
      const known = entry ? decodeStored<[string, number][]>(entry.value) : [];
      return known.at(-1)?.[0] === `new-stream-${INGEST_HINTS_STREAMS_MAX + 2}` ? known : undefined;
    });
    expect(hint).toEqual(Array.from({ length: INGEST_HINTS_STREAMS_MAX }, (_, at) => [`new-stream-${at + 3}`, 1]));
    await othersAreServed();
  });

  test("ten thousand frames without waiting for an answer end their stream; others are served, and what was acknowledged is stored once", async () => {
    await odp.hosts.save(ADMIN, { host: "flood" });
    await odp.policies.save(ADMIN, policy("floods", OWN_RULE, ["flood"]));
    const { agent } = await connected("flood", "flood-stream");
    // Holds back the store: if it kept up with the flood, nothing would stay unacknowledged.
    const held = stores.hold("append");
    const pin = await agent.pin([records(1, [], { policy: "floods" })]);
    for (let sequence = 1; sequence <= 10_000; sequence++) {
      const entries = [records(sequence, [`flood,${sequence}`], { policy: "floods" })];
      agent.send({ $case: "batch", value: { streamId: "flood-stream", entries, pin } });
      agent.send({ $case: "command", value: { commandId: `flood-${sequence}`, state: "accepted", message: "" } });
    }
    const first = await held;
    await othersAreServed();
    expect(await agent.next("refused")).toMatchObject({
      code: "limited",
      message: expect.stringContaining("unacknowledged"),
    });
    first.goOn();
    await agent.end();
    const next = await connected("flood", "flood-stream");
    await next.send(records(10_001, ["flood,0"], { policy: "floods" }));
    await next.acknowledged(10_001);
    const stored = (await rows("select n from /matrix/line where name = 'flood'"))
      .map(({ n }) => Number(n))
      .sort((x, y) => x - y);
    expect(stored).toEqual(Array.from({ length: stored.length }, (_, at) => at));
    expect(await rows("select count from /matrix/system/policygap where source = 'flood-stream'")).toEqual([]);
  });

  test("sequences that fall or repeat end the stream, those that leap are stored, and only what the agent lost is a hole", async () => {
    const falls = await connected("web");
    await falls.send(records(1, ["seq,1"]), records(1, ["seq,2"]));
    expect(await falls.agent.next("refused")).toMatchObject({ code: "invalid", askAgain: false });
    const web = await connected("web");
    await web.send(records(1, ["seq,3"]), records(1_000_000, ["seq,4"]));
    await web.agent.sendPinned(web.streamId, [records(Number.MAX_SAFE_INTEGER, ["seq,5"])], { missing: 7 });
    await web.acknowledged(Number.MAX_SAFE_INTEGER);
    expect((await rows("select n from /matrix/line where name = 'seq'")).map(({ n }) => n).sort()).toEqual([3, 4, 5]);
    expect(await rows(`select count from /matrix/system/policygap where source = '${web.streamId}'`)).toEqual([
      { count: 7 },
    ]);
    await othersAreServed();
  });

  test("facts under ever new names leave room for what people set, and set nothing that leads SSH or looks like a secret", async () => {
    const host = "facts";
    for (let round = 0; round < 6; round++) {
      const agent = new BareAgent(port, await enrolled(host));
      agents.push(agent);
      const many = Array.from({ length: HOST_FACTS_MAX_ENTRIES - 3 }, (_, at) => [`r${round}n${at}`, "v"]);
      const values = {
        ...Object.fromEntries(many),
        address: "10.6.6.6",
        extagent_start: "rm -rf /",
        password: "p",
      } as Record<string, string>;
      await agent.hello({ facts: { host, os: `round ${round}`, arch: "", addresses: [], pid: 1, values } });
      const shown = async () => ((await odp.hosts.get(ADMIN, host)).config.os === `round ${round}` ? true : undefined);
      await eventually("the facts are on record", DEADLINE_MS, shown);
      agent.close();
    }
    const { config } = await odp.hosts.get(ADMIN, host);
    expect(Object.keys(config).length).toBeLessThanOrEqual(HOST_CONFIG_MAX_ENTRIES - HOST_FACTS_MAX_ENTRIES + 3);
    expect(config).not.toMatchObject({ address: "10.6.6.6" });
    expect(Object.keys(config)).not.toEqual(expect.arrayContaining(["extagent_start"]));
    expect(Object.keys(config)).not.toEqual(expect.arrayContaining(["password"]));
    await odp.hosts.save(ADMIN, { host, config: { rack: "7" } });
  });
});
