import { randomBytes } from "node:crypto";
import { PIN_AHEAD_MAX_US } from "../../common/limits.ts";
import { ulidOf } from "../../common/ids.ts";
import type { Row } from "../../common/value.ts";
import type { Entry, Pin } from "../../proto/gen/agent/v1/agent.ts";
import { describe, expect, test } from "vitest";
import { BareAgent, sha256 } from "../helpers/hosts/hosts.ts";
import {
  ADMIN,
  NEIGHBOUR,
  OWN_RULE,
  FOREIGN_RULE,
  engine,
  odp,
  port,
  agents,
  useHostileAgents,
  policy,
  enrolled,
  connected,
  records,
  rows,
} from "../helpers/hosts/hostile-world.ts";

useHostileAgents();

function run(sequence: number, name: string): Entry {
  const value = {
    policy: name,
    policyRevision: 1,
    scheduledMs: Date.now(),
    state: "ok",
    code: 0,
    message: "",
    startedMs: 1,
    endedMs: 2,
    records: 1,
  };
  return { sequence, timeMs: Date.now(), traceparent: "", body: { $case: "run", value } };
}

function gap(sequence: number, name: string): Entry {
  const value = { policy: name, source: "", reason: "vanished", count: 1, unit: "runs", fromMs: 0, toMs: 0 };
  return { sequence, timeMs: Date.now(), traceparent: "", body: { $case: "gap", value } };
}

function result(sequence: number, commandId: string): Entry {
  return {
    sequence,
    timeMs: Date.now(),
    traceparent: "",
    body: { $case: "result", value: { commandId, state: "ok", code: 0, message: "forged", startedMs: 1, endedMs: 2 } },
  };
}

async function refusals(host: string): Promise<readonly Row[]> {
  return rows(`select name, msg, count, raw from /matrix/consolelog/rule where host = '${host}'`);
}

describe("what an agent may write", () => {
  test("is parsed by rules of policies that were sent to its host, and by no others", async () => {
    const web = await connected("web");
    await web.send(
      records(1, ["mine,1"]),
      records(2, ["stolen,1000000", "more,1"], { rule: FOREIGN_RULE }),
      records(3, ["stolen,2"], { rule: "/matrix/rules/none" }),
      records(4, ["stolen,3"], { rule: "/second/rules/line" }),
      records(5, ["stolen,4"], { rule: "../ledger" }),
      records(6, ["mine,2"], { policy: "ledgers" }),
    );
    await web.acknowledged(6);
    expect(await rows("select name from /matrix/ledger")).toEqual([]);
    expect((await rows("select name, n from /matrix/line where name = 'mine'")).map(({ n }) => n).sort()).toEqual([
      1, 2,
    ]);
    const refused = await refusals("web");
    expect(refused).toContainEqual(
      expect.objectContaining({
        name: FOREIGN_RULE,
        msg: `The rule ${FOREIGN_RULE} belongs to no policy that was sent to web.`,
        count: 2,
        raw: "stolen,1000000",
      }),
    );
    expect(refused.filter(({ msg }) => String(msg).includes("belongs to no policy that was sent to web"))).toHaveLength(
      4,
    );
  });

  test("stays its own after the policy was taken away: an outbox may hold it still", async () => {
    await odp.hosts.save(ADMIN, { host: "former" });
    await odp.policies.save(ADMIN, policy("passing", FOREIGN_RULE, ["former"]));
    const before = await connected("former");
    await before.agent.next("desired");
    before.agent.close();
    await odp.policies.remove(ADMIN, "passing", { force: true });
    const after = await connected("former");
    await after.send(records(1, ["late,7"], { rule: FOREIGN_RULE, policy: "passing" }), run(2, "passing"));
    await after.acknowledged(2);
    expect(await rows("select n from /matrix/ledger where name = 'late'")).toEqual([{ n: 7 }]);
    expect(await refusals("former")).toEqual([]);
  });

  test("is no other's after its host was removed and came again", async () => {
    await odp.hosts.remove(ADMIN, "former");
    const next = await connected("former");
    await next.send(records(1, ["later,8"], { rule: FOREIGN_RULE, policy: "passing" }));
    await next.acknowledged(1);
    expect(await rows("select n from /matrix/ledger where name = 'later'")).toEqual([]);
  });

  test.each<[what: string, lie: (pin: Pin, others: Pin) => Partial<Pin>]>([
    ["a time far ahead", ({ told }) => ({ writeUs: (told?.us ?? 0) + PIN_AHEAD_MAX_US })],
    ["a time before the one it was told", ({ told }) => ({ writeUs: (told?.us ?? 0) - 1 })],
    [
      "a told time of its own making",
      ({ writeUs, told }) => ({ writeUs: writeUs + 1e9, told: { us: writeUs + 1e9, proof: told?.proof ?? "" } }),
    ],
    ["no told time", () => ({ told: undefined })],
    ["a time told to another host", (_, { told, writeUs }) => ({ told, writeUs })],
    [
      "a digest of another rule",
      ({ rules }) => ({ rules: rules.map((rule) => ({ ...rule, digest: "0".repeat(64) })) }),
    ],
    ["an error of its own", ({ rules }) => ({ rules: rules.map((rule) => ({ ...rule, digest: "", error: "x" })) })],
    ["a proof that is none", ({ rules }) => ({ rules: rules.map((rule) => ({ ...rule, proof: "no" })) })],
    ["the rule of another host", (_, { rules }) => ({ rules: rules.map((rule) => ({ ...rule, rule: OWN_RULE })) })],
    ["what another host was told of its rule", (_, { rules }) => ({ rules: [...rules] })],
    [
      "a rule besides that nobody told",
      ({ rules }) => ({ rules: rules.flatMap((rule) => [rule, { ...rule, digest: "1" }]) }),
    ],
    ["no rule", () => ({ rules: [] })],
  ])("is refused with %s, and the agent is to ask again", async (_, lie) => {
    const bank = await connected("bank");
    const theirs = await bank.agent.pin([records(1, [], { rule: FOREIGN_RULE })]);
    const web = await connected("web");
    const entry = records(1, ["lied,1"]);
    const pin = await web.agent.pin([entry]);
    web.sendRaw([entry], { ...pin, ...lie(pin, theirs) });
    expect(await web.agent.next("refused")).toMatchObject({ code: "invalid", askAgain: true });
    expect(await rows("select name from /matrix/line where name = 'lied'")).toEqual([]);
  });

  test("is refused without a pin, and by what a neighbour's host of the same name was told", async () => {
    const web = await connected("web");
    web.sendRaw([records(1, ["bare,1"])]);
    expect(await web.agent.next("refused")).toMatchObject({ askAgain: true });
    const neighbour = new BareAgent(port, await enrolled("web", NEIGHBOUR));
    agents.push(neighbour);
    await neighbour.hello({ streamId: "stream-of-a-neighbour" });
    const pin = await neighbour.pin([records(1, [])]);
    const again = await connected("web");
    again.sendRaw([records(1, ["bare,2"])], pin);
    expect(await again.agent.next("refused")).toMatchObject({ askAgain: true });
    expect(await rows("select name from /matrix/line where name = 'bare'")).toEqual([]);
  });

  test("tells of no runs and gaps of policies it was never sent", async () => {
    const web = await connected("web");
    await web.send(run(1, "lines"), run(2, "ledgers"), gap(3, "ledgers"), gap(4, ""), run(5, "x".repeat(100_000)));
    await web.acknowledged(5);
    expect(await rows("select policy from /matrix/system/policyrun where policy = 'ledgers'")).toEqual([]);
    expect(await rows("select policy from /matrix/system/policygap where policy = 'ledgers'")).toEqual([]);
    expect(
      (await refusals("web")).filter(({ msg }) => msg === "The policy ledgers was never sent to web."),
    ).toHaveLength(2);
  });

  test("bears the time it says, or is refused, and holds nothing up", async () => {
    const web = await connected("web");
    const times = [0, -1, -(2 ** 52), 2 ** 52, Number.MAX_SAFE_INTEGER, 8.64e15 + 1, Date.now() + 1e12];
    await web.send(
      ...times.map((timeMs, at) => records(at + 1, [`time${at},1`], { timeMs })),
      records(times.length + 1, ["intime,1"]),
    );
    await web.acknowledged(times.length + 1);
    expect(await rows("select name from /matrix/line where name = 'intime'")).toHaveLength(1);
  });
});

describe("who an agent is", () => {
  test("no stream of another host, and none of its own under another's name", async () => {
    const bank = await connected("bank", "stream-of-the-bank");
    await bank.send(records(1, ["account,1"], { rule: FOREIGN_RULE, policy: "ledgers" }));
    await bank.acknowledged(1);
    const identity = await enrolled("web");
    const thief = new BareAgent(port, identity);
    agents.push(thief);
    expect(await thief.hello({ streamId: "stream-of-the-bank" })).toMatchObject({ acknowledged: 0 });
    await thief.sendPinned("stream-of-the-bank", [records(1, ["account,0"])]);
    expect(await thief.next("acknowledge")).toMatchObject({ throughSequence: 1 });
    thief.close();
    const liar = new BareAgent(port, identity);
    agents.push(liar);
    await expect(
      liar.hello({ facts: { host: "bank", os: "", arch: "", addresses: [], pid: 1, values: {} } }),
    ).rejects.toThrow(/names the host bank, the certificate web/);
    const web = await connected("web");
    web.agent.send({
      $case: "batch",
      value: { streamId: "stream-of-the-bank", entries: [records(2, ["account,0"], { rule: FOREIGN_RULE })] },
    });
    expect(await web.agent.next("refused")).toMatchObject({ code: "invalid" });
    expect(await rows("select n from /matrix/ledger where name = 'account'")).toEqual([{ n: 1 }]);
  });

  test("the same names in a neighbour's installation are other ones", async () => {
    const neighbour = new BareAgent(port, await enrolled("bank", NEIGHBOUR));
    agents.push(neighbour);
    expect(await neighbour.hello({ streamId: "stream-of-the-bank" })).toMatchObject({ acknowledged: 0 });
    await neighbour.sendPinned("stream-of-the-bank", [records(1, ["account,0"], { rule: FOREIGN_RULE })]);
    expect(await neighbour.next("acknowledge")).toMatchObject({ throughSequence: 1 });
    expect(await rows("select n from /matrix/ledger where name = 'account'")).toEqual([{ n: 1 }]);
  });

  test("results of commands of others, or of none, reach nobody who waits", async () => {
    const bank = await connected("bank");
    const web = await connected("web");
    const outcome = odp.hosts.dispatch(
      ADMIN,
      "bank",
      { kind: "exec", line: "true" },
      { commandId: "for-the-bank", timeoutMs: 60_000 },
    );
    await bank.agent.next("command");
    await web.send(result(1, "for-the-bank"), result(2, "never-given"), result(3, "y".repeat(100_000)));
    web.agent.send({ $case: "command", value: { commandId: "for-the-bank", state: "refused", message: "no" } });
    await web.acknowledged(3);
    await bank.send({
      ...result(1, "for-the-bank"),
      body: {
        $case: "result",
        value: { commandId: "for-the-bank", state: "failed", code: 3, message: "true end", startedMs: 1, endedMs: 2 },
      },
    });
    expect(await outcome).toMatchObject({ host: "bank", state: "failed", code: 3, message: "true end" });
    const told = await rows("select host from /matrix/system/command where command = 'for-the-bank'");
    expect(told).toEqual([{ host: "bank" }]);
    const refused = (await refusals("web")).map(({ msg }) => msg);
    expect(refused).toEqual(
      expect.arrayContaining([
        "No command for-the-bank of web is on record.",
        "No command never-given of web is on record.",
      ]),
    );
    expect(
      await rows(
        "select msg from /matrix/consolelog/rule where host = 'web' and msg = 'The id of a command has at most 512 characters.'",
      ),
    ).toHaveLength(1);
  });

  test("results of commands that look like those of a run or a deployment are taken of none but that host's own", async () => {
    const web = await connected("web");
    const id = ulidOf(Date.now(), randomBytes(10));
    const made = [
      `job/${id}/web/0`,
      `job/${id}/bank/0`,
      `deploy/${id}/${id}`,
      `deploy/${"x".repeat(400)}/1`,
      `job/${"../".repeat(100)}/web/0`,
      "",
    ];
    await web.send(...made.map((commandId, at) => result(at + 1, commandId)));
    await web.acknowledged(made.length);
    expect(await rows("select command from /matrix/system/command where message = 'forged'")).toEqual([]);
  });

  test("content that nothing of its host refers to stays away", async () => {
    const { blobs } = await engine.tenant("matrix");
    await blobs.put([Buffer.from("the bank's depot")], "bank");
    const web = await connected("web");
    await expect(web.agent.fetch(sha256("the bank's depot"))).rejects.toThrow(/Nothing of web refers to this content/);
  });
});
