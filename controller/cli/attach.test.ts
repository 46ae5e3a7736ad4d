import { expect, test } from "vitest";
import { OdpError } from "../../common/client/index.ts";
import { attach, type AttachOptions } from "./attach.ts";

type Rows = readonly { readonly host: string; readonly due?: number }[];

interface Scene {
  /** Rows of the run at each look; the last ones stay. */
  readonly looks: readonly Rows[];
  /** The job; absent: it was removed. */
  readonly job?: object;
  readonly isKnown?: boolean;
}

const PLAIN = { begin: "", end: "", queue: "", groupmode: "" };

/** Attaches to a run whose hosts each write a line and end well. */
async function attached({ looks, job, isKnown = false }: Scene) {
  const told = { out: "", err: "", looks: 0 };
  const code = await attach({
    client: {
      call: () => (job === undefined ? Promise.reject(new OdpError("not_found", "gone")) : Promise.resolve(job)),
      async *pages() {
        const rows = looks[Math.min(told.looks++, looks.length - 1)] ?? [];
        yield await Promise.resolve({ message: rows.map((row) => ({ name: "x@y", ...row })) });
      },
      async *events(_id: string, { path }: { readonly path: { readonly host: string } }) {
        yield { data: { from: 0, to: 3, data: Buffer.from("out").toString("base64") } };
        yield await Promise.resolve({ data: { end: { state: "ok", code: 0, message: path.host } } });
      },
    } as never,
    clock: {
      nowMs: () => 0,
      monotonicMs: () => 0,
      after: (_, callback) => (queueMicrotask(callback), () => undefined),
    },
    ...{ runId: "r", runClass: "/x/jobrun", signal: new AbortController().signal, isKnown },
    write: (stream, data) => (told[stream === "stdout" ? "out" : "err"] += Buffer.from(data).toString()),
  } satisfies AttachOptions);
  return { code, ...told };
}

test("a plain run is over with its last host, without another look", async () => {
  const run = await attached({ looks: [[{ host: "a" }, { host: "b" }]], job: PLAIN });
  expect(run).toEqual({
    code: 0,
    looks: 1,
    out: "a: out\nb: out\n",
    err: "odp: a: ok\nodp: b: ok\nodp: 2 hosts: 2 ok\n",
  });
});

test("a run with scripts is followed on the hosts and scripts that come later; only hosts are counted", async () => {
  const looks = [[{ host: "-begin" }], [{ host: "-begin" }], [{ host: "-begin" }, { host: "a" }], [{ host: "-end" }]];
  const run = await attached({ looks, job: { ...PLAIN, begin: "x" } });
  expect(run.out).toBe("-begin: out\na: out\n-end: out\n");
  expect(run.err).toBe("odp: -begin: ok\nodp: a: ok\nodp: -end: ok\nodp: 1 host: 1 ok\n");
});

test("so is a run of a schedule, of a queue, of one host of several, or of a job that was removed", async () => {
  const looks = [[{ host: "a" }], [{ host: "a" }, { host: "b" }]];
  for (const job of [{ ...PLAIN, queue: "q" }, { ...PLAIN, groupmode: "one" }, undefined])
    expect((await attached({ looks, ...(job && { job }) })).out).toBe("a: out\nb: out\n");
  const due = looks.map((rows) => rows.map((row) => ({ ...row, due: 1 })));
  expect((await attached({ looks: due, job: PLAIN })).out).toBe("a: out\nb: out\n");
});

test("a run that is known to exist is waited for; one that is not there is none", async () => {
  const looks = [[], [], [], [], [], [], [{ host: "a" }]];
  expect(await attached({ looks, job: PLAIN, isKnown: true })).toMatchObject({ code: 0, out: "a: out\n" });
  expect(await attached({ looks, job: PLAIN })).toMatchObject({ code: undefined, looks: 1 });
});
