import { createServer, type Socket } from "node:net";
import { once } from "node:events";
import ssh2 from "ssh2";
import { expect, test } from "vitest";
import { realClock } from "../../../../test/helpers/clock.ts";
import { SshConnection } from "./connection.ts";

/** A server that answers every command at once: that it was begun, its output, its end, all in one packet of TCP. */
async function quickServer(code: number) {
  const { private: hostKey } = ssh2.utils.generateKeyPairSync("ed25519");
  const sockets: Socket[] = [];
  const ssh = new ssh2.Server({ hostKeys: [hostKey] }, (client) => {
    const socket = sockets.at(-1);
    client.on("authentication", (context) => context.accept());
    client.on("session", (acceptSession) => {
      acceptSession().on("exec", (accept) => {
        socket?.cork();
        const stream = accept();
        stream.write("out\n");
        stream.stderr.write("err\n");
        stream.exit(code);
        stream.end();
        setImmediate(() => socket?.uncork());
      });
    });
    client.on("error", () => undefined);
  });
  const server = createServer((socket) => {
    sockets.push(socket);
    ssh.injectSocket(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    port: address.port,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

test("the end of a command that is over at once is its end, not a lost connection", async () => {
  await using server = await quickServer(3);
  const { signal } = new AbortController();
  const to = { address: "127.0.0.1", port: server.port, username: "web", password: "secret" };
  const connection = await SshConnection.connect(to, {
    clock: realClock,
    checkKey: () => Promise.resolve(true),
    signal,
  });
  const output: string[] = [];
  const end = await connection.run("true", {
    signal,
    onOutput: ({ data }) => output.push(Buffer.from(data).toString()),
  });
  connection.close();
  expect(end).toEqual({ code: 3, signal: undefined });
  expect(output.sort()).toEqual(["err\n", "out\n"]);
});
