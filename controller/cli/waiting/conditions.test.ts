import { expect, test } from "vitest";
import { CONDITIONS, type Look } from "./conditions.ts";

interface Deployed {
  readonly host: string;
  readonly action?: string;
  readonly state?: string;
  readonly version?: string;
}

/** Looks at a deployment of the depot `check`, with these records, newest first. */
async function lookAt(
  records: readonly Deployed[],
  { text = "check@1.0.0", hosts = [] as readonly string[], state = "ended" } = {},
): Promise<Look | undefined> {
  const call = (id: string, { body }: { readonly body?: { readonly mql: string; readonly values: string[] } }) => {
    if (id !== "postMxobjectMql") return Promise.resolve({ class: "/acme/system/depot" });
    const [, host] = body?.values ?? [];
    const rows = records.map((row) => ({ action: "deploy", state: "ok", version: "1.0.0", ...row }));
    return Promise.resolve(rows.filter((row) => host === undefined || row.host === host).slice(0, 1_000));
  };
  const asking = { client: { call } as never, signal: new AbortController().signal, hosts, settled: new Map() };
  return CONDITIONS["deployment"]?.[state]?.(text, asking);
}

test("an undeployment is no deployment, and undoes the one before", async () => {
  const undone: readonly Deployed[] = [{ host: "web-1", action: "undeploy" }, { host: "web-1" }];
  for (const state of ["ended", "ok"]) {
    expect(await lookAt(undone, { state })).toEqual({ isReached: false, text: "check@1.0.0 was not deployed yet" });
    expect(await lookAt(undone, { state, hosts: ["web-1"] })).toMatchObject({ isReached: false });
  }
  expect(await lookAt([{ host: "web-1" }, ...undone], { state: "ok" })).toMatchObject({ isReached: true });
});

test("an undeployment that failed, or of another version, leaves a deployment as it is", async () => {
  expect(await lookAt([{ host: "a", action: "undeploy", state: "failed" }, { host: "a" }])).toMatchObject({
    isReached: true,
  });
  const other: readonly Deployed[] = [{ host: "a", action: "undeploy", version: "2.0.0" }, { host: "a" }];
  expect(await lookAt(other)).toMatchObject({ isReached: true });
});

test("a host is found although other hosts have thousands of newer deployments", async () => {
  const records = [...Array.from({ length: 2_000 }, () => ({ host: "busy" })), { host: "web-1", state: "failed" }];
  expect(await lookAt(records, { hosts: ["web-1"] })).toMatchObject({ isReached: true });
  expect(await lookAt(records, { hosts: ["web-1"], state: "ok" })).toMatchObject({ isReached: false, isLost: true });
});

/** Looks at a run until its state is reached or lost; `looks` are the hosts with their states, the last ones stay. */
async function lookAtRun(looks: readonly Readonly<Record<string, string>>[], job: object): Promise<readonly Look[]> {
  let at = 0;
  const call = (id: string): Promise<unknown> => {
    if (id === "getJob") return Promise.resolve([{ class: "/acme/jobs/jobdef" }]);
    if (id === "getJobByPath") return Promise.resolve({ begin: "", end: "", queue: "", groupmode: "", ...job });
    const states = Object.entries(looks[Math.min(at++, looks.length - 1)] ?? {});
    return Promise.resolve(states.map(([host, status]) => ({ host, status, name: "x@y" })));
  };
  const asking = { client: { call } as never, signal: new AbortController().signal, hosts: [], settled: new Map() };
  const seen: Look[] = [];
  while (seen.length < 20 && seen.at(-1)?.isReached !== true && seen.at(-1)?.isLost !== true) {
    const look = await CONDITIONS["run"]?.["ok"]?.("r", asking);
    if (look) seen.push(look);
  }
  return seen;
}

test("a plain run has ended with its hosts", async () => {
  const seen = await lookAtRun(
    [
      { a: "ok", b: "running" },
      { a: "ok", b: "ok" },
    ],
    {},
  );
  expect(seen.map(({ isReached }) => isReached)).toEqual([false, true]);
});

test("a run with scripts has not ended between its script and its hosts", async () => {
  const between = { "-begin": "ok" };
  const looks = [between, between, { ...between, a: "running" }, { ...between, a: "failed" }];
  expect((await lookAtRun(looks, { begin: "x" })).map(({ isLost = false }) => isLost)).toEqual([
    false,
    false,
    false,
    true,
  ]);
  expect((await lookAtRun([between], { begin: "x" })).map(({ isReached }) => isReached)).toEqual([
    ...[false, false, false, false],
    true,
  ]);
});
