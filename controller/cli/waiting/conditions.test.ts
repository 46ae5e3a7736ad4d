import { expect, test } from "vitest";
import { OdpError } from "../../../common/client/index.ts";
import { CONDITIONS, type Look } from "./conditions.ts";

type Counts = Readonly<Record<string, number>>;

interface Run {
  readonly state: string;
  readonly hosts?: Counts;
  readonly scripts?: Counts;
}

/** Looks at a run in this state; `undefined`: there is none. */
function runLook(run: Run | undefined, wanted = "ok"): Promise<Look> | undefined {
  const call = () =>
    run === undefined
      ? Promise.reject(new OdpError("not_found", "none"))
      : Promise.resolve({ hosts: {}, scripts: {}, ...run });
  const asking = { client: { call } as never, signal: new AbortController().signal, hosts: [] };
  return CONDITIONS["run"]?.[wanted]?.("r", asking);
}

test("a run has ended when the controller says so of the whole run, and well if all its hosts and scripts did", async () => {
  const going = { isReached: false, text: "r goes on: 1 host waiting, 2 hosts ok, 1 script running" };
  const run = { state: "running", hosts: { waiting: 1, ok: 2 }, scripts: { running: 1 } };
  expect([await runLook(run), await runLook(run, "ended")]).toEqual([going, going]);
  expect(await runLook({ state: "waiting" })).toEqual({ isReached: false, text: "r waits: no host" });
  expect(await runLook(undefined)).toEqual({ isReached: false, text: "there is no run r" });
  expect(await runLook({ state: "ended", hosts: { ok: 2 }, scripts: { ok: 1 } })).toMatchObject({ isReached: true });
  const failures: readonly Omit<Run, "state">[] = [
    { hosts: { ok: 1, failed: 1 } },
    { hosts: { ok: 1 }, scripts: { failed: 1 } },
    {},
  ];
  for (const failed of failures) {
    expect(await runLook({ state: "ended", ...failed })).toMatchObject({ isReached: false, isLost: true });
    expect(await runLook({ state: "ended", ...failed }, "ended")).toMatchObject({ isReached: true, isLost: false });
  }
});

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
  const asking = { client: { call } as never, signal: new AbortController().signal, hosts };
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
