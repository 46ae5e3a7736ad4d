import { EventEmitter } from "node:events";
import { pino } from "pino";
import { expect, test } from "vitest";
import { PEER_BACKOFF_MAX_MS, RECENT_ASK_MS } from "../../common/limits.ts";
import type { PeerEvent, PeerRequest } from "../../proto/gen/peer/v1/peer.ts";
import { TestClock, testRuntime } from "../../test/helpers/time/runtime.ts";
import { PeerLink, type PeerClientWire } from "./peer-link.ts";

class Wire extends EventEmitter implements PeerClientWire {
  readonly writableLength = 0;
  readonly destroyed = false;
  readonly written: PeerRequest[] = [];
  write(request: PeerRequest): void {
    this.written.push(request);
  }
  cancel(): void {}
}

test("a controller that is gone for long is told once, and that it is back once", async () => {
  const clock = new TestClock();
  const said: { readonly level: number; readonly msg: string }[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void said.push(JSON.parse(line)) });
  const wires: Wire[] = [];
  let dials = 0;
  let away = true;
  const link = new PeerLink(
    {
      runtime: { ...testRuntime(clock), log },
      certificate: () => Promise.reject(new Error("nothing is dialled by gRPC")),
      authorities: "",
      interests: () => [],
      receive: () => undefined,
      dial: () => {
        dials++;
        if (away) return Promise.reject(new Error("connect ECONNREFUSED"));
        const stream = new Wire();
        wires.push(stream);
        return Promise.resolve({ stream, close: () => undefined });
      },
    },
    { id: "other", addresses: ["10.0.0.2:9"], url: "", version: "test", sinceMs: 0 },
  );
  for (const attempt of [1, 2, 3, 4, 5]) {
    await expect.poll(() => [dials, clock.waiting]).toEqual([attempt, 1]);
    clock.advance(PEER_BACKOFF_MAX_MS);
  }
  expect(said.map(({ level }) => level)).toEqual([40]);
  away = false;
  await expect.poll(() => (clock.advance(PEER_BACKOFF_MAX_MS), wires.length)).toBe(1);
  wires[0]?.emit("data", { event: { $case: "beat", value: {} } } satisfies PeerEvent);
  expect(said.map(({ level }) => level)).toEqual([40, 30]);
  wires[0]?.emit("end");
  await expect.poll(() => said.map(({ level }) => level)).toEqual([40, 30, 40]);
  link.close();
});

test("what another controller has of a policy is waited for until it answers, is over, or takes too long", async () => {
  const clock = new TestClock();
  const wire = new Wire();
  const link = new PeerLink(
    {
      runtime: testRuntime(clock),
      certificate: () => Promise.reject(new Error("nothing is dialled by gRPC")),
      authorities: "",
      interests: () => [],
      receive: () => undefined,
      dial: () => Promise.resolve({ stream: wire, close: () => undefined }),
    },
    { id: "other", addresses: ["10.0.0.2:9"], url: "", version: "test", sinceMs: 0 },
  );
  expect(await link.recent("matrix", "p")).toBeUndefined();
  await expect.poll(() => wire.written.length).toBe(1);
  wire.emit("data", { event: { $case: "beat", value: {} } } satisfies PeerEvent);
  const answer = { classes: ["/m/line"], records: [], leftOut: 1 };
  const answered = link.recent("matrix", "p");
  const { request } = wire.written.at(-1) ?? {};
  expect(request).toMatchObject({ $case: "recent", value: { tenant: "matrix", policy: "p" } });
  const call = request?.$case === "recent" ? request.value.call : 0;
  wire.emit("data", { event: { $case: "recent", value: { call, ...answer } } } satisfies PeerEvent);
  expect(await answered).toMatchObject(answer);
  const silent = link.recent("matrix", "p");
  clock.advance(RECENT_ASK_MS);
  expect(await silent).toBeUndefined();
  const cut = link.recent("matrix", "p");
  wire.emit("end");
  expect(await cut).toBeUndefined();
  link.close();
});
