import { EventEmitter, once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AGENT_TUNNELS_MAX, TUNNEL_BUFFER_MAX_BYTES, TUNNEL_SILENCE_MAX_MS } from "../../common/limits.ts";
import type { TunnelFrame } from "../../proto/gen/agent/v1/agent.ts";
import { TestClock } from "../../test/helpers/time/runtime.ts";
import { eventually } from "../../test/helpers/programs/programs.ts";
import type { TunnelCall } from "../session/transport.ts";
import { connectedTo } from "./place.ts";
import { Tunnels } from "./tunnels.ts";

/** The controller's end; `reads` false: nothing that is sent ever leaves. */
class Call extends EventEmitter implements TunnelCall {
  readonly frames: NonNullable<TunnelFrame["frame"]>[] = [];
  bytes = 0;
  readonly #reads: boolean;

  constructor(reads = true) {
    super();
    this.#reads = reads;
  }

  write({ frame }: TunnelFrame, left: () => void): void {
    if (frame) this.frames.push(frame);
    if (frame?.$case === "data") this.bytes += frame.value.length;
    this.emit("written");
    if (this.#reads) left();
  }

  end(): void {
    this.emit("ended");
  }

  pause(): void {}
  resume(): void {}

  async first(): Promise<TunnelFrame["frame"]> {
    if (this.frames.length === 0) await once(this, "written");
    return this.frames[0];
  }
}

describe("tunnels of an agent", () => {
  let server: Server;
  let port: number;
  const sockets = new Set<Socket>();
  beforeAll(async () => {
    // The server answers every message with a long one.
    server = createServer((socket) => {
      sockets.add(socket.on("error", () => undefined));
      socket.on("data", () => void socket.write(Buffer.alloc(16 * TUNNEL_BUFFER_MAX_BYTES)));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    ({ port } = server.address() as AddressInfo);
  });
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  it("leads nowhere for an agent that ended before it was asked", async () => {
    const place = { address: "127.0.0.1", port };
    await expect(connectedTo(place, new TestClock(), AbortSignal.abort())).rejects.toMatchObject({ code: "cancelled" });
  });

  function open() {
    const clock = new TestClock();
    const tunnels = new Tunnels({
      clock,
      journal: { highestEpoch: 7 },
      log: () => undefined,
      isOpen: () => true,
    });
    const ask = async (more: { epoch?: number; address?: string; reads?: boolean } = {}) => {
      const { epoch = 7, address = "127.0.0.1", reads } = more;
      const call = new Call(reads);
      tunnels.take({ id: "t", epoch, address, port }, call);
      return { call, opened: await call.first() };
    };
    return { clock, tunnels, ask };
  }

  it("are refused to a session that another one took the place of, and to names of the host itself", async () => {
    const { ask } = open();
    expect((await ask({ epoch: 6 })).opened).toMatchObject({ $case: "opened", value: { id: "t", code: "conflict" } });
    for (const address of ["127.1", "0"])
      expect((await ask({ address })).opened).toMatchObject({ $case: "opened", value: { code: "denied" } });
    expect((await ask({ address: "localhost" })).opened).toMatchObject({ $case: "opened", value: { code: "" } });
  });

  it("are so many at most, and end with the agent", async () => {
    const { ask, tunnels } = open();
    const all = await Promise.all(Array.from({ length: AGENT_TUNNELS_MAX }, () => ask()));
    expect(all.filter(({ opened }) => opened?.$case === "opened" && opened.value.code === "")).toHaveLength(all.length);
    expect((await ask()).opened).toMatchObject({ $case: "opened", value: { code: "limited" } });
    const ends = all.map(({ call }) => once(call, "ended"));
    tunnels.stop();
    await Promise.all(ends);
    for (const { call } of all) expect(call.frames.at(-1)).toMatchObject({ $case: "failed", value: { wayLost: true } });
  });

  it("end when nothing passes for too long", async () => {
    const { clock, ask } = open();
    const { call } = await ask();
    const ended = once(call, "ended");
    clock.advance(TUNNEL_SILENCE_MAX_MS);
    await ended;
    expect(call.frames.at(-1)).toMatchObject({ $case: "failed", value: { message: "nothing passed for too long" } });
  });

  it("read no more from a place than the controller takes", async () => {
    const { ask, tunnels } = open();
    const { call } = await ask({ reads: false });
    call.emit("data", { frame: { $case: "data", value: Buffer.from("go") } });
    await eventually("the buffer is full", 30_000, () => call.bytes >= TUNNEL_BUFFER_MAX_BYTES || undefined);
    // A read that was under way adds one piece of the system's.
    expect(call.bytes).toBeLessThan(2 * TUNNEL_BUFFER_MAX_BYTES);
    tunnels.stop();
  });
});
