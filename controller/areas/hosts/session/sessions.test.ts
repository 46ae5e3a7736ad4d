import { describe, expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import {
  AGENT_HELLOS_PER_MINUTE,
  AGENT_RENEW_MIN_INTERVAL_MS,
  DESIRED_RECHECK_MS,
  HOST_FACTS_MIN_INTERVAL_MS,
  HOST_STATES_MIN_INTERVAL_MS,
  SESSION_AGENT_SILENCE_MAX_MS,
  SESSION_HEARTBEAT_MS,
} from "../../../../common/limits.ts";
import type { AgentFrame } from "../../../../proto/gen/agent/v1/agent.ts";
import {
  gate,
  heard,
  HELLO,
  identityOf,
  NO_DEPOT,
  SessionWorld,
  settled,
  Wire,
} from "../../../../test/helpers/hosts/session-world.ts";
import type { KvStore } from "../../../store/kv.ts";

describe("a hello", () => {
  test.each([
    ["another protocol", { protocol: 2 }, "unsupported"],
    ["no stream", { streamId: "" }, "invalid"],
    ["another host", { facts: { host: "else", os: "", arch: "", addresses: [], pid: 1, values: {} } }, "denied"],
  ])("with %s is refused, and leaves nothing behind", async (_what, hello, code) => {
    const world = new SessionWorld();
    await using controller = await world.controller();
    await expect(controller.come("web", hello)).rejects.toMatchObject({ code });
    expect(controller.sessions.count).toBe(0);
    expect(await controller.presence.isOnline("matrix", "web")).toBe(false);
  });

  test("opens a session, also without facts: welcome first, then what the host is to do", async () => {
    const world = new SessionWorld();
    await using controller = await world.controller();
    const { session, wire } = await controller.come("web");
    expect(wire.frames.map(({ $case }) => $case)).toEqual(["welcome", "desired"]);
    expect(wire.of("welcome")[0]).toMatchObject({ epoch: session.epoch, controllers: ["one:1"] });
    expect(wire.refused).toBeUndefined();
  });

  test("comes so often a minute of one host and not oftener; others, and the next minute, are free", async () => {
    const world = new SessionWorld();
    await using controller = await world.controller();
    for (let count = 0; count < AGENT_HELLOS_PER_MINUTE; count++) await (await controller.come("loop")).session.ended();
    await expect(controller.come("loop")).rejects.toMatchObject({ code: "limited" });
    await controller.come("calm");
    await expect(controller.come("loop")).rejects.toMatchObject({ code: "limited" });
    world.clock.advance(60_000);
    await controller.come("loop");
  });

  test("of a host that is removed meanwhile leaves no session and no entry", async () => {
    const world = new SessionWorld();
    let asked = 0;
    const admit = (): Promise<void> => {
      asked += 1;
      return asked === 1 ? Promise.resolve() : Promise.reject(new AppError("denied", "removed"));
    };
    await using controller = await world.controller("one", {}, { admit });
    await expect(controller.come("gone")).rejects.toMatchObject({ code: "denied" });
    expect(controller.sessions.count).toBe(0);
    expect(await (await world.kv()).get("sessions/matrix/gone")).toBeUndefined();
  });
});

describe("one session per host", () => {
  test("a newer one ends the older one, here and on another controller", async () => {
    const world = new SessionWorld();
    await using one = await world.controller("one");
    await using two = await world.controller("two");
    const first = await one.come("web");
    const second = await one.come("web");
    expect(first.wire.refused).toMatchObject({ code: "conflict" });
    expect(second.wire.refused).toBeUndefined();
    await first.session.ended();
    const third = await two.come("web");
    expect(second.wire.refused).toMatchObject({ code: "conflict" });
    await second.session.ended();
    await settled();
    expect(third.wire.refused).toBeUndefined();
    for (const { presence } of [one, two])
      expect(await presence.holderOf("matrix", "web")).toEqual({ epoch: third.session.epoch, controller: "two" });
  });

  test.each([
    ["is written", false],
    ["is refused", true],
  ])("a host whose agent comes from another controller is online until its new session %s", async (_what, fails) => {
    const world = new SessionWorld();
    const [asked, answer] = [gate(), gate()];
    const inner = await world.kv();
    const txn: KvStore["txn"] = async (request) => {
      asked.open();
      await answer.closed;
      if (fails) throw new AppError("unavailable", "no answer");
      return inner.txn(request);
    };
    await using one = await world.controller("one");
    await using two = await world.controller("two", { txn });
    const former = await one.come("web");
    const coming = two.come("web");
    coming.catch(() => undefined);
    await asked.closed;
    expect(await two.presence.isOnline("matrix", "web")).toBe(true);
    answer.open();
    if (fails) await expect(coming).rejects.toMatchObject({ code: "unavailable" });
    else await coming;
    await settled();
    expect(former.wire.refused === undefined).toBe(fails);
    if (!fails) await former.session.ended();
    expect(await one.presence.holderOf("matrix", "web")).toMatchObject({ controller: fails ? "one" : "two" });
  });

  test("of two that register at once the later one stays, though the former hears of its place last", async () => {
    const world = new SessionWorld();
    const answer = gate();
    let writes = 0;
    const inner = await world.kv();
    const txn: KvStore["txn"] = async (request) => {
      const slow = ++writes === 1;
      const written = await inner.txn(request);
      if (slow) await answer.closed;
      return written;
    };
    await using controller = await world.controller("one", { txn });
    const former = new Wire();
    const opening = controller.sessions.open(identityOf("web"), HELLO, former);
    await settled();
    const later = await controller.come("web");
    answer.open();
    const { epoch } = await opening;
    expect(epoch).toBeLessThan(later.session.epoch);
    expect(former.refused).toMatchObject({ code: "conflict" });
    expect(later.wire.refused).toBeUndefined();
    expect(controller.sessions.live("matrix", "web")?.epoch).toBe(later.session.epoch);
  });

  test.each([
    ["was written", true],
    ["was not written", false],
  ])("an entry whose outcome is unknown and that %s is one session: nobody sees it end", async (_what, isWritten) => {
    const world = new SessionWorld();
    const inner = await world.kv();
    let writes = 0;
    const txn: KvStore["txn"] = async (request) => {
      if (++writes > 1) return inner.txn(request);
      if (isWritten) await inner.txn(request);
      throw new AppError("unknown_outcome", "no answer");
    };
    await using watching = await world.controller("two");
    await using controller = await world.controller("one", { txn });
    const told: boolean[] = [];
    controller.presence.onChange(({ online }) => told.push(online));
    const { session, wire } = await controller.come("web");
    await settled();
    expect(told).toEqual([true]);
    expect(wire.refused).toBeUndefined();
    expect((await watching.presence.holderOf("matrix", "web"))?.epoch).toBe(session.epoch);
  });

  test("what is told late of an older session does not touch the present one", async () => {
    const world = new SessionWorld();
    const kv = await world.kv();
    const late = gate();
    async function* watch(...call: Parameters<KvStore["watch"]>): ReturnType<KvStore["watch"]> {
      await late.closed;
      yield* kv.watch(...call);
    }
    await using other = await world.controller("two");
    await using controller = await world.controller("one", { watch });
    const told: string[] = [];
    controller.presence.onChange(({ host, online }) => told.push(`${host} ${online ? "online" : "offline"}`));
    await controller.come("web");
    // The session moves to another controller and back before this controller hears of either.
    await other.come("web");
    const present = await controller.come("web");
    late.open();
    await settled();
    expect(told).toEqual(["web online"]);
    expect(await controller.presence.holderOf("matrix", "web")).toEqual({
      epoch: present.session.epoch,
      controller: "one",
    });
    expect(present.wire.refused).toBeUndefined();
  });

  test("an end that the store tells is one for all: of one session, of all of a lease", async () => {
    const world = new SessionWorld();
    await using one = await world.controller("one");
    await using two = await world.controller("two");
    const { wire } = await one.come("web");
    await one.come("db");
    expect(await two.presence.isOnline("matrix", "web")).toBe(true);
    await two.sessions.drop("matrix", "web", "for a test");
    await settled();
    expect(wire.refused).toMatchObject({ code: "conflict" });
    expect(await two.presence.isOnline("matrix", "web")).toBe(false);
    expect(await two.presence.isOnline("matrix", "db")).toBe(true);
    await one.sessions.close();
    await settled();
    expect(await two.presence.isOnline("matrix", "db")).toBe(false);
  });
});

describe("a session in the course of time", () => {
  test("lives as long as its agent is heard, which hears of the controller meanwhile", async () => {
    const world = new SessionWorld();
    await using controller = await world.controller();
    const { session, wire } = await controller.come("web");
    await world.pass(4 * SESSION_AGENT_SILENCE_MAX_MS, () => session.receive(heard()));
    expect(wire.refused).toBeUndefined();
    const before = wire.of("heartbeat").length;
    await world.pass(4 * SESSION_HEARTBEAT_MS);
    expect(wire.of("heartbeat")).toHaveLength(before + 4);
    await world.pass(SESSION_AGENT_SILENCE_MAX_MS);
    expect(wire.refused).toMatchObject({ code: "deadline" });
  });

  test("reads the desired state again now and then, and sends it when another controller changed it", async () => {
    const world = new SessionWorld();
    await using controller = await world.controller();
    const { session, wire } = await controller.come("web");
    const pass = (ms: number): Promise<void> => world.pass(ms, () => session.receive(heard()));
    await pass(DESIRED_RECHECK_MS / 2);
    expect(controller.reads).toBe(1);
    await pass(DESIRED_RECHECK_MS);
    expect(controller.reads).toBe(2);
    expect(wire.of("desired")).toHaveLength(1);
    controller.desired = { revision: 2, policies: [NO_DEPOT] };
    await pass(DESIRED_RECHECK_MS);
    expect(wire.of("desired").map(({ revision }) => revision)).toEqual([1, 2]);
  });

  test("sends the same desired state again to who asks for it", async () => {
    const world = new SessionWorld();
    await using controller = await world.controller();
    const { wire } = await controller.come("web");
    await controller.sessions.live("matrix", "web")?.refresh();
    expect(wire.of("desired").map(({ revision }) => revision)).toEqual([1, 1]);
  });

  test("refers to the contents of what its host is to have, and to those of nothing else", async () => {
    const world = new SessionWorld();
    await using controller = await world.controller();
    const file = { path: "run.sh", digest: "d1", size: 1, executable: true };
    const depot = { name: "d", version: "1.0.0", files: [file] };
    controller.desired = { revision: 1, policies: [NO_DEPOT, { ...NO_DEPOT, name: "q", depot }] };
    await controller.come("web");
    const live = controller.sessions.live("matrix", "web");
    expect([live?.refersTo("d1"), live?.refersTo("d2")]).toEqual([true, false]);
    controller.desired = { revision: 2, policies: [NO_DEPOT] };
    await live?.refresh();
    expect(live?.refersTo("d1")).toBe(false);
  });

  test("renews a certificate, and not again at once", async () => {
    const world = new SessionWorld();
    await using controller = await world.controller();
    const { session, wire } = await controller.come("web");
    const renew: AgentFrame = { frame: { $case: "renew", value: { csr: Buffer.from("csr") } } };
    await session.receive(renew);
    await expect(session.receive(renew)).rejects.toMatchObject({ code: "limited" });
    world.clock.advance(AGENT_RENEW_MIN_INTERVAL_MS);
    await session.receive(renew);
    expect(wire.of("renewed").map(({ certificate }) => certificate.toString())).toEqual(["new", "new"]);
  });
});

describe("facts", () => {
  test("are written at once, then the latest of them now and then", async () => {
    const world = new SessionWorld();
    await using controller = await world.controller();
    const { session } = await controller.come("web");
    await session.receive(heard());
    await session.receive(heard({ cpu: "1" }));
    await session.receive(heard({ cpu: "2", disk: "7" }));
    expect(controller.facts).toEqual([{ cpu: "1" }]);
    world.clock.advance(HOST_FACTS_MIN_INTERVAL_MS - SESSION_AGENT_SILENCE_MAX_MS);
    await session.receive(heard({ cpu: "3" }));
    expect(controller.facts).toHaveLength(1);
    world.clock.advance(SESSION_AGENT_SILENCE_MAX_MS);
    await session.receive(heard());
    expect(controller.facts).toEqual([{ cpu: "1" }, { cpu: "3", disk: "7" }]);
  });

  test("that are the states of policies are written soon, and only those told last", async () => {
    const world = new SessionWorld();
    await using controller = await world.controller();
    const { session } = await controller.come("web");
    await session.receive(heard({ cpu: "1", "policy/": "", "policy/a": "running" }));
    await session.receive(heard({ "policy/": "", "policy/a": "running", "policy/b": "failed" }));
    await session.receive(heard({ "policy/": "", "policy/c": "running" }));
    expect(controller.facts).toHaveLength(1);
    world.clock.advance(HOST_STATES_MIN_INTERVAL_MS);
    await session.receive(heard({ cpu: "2" }));
    expect(controller.facts.slice(1)).toEqual([{ cpu: "2", "policy/": "", "policy/c": "running" }]);
    world.clock.advance(HOST_STATES_MIN_INTERVAL_MS);
    await session.receive(heard({ "policy/": "", "policy/c": "running" }));
    expect(controller.facts).toHaveLength(2);
  });

  test("that are the usage of processes wait for the next write, and only those told last are written", async () => {
    const world = new SessionWorld();
    await using controller = await world.controller();
    const { session } = await controller.come("web");
    const states = { "policy/": "1", "policy/a": "running" };
    await session.receive(heard({ ...states, "usage/": "1", "usage/policy/a": "1" }));
    world.clock.advance(HOST_STATES_MIN_INTERVAL_MS);
    await session.receive(heard({ ...states, "usage/": "1", "usage/policy/a": "2" }));
    await session.receive(heard({ ...states, "usage/": "1", "usage/extagent": "3" }));
    expect(controller.facts).toHaveLength(1);
    const waited = { "policy/": "1", "policy/b": "running" };
    await session.receive(heard(waited));
    expect(controller.facts.slice(1)).toEqual([{ ...waited, "usage/": "1", "usage/extagent": "3" }]);
  });
});
