import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createServer as createSecureServer, type Server } from "node:tls";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { enrol } from "./enrol.ts";

let folder: string;
const servers: (Server | HttpServer)[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-enrol-"));
});
afterEach(async () => {
  for (const server of servers.splice(0)) server.close();
  await rm(folder, { recursive: true, force: true });
});

async function portOf(server: Server | HttpServer): Promise<number> {
  servers.push(server);
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return (server.address() as AddressInfo).port;
}

const joinAt = (controller: string) =>
  enrol({ controller, token: "odp1.a.b", name: "web-1", isNamed: true, pendingPath: join(folder, "pending.json") });

describe("an agent that is pointed at a wrong port says so, with the port", () => {
  it("when TLS is spoken there, as on the agent port", async () => {
    const controller = `http://127.0.0.1:${await portOf(createSecureServer({}))}`;
    await expect(joinAt(controller)).rejects.toThrow(`${controller} cannot be reached: `);
    await expect(joinAt(controller)).rejects.toThrow(/may not speak HTTP\. .* HTTP port, 8080 by default/);
  });

  it("when HTTPS is asked for and plain HTTP is spoken there", async () => {
    const port = await portOf(createServer((_request, response) => response.end()));
    await expect(joinAt(`https://127.0.0.1:${port}`)).rejects.toThrow(/may not speak HTTPS\. .* HTTP port/);
  });

  it("when another program answers", async () => {
    const controller = `http://127.0.0.1:${await portOf(createServer((_request, response) => response.writeHead(404).end("Not here")))}`;
    await expect(joinAt(controller)).rejects.toThrow(`${controller} answers HTTP 404, but not as a controller does. `);
  });
});
