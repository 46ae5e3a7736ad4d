import { spawn } from "node:child_process";
import { once } from "node:events";
import { Installation } from "../../e2e/installation.ts";
import { Calls, succeeding } from "./calls.ts";
import { inTurns, perSecond, type Bench } from "../driver/frame.ts";

const CALLS = 4_000;
const AT_ONCE = 32;

/**
 * An authenticated call that does almost nothing, through the whole program, beside a bare node:http server that
 * answers with the same bytes.
 */
export const httpBench: Bench = {
  name: "http",
  async run() {
    const odp = await Installation.start({});
    const ours = new Calls({ port: odp.port, atOnce: AT_ONCE });
    const path = `/cluster/info?sessionid=${await odp.session()}`;
    const bare = await bareServer((await succeeding(ours.get(path))).text);
    const theirs = new Calls({ port: bare.port, atOnce: AT_ONCE });
    try {
      const measured = await inTurns(
        () => perSecond(CALLS, AT_ONCE, () => succeeding(ours.get(path))),
        () => perSecond(CALLS, AT_ONCE, () => succeeding(theirs.get(path))),
      );
      return [
        {
          name: "envelope round trip, signed in",
          unit: "calls/s",
          ...measured,
          againstName: "bare node:http",
          kind: "ratio",
          goal: 0.4,
        },
      ];
    } finally {
      ours.close();
      theirs.close();
      bare.stop();
      await odp.stop();
    }
  },
};

/** The server runs in a separate process, like the controller. */
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
