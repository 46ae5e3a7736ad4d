import { spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
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
        () => perSecond(CALLS, AT_ONCE, () => get(agent, bare.port, path)),
      );
      return [{ name: "envelope round trip, signed in", unit: "calls/s", ...measured, againstName: "bare node:http", kind: "ratio", goal: 0.4 }];
    } finally {
      agent.destroy();
      bare.stop();
      await odp.stop();
    }
  },
};

/** In a process of its own, as the controller is. */
const BARE = `
const body = process.argv[1];
const server = require("node:http").createServer((request, response) => response.setHeader("content-type", "application/json; charset=utf-8").end(body));
server.listen(0, "127.0.0.1", () => process.stdout.write(String(server.address().port)));
`;

async function bareServer(body: string): Promise<{ readonly port: number; stop(): void }> {
  const child = spawn(process.execPath, ["-e", BARE, body], { stdio: ["ignore", "pipe", "inherit"] });
  const [port] = (await once(child.stdout, "data")) as [Buffer];
  return { port: Number(port.toString()), stop: () => void child.kill() };
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
