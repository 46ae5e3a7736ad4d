import type { PeerCertificate } from "node:tls";
import { expect, test } from "vitest";
import { serverIdentity } from "./server-identity.ts";

function certificateFor(subjectaltname: string): PeerCertificate {
  return { subject: { CN: "odp" }, subjectaltname } as unknown as PeerCertificate;
}

test.each(["10.0.0.7:4433", "[::1]:4433"])(
  "the address %s is no name of a server, but the certificate is for it",
  (at) => {
    const { verify, channel } = serverIdentity(at);
    const name = channel["grpc.ssl_target_name_override"] as string;
    expect(name).toBe("odp.invalid");
    const own = at.startsWith("[") ? "IP Address:0:0:0:0:0:0:0:1" : "IP Address:10.0.0.7";
    expect(verify.checkServerIdentity?.(name, certificateFor(own))).toBeUndefined();
    for (const other of ["IP Address:10.0.0.8", "DNS:10.0.0.7", `DNS:${name}`])
      expect(verify.checkServerIdentity?.(name, certificateFor(other)), other).toBeInstanceOf(Error);
  },
);

test("a name is sent, and the certificate is checked against it as usual", () => {
  expect(serverIdentity("odp.example:4433")).toEqual({ verify: {}, channel: {} });
});
