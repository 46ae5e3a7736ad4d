import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, type Server, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TestAuthority } from "../../../../test/helpers/hosts/test-authority.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import type { StoreAccess } from "../../access.ts";
import { newClient } from "./cassandra.ts";

// Opcodes of the native protocol for signing in.
const [ERROR, STARTUP, AUTHENTICATE, OPTIONS, SUPPORTED, AUTH_RESPONSE] = [0x00, 0x01, 0x03, 0x05, 0x06, 0x0f];
const HEADER_BYTES = 9;
const BAD_CREDENTIALS = 0x0100;
const PASSWORD_AUTHENTICATOR = "org.apache.cassandra.auth.PasswordAuthenticator";

let server: Server;
let authority: TestAuthority;
let other: TestAuthority;
let contactPoint: string;
/** The credentials that clients sent. */
const heard: string[] = [];
beforeAll(async () => {
  [authority, other] = [await TestAuthority.make(), await TestAuthority.make()];
  const { cert, key } = await authority.issue("server");
  server = createServer({ cert, key, ca: authority.ca, requestCert: true, rejectUnauthorized: true }, answer);
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  contactPoint = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

/** Answers like a Cassandra node that requires passwords, and always refuses. */
function answer(socket: TLSSocket): void {
  let bytes = Buffer.alloc(0);
  socket.on("error", () => undefined);
  socket.on("data", (part: Buffer) => {
    bytes = Buffer.concat([bytes, part]);
    while (bytes.length >= HEADER_BYTES && bytes.length >= HEADER_BYTES + bytes.readUInt32BE(5)) {
      const end = HEADER_BYTES + bytes.readUInt32BE(5);
      const [opcode, body] = [bytes[4], bytes.subarray(HEADER_BYTES, end)];
      const reply = (kind: number, content: Buffer) => socket.write(frame(bytes, kind, content));
      if (opcode === OPTIONS) reply(SUPPORTED, Buffer.from([0, 0]));
      if (opcode === STARTUP) reply(AUTHENTICATE, text(PASSWORD_AUTHENTICATOR));
      if (opcode === AUTH_RESPONSE) {
        heard.push(body.subarray(4).toString("utf8"));
        const code = Buffer.alloc(4);
        code.writeInt32BE(BAD_CREDENTIALS);
        reply(ERROR, Buffer.concat([code, text("refused by the test")]));
      }
      bytes = bytes.subarray(end);
    }
  });
}

function frame(request: Buffer, opcode: number, content: Buffer): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header[0] = 0x80 | (request[0] ?? 0);
  request.copy(header, 2, 2, 4);
  header[4] = opcode;
  header.writeUInt32BE(content.length, 5);
  return Buffer.concat([header, content]);
}

function text(value: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(value.length);
  return Buffer.concat([length, Buffer.from(value)]);
}

/** The reason why the driver was refused. */
async function refusal(access: StoreAccess): Promise<string> {
  const client = newClient({ contactPoints: [contactPoint], datacenter: "d", runtime: testRuntime(), access });
  client.on("log", () => undefined);
  const error = await client.connect().then(
    () => new Error("in"),
    (failure: unknown) => failure as Error & { readonly innerErrors?: Record<string, Error> },
  );
  await client.shutdown();
  return [error.message, ...Object.values("innerErrors" in error ? (error.innerErrors ?? {}) : {})].join(" ");
}

test("Cassandra is shown the certificate, and told user and password, by TLS alone", async () => {
  const tls = { ca: authority.ca, client: await authority.issue("client") };
  expect(await refusal({ tls, account: { user: "odp", password: "s3cret of cassandra" } })).toContain(
    "refused by the test",
  );
  expect(heard).toContain("\0odp\0s3cret of cassandra");
});

test("a Cassandra whose certificate is of another authority is told nothing", async () => {
  heard.length = 0;
  const tls = { ca: other.ca, client: await authority.issue("client") };
  expect(await refusal({ tls, account: { user: "odp", password: "p" } })).toMatch(/certificate|signature|authority/i);
  expect(heard).toEqual([]);
});

test("a certificate that Cassandra does not know gets in nowhere", async () => {
  heard.length = 0;
  const tls = { ca: authority.ca, client: await other.issue("client") };
  expect(await refusal({ tls, account: { user: "odp", password: "p" } })).not.toContain("refused by the test");
  expect(heard).toEqual([]);
});
