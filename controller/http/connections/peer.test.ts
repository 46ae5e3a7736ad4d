import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { Peers } from "./peer.ts";

const peers = new Peers(["10.0.0.0/8", "2001:db8::1"]);
const of = (remoteAddress: string, headers: IncomingHttpHeaders) =>
  peers.of({ socket: { remoteAddress } as Socket, headers });

test("what a stranger says about where a call came from counts for nothing", () => {
  const headers = {
    host: "odp:8080",
    "x-forwarded-for": "192.0.2.1",
    "x-forwarded-host": "evil.example",
    "x-forwarded-proto": "https",
  };
  expect(of("203.0.113.9", headers)).toEqual({
    remote: "203.0.113.9",
    host: "odp:8080",
    protocol: "http",
    isForwardedByOthers: true,
  });
});

test("behind a trusted proxy the client is the nearest address that is no trusted proxy", () => {
  const forwarded = (text: string) => of("10.0.0.1", { host: "inner", "x-forwarded-for": text }).remote;
  expect(forwarded("192.0.2.1")).toBe("192.0.2.1");
  expect(forwarded("192.0.2.66, 192.0.2.1, 10.2.2.2")).toBe("192.0.2.1");
  expect(forwarded("192.0.2.1:5011")).toBe("192.0.2.1");
  expect(forwarded("[2001:db8::7]:443, 2001:db8::1")).toBe("2001:db8::7");
  expect(forwarded("192.0.2.1, unknown")).toBe("10.0.0.1");
  expect(forwarded("")).toBe("10.0.0.1");
});

test("a trusted proxy says how the client called", () => {
  const headers = { host: "inner", "x-forwarded-host": "evil.example, odp.example", "x-forwarded-proto": "https" };
  expect(of("10.0.0.1", headers)).toMatchObject({ host: "odp.example", protocol: "https", isForwardedByOthers: false });
  expect(of("10.0.0.1", { host: "inner" })).toMatchObject({ host: "inner", protocol: "http" });
});
