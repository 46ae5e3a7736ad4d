import { describe, expect, it } from "vitest";
import { joinAddressOf } from "./join-address.ts";

describe("where hosts come in", () => {
  it("is the first public name that is not this machine alone", () => {
    const joinAddress = joinAddressOf({ host: "0.0.0.0", port: 8080, publicNames: ["127.0.0.1", "odp.example.org"] });
    expect(joinAddress).toEqual({ url: "http://odp.example.org:8080", obstacles: [] });
    expect(joinAddressOf({ host: "::", port: 80, publicNames: ["2001:db8::1"] })).toEqual({
      url: "http://[2001:db8::1]:80",
      obstacles: [],
    });
  });

  it.each(["127.0.0.1", "127.3.0.1", "::1", "localhost"])(
    "is said to be closed while the controller listens on %s only",
    (host) => {
      const { obstacles } = joinAddressOf({ host, port: 8080, publicNames: ["odp.example.org"] });
      expect(obstacles).toEqual([expect.stringContaining("ODP_HOST")]);
    },
  );

  it.each(["0.0.0.0", "::", "127.0.0.1"])("is said to have no name when that is %s", (name) => {
    const { obstacles } = joinAddressOf({ host: "0.0.0.0", port: 8080, publicNames: [name] });
    expect(obstacles).toEqual([expect.stringContaining("ODP_PUBLIC_NAMES")]);
  });
});
