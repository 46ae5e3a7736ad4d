import { once } from "node:events";
import { Agent, createServer, request, type Server } from "node:http";
import { Installation } from "../e2e/installation.ts";
import { inTurns, perSecond, type Bench } from "./frame.ts";

const CALLS = 4_000;
const AT_ONCE = 32;

/** An authenticated call that does next to nothing, through the whole program, beside a bare node:http server that answers the same bytes. */
export const httpBench: Bench = {
  name: "http",
  async run() {
    const odp = await Installation.start({});
    const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
    const path = `/cluster/info?sessionid=${await odp.session()}`;
    const bare = await bareServer(await get(agent, odp.port, path));
    try {
      const measured = await inTurns(
        () => perSecond(CALLS, AT_ONCE, () => get(agent, odp.port, path)),
        () => perSecond(CALLS, AT_ONCE, () => get(agent, portOf(bare), path)),
      );
      return [{ name: "envelope round trip, signed in", unit: "calls/s", ...measured, againstName: "bare node:http", kind: "ratio", goal: 0.4 }];
    } finally {
      agent.destroy();
      bare.close();
      await odp.stop();
    }
  },
};

async function bareServer(body: string): Promise<Server> {
  const server = createServer((_request, response) => response.setHeader("content-type", "application/json; charset=utf-8").end(body));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address ? address.port : 0;
}

function get(agent: Agent, port: number, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request({ agent, port, path, host: "127.0.0.1" }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => resolve(Buffer.concat(parts).toString()));
    });
    call.on("error", reject);
    call.end();
  });
}
