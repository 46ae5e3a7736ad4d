import { expect, test } from "vitest";
import { OdpError } from "../../common/client/index.ts";
import { attach, type AttachOptions } from "./attach.ts";

/** State of the run, and the hosts that have rows. */
type Seen = readonly [state: string | undefined, ...hosts: string[]];

/** Attaches to a run as it is seen at each look; the last one stays. Its hosts each write a line and end well. */
async function attached(...looks: readonly Seen[]) {
  const told = { out: "", err: "", looks: 0 };
  let [state, ...hosts]: Seen = [undefined];
  const code = await attach({
    client: {
      call: () => {
        [state, ...hosts] = looks[Math.min(told.looks++, looks.length - 1)] ?? [undefined];
        return state === undefined ? Promise.reject(new OdpError("not_found", "gone")) : Promise.resolve({ state });
      },
      async *pages() {
        yield await Promise.resolve({ message: hosts.map((host) => ({ host })) });
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
    ...{ runId: "r", runClass: "/x/jobrun", signal: new AbortController().signal },
    write: (stream, data) => (told[stream === "stdout" ? "out" : "err"] += Buffer.from(data).toString()),
  } satisfies AttachOptions);
  return { code, ...told };
}

test("a run that has ended is shown, and is not looked at again", async () => {
  expect(await attached(["ended", "a", "b"])).toEqual({
    code: 0,
    looks: 1,
    out: "a: out\nb: out\n",
    err: "odp: a: ok\nodp: b: ok\nodp: 2 hosts: 2 ok\n",
  });
});

test("a run is followed on the hosts and scripts that come later, however long that takes; only hosts are counted", async () => {
  const pause: readonly Seen[] = Array.from({ length: 20 }, () => ["running", "-begin"]);
  const run = await attached(["waiting"], ...pause, ["running", "-begin", "a"], ["ended", "-begin", "-end", "a"]);
  expect(run.out).toBe("-begin: out\na: out\n-end: out\n");
  expect(run.err).toBe("odp: -begin: ok\nodp: a: ok\nodp: -end: ok\nodp: 1 host: 1 ok\n");
});

test("there is no run that the controller does not know", async () => {
  expect(await attached([undefined])).toMatchObject({ code: undefined, looks: 1 });
});
