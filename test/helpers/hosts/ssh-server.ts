import { generateKeyPairSync } from "node:crypto";
import { createServer, type Socket } from "node:net";
import { once } from "node:events";
import ssh2 from "ssh2";
import { fingerprintOf } from "../../../controller/areas/hosts/ssh/connection.ts";

/** A server that answers every command in a single TCP packet: its start, its output and its end. */
export async function quickSshServer(code: number) {
  const { hostKey, publicKey } = newHostKey();
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
    fingerprint: fingerprintOf(publicKey),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** By Node's own generator: one of 256 Ed25519 keys of ssh2 1.17 cannot be read (its issue 1513). */
function newHostKey(): { readonly hostKey: string; readonly publicKey: Buffer } {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const hostKey = privateKey.export({ type: "sec1", format: "pem" }).toString();
  const parsed = ssh2.utils.parseKey(hostKey);
  if (parsed instanceof Error) throw parsed;
  return { hostKey, publicKey: parsed.getPublicSSH() };
}
