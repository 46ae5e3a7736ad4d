import { credentials, Server, ServerCredentials } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PeerLinkClient, PeerLinkService } from "../../proto/gen/peer/v1/peer.ts";
import { realClock } from "../../test/helpers/time/clock.ts";
import { calledTunnel } from "./called-tunnel.ts";

/** A controller of a version before tunnels between controllers. */
const before = new Server();
let client: PeerLinkClient;
beforeAll(async () => {
  const { link } = PeerLinkService;
  before.addService({ link }, { link: () => undefined });
  const port = await new Promise<number>((resolve, reject) => {
    before.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  client = new PeerLinkClient(`127.0.0.1:${port}`, credentials.createInsecure());
});
afterAll(() => {
  client.close();
  before.forceShutdown();
});

test("a controller that knows no tunnels is told as that at once", async () => {
  const place = { tenant: "matrix", host: "gate", group: "dbs", address: "10.0.0.5", port: 22 };
  const opening = calledTunnel(client.tunnel(), place, { clock: realClock, signal: new AbortController().signal });
  await expect(opening).rejects.toMatchObject({
    code: "unsupported",
    message: "The controller that its agent is connected to is too old to lead anywhere.",
  });
});
