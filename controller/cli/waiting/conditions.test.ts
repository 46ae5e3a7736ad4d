import { expect, test } from "vitest";
import { CONDITIONS, type Look } from "./conditions.ts";

interface Record {
  readonly host: string;
  readonly action?: string;
  readonly state?: string;
  readonly version?: string;
}

/** Looks at a deployment of the depot `check`, with these records, newest first. */
async function lookAt(
  records: readonly Record[],
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
  const undone: readonly Record[] = [{ host: "web-1", action: "undeploy" }, { host: "web-1" }];
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
  const other: readonly Record[] = [{ host: "a", action: "undeploy", version: "2.0.0" }, { host: "a" }];
  expect(await lookAt(other)).toMatchObject({ isReached: true });
});

test("a host is found although other hosts have thousands of newer deployments", async () => {
  const records = [...Array.from({ length: 2_000 }, () => ({ host: "busy" })), { host: "web-1", state: "failed" }];
  expect(await lookAt(records, { hosts: ["web-1"] })).toMatchObject({ isReached: true });
  expect(await lookAt(records, { hosts: ["web-1"], state: "ok" })).toMatchObject({ isReached: false, isLost: true });
});
