import { expect, test } from "vitest";
import { CONDITIONS, type Look } from "./conditions.ts";

type Rows = readonly Readonly<Record<string, unknown>>[];

const PLAIN = { fullname: "x@y", class: "/x/jobs/jobdef", begin: "", end: "", queue: "", groupmode: "" };

/** Looks at a run with these rows, of the job. */
function runLook(rows: Rows, job: object = PLAIN, state = "ok"): Promise<Look> | undefined {
  const call = (id: string) =>
    Promise.resolve(
      id === "getJob" ? [{ ...PLAIN, fullname: "a@b" }, job] : rows.map((row) => ({ name: "x@y", ...row })),
    );
  const asking = { client: { call } as never, signal: new AbortController().signal, hosts: [] };
  return CONDITIONS["run"]?.[state]?.("r", asking);
}

test("a plain run is over with its hosts", async () => {
  expect(await runLook([{ host: "a", status: "running" }])).toMatchObject({ isReached: false });
  expect(await runLook([{ host: "a", status: "ok" }])).toMatchObject({ isReached: true, isProvisional: false });
  expect(await runLook([{ host: "a", status: "failed" }])).toMatchObject({ isReached: false, isLost: true });
  expect(await runLook([])).toMatchObject({ isReached: false, text: "there is no run r" });
});

test("a run that may begin on further hosts is over for now only, and not before its first host", async () => {
  const scripted = { ...PLAIN, begin: "x" };
  expect(await runLook([{ host: "-begin", status: "ok" }], scripted)).toMatchObject({ isReached: false });
  expect(await runLook([{ host: "-begin", status: "failed" }], scripted)).toMatchObject({ isLost: true });
  const rows = [{ host: "a", status: "ok" }];
  for (const job of [
    scripted,
    { ...PLAIN, queue: "q" },
    { ...PLAIN, groupmode: "one" },
    { ...PLAIN, fullname: "gone@y" },
  ])
    expect(await runLook(rows, job)).toMatchObject({ isReached: true, isProvisional: true });
  expect(await runLook([{ host: "a", status: "ok", due: 1 }])).toMatchObject({ isProvisional: true });
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
