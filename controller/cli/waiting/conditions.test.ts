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
