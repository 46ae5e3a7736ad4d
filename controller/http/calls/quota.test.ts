import { Type } from "typebox";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { heldWork } from "../../../test/helpers/jobs/job-runs.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { Admission } from "./admission.ts";
import { endpoint } from "../interface/endpoint.ts";

describe("a quota of calls", () => {
  const quotas = new Map<string, number>();
  const admission = new Admission({ inFlightMax: 4, waitingMax: 8, quotaOf: (name) => quotas.get(name) ?? Infinity });
  const begun: string[] = [];
  const enter = async (name: string): Promise<() => void> => {
    const leave = await admission.enter(name);
    begun.push(name);
    return leave;
  };

  test("that is lowered lets no call in before enough have left, one that is raised lets those in that wait", async () => {
    quotas.set("a", 3);
    const first = await Promise.all([enter("a"), enter("a"), enter("a")]);
    quotas.set("a", 1);
    const later = [enter("a"), enter("a"), enter("a"), enter("a")];
    await Promise.all(Array.from({ length: 4 }, () => enter("b")));
    for (const leave of first.slice(1)) leave();
    (await enter("c"))();
    expect(begun.filter((name) => name === "a")).toHaveLength(3);
    expect(admission.inFlight().get("a")).toBe(1);
    quotas.set("a", 9);
    first[0]?.();
    const leaves = await Promise.all(later);
    expect(admission.inFlight().get("a"), "no more than all may").toBe(4);
    for (const leave of leaves) {
      leave();
      leave();
    }
    expect(admission.inFlight().get("a")).toBeUndefined();
  });

  test("is kept whatever comes, leaves and does not wait, thousands of times", async () => {
    quotas.set("d", 2);
    let now = 0;
    let most = 0;
    const one = async (at: number): Promise<void> => {
      const gone = new AbortController();
      const entering = Promise.resolve(admission.enter("d", gone));
      if (at % 3 === 0) gone.abort();
      const leave = await entering.catch(() => undefined);
      if (leave === undefined) return;
      most = Math.max(most, (now += 1));
      await new Promise((resolve) => setImmediate(resolve));
      now -= 1;
      leave();
    };
    for (let round = 0; round < 250; round += 1)
      await Promise.all(Array.from({ length: 8 }, (_, at) => one(round * 8 + at)));
    expect([most, now, admission.inFlight().get("d")]).toEqual([2, 0, undefined]);
  });
});

describe("a tenant with a quota of one call", () => {
  let http: TestHttp;
  let held: ReturnType<typeof heldWork<undefined>>;
  beforeEach(async () => {
    held = heldWork(undefined);
    const about = {
      method: "GET",
      permission: "hosts:read",
      summary: "",
      input: Type.Object({}),
      output: Type.Null(),
    } as const;
    http = await openTestHttp({
      callQuotaOf: (tenant) => (tenant === "second" ? 1 : Infinity),
      settings: { callsWaitingMax: 0 },
      endpoints: [
        endpoint({ ...about, path: "/held", handler: async () => (await held.wait(), { message: null }) }),
        endpoint({ ...about, path: "/short", handler: () => Promise.resolve({ message: null }) }),
      ],
    });
  });
  afterEach(() => http[Symbol.asyncDispose]());

  test("is refused one more by its name while others are answered, and answered again after it", async () => {
    const [own, other] = [await http.signIn("admin", "second"), await http.signIn("admin")];
    const first = http.call(own, { url: "/held" });
    await held.asleep;
    expect(await http.call(own, { url: "/short" })).toMatchObject({
      ...{ status: "error", code: "limited" },
      message: expect.stringContaining("config.max_calls of second is 1") as string,
    });
    expect(await http.call(other, { url: "/short" })).toMatchObject({ status: "ok" });
    held.release();
    expect(await first).toMatchObject({ status: "ok" });
    expect(await http.call(own, { url: "/short" })).toMatchObject({ status: "ok" });
  });
});
